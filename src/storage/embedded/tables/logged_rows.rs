//! The rows of records that one commit writes: into the tables, and as bytes into the log, from which they are written again
//! where a process ended before the engine had synced them.
//!
//! ```text
//! append   'a', name (ledger, 4 bytes; id of the last event, 16 bytes), length of the row in 4 bytes, the row
//! anchor   'g', length of the format's name in 1 byte, that name, pair (8 and 8 bytes), time (8 bytes), the row (9 bytes)
//! ```
//!
//! Where a request is found, and the anchors by time, follow from these.

use redb::{Key, Table, TableDefinition, Value, WriteTransaction};

use super::anchor_row;
use super::anchor_table::{self, ANCHORS};
use super::append_table::{self, APPENDS};
use super::register_table::{self, REGISTER};
use super::request_table::{self, REQUESTS};
use crate::conjunction::{Pair, Tca};
use crate::storage::records::append_row;
use crate::storage::records::{AnchorKey, DoneRequest, RecordPlan};

const APPEND: u8 = b'a';
const ANCHOR: u8 = b'g';

/// The rows that one transaction writes, and the tables that it has needed for that.
pub(super) struct LoggedRows<'a> {
    transaction: &'a WriteTransaction,
    appends: Option<Table<'a, append_row::Name, &'static [u8]>>,
    anchors: Option<Table<'a, anchor_row::Name<'static>, &'static [u8]>>,
    written: Written,
}

/// The rows that a transaction has written: as the log has them, and what they are found by.
#[derive(Default)]
pub(super) struct Written {
    pub(super) log: Vec<u8>,
    requests: Vec<DoneRequest>,
    anchors: Vec<AnchorKey>,
}

impl<'a> LoggedRows<'a> {
    /// Nothing yet.
    pub(super) fn of(transaction: &'a WriteTransaction) -> LoggedRows<'a> {
        LoggedRows { transaction, appends: None, anchors: None, written: Written::default() }
    }

    /// What was written. Its [lookups](Written::write_lookups) are left to be.
    pub(super) fn written(self) -> Written {
        self.written
    }

    /// Writes a record if what it was decided on holds; else returns `false`.
    pub(super) fn write(&mut self, plan: &RecordPlan) -> Result<bool, redb::Error> {
        match plan {
            RecordPlan::Append(plan) => {
                let appends = opened(&mut self.appends, self.transaction, APPENDS)?;
                let Some((name, row)) = append_table::row_of(appends, plan)? else { return Ok(false) };
                let log = &mut self.written.log;
                log.push(APPEND);
                log.extend(name.0.to_be_bytes());
                log.extend(name.1.to_be_bytes());
                log.extend(u32::try_from(row.len()).expect("an append is short").to_be_bytes());
                log.extend(&row);
                let is_new = self.write_append(name, &row)?;
                assert!(is_new, "an id above the head of its ledger is new");
            }
            RecordPlan::Anchor(plan) => {
                let anchors = opened(&mut self.anchors, self.transaction, ANCHORS)?;
                let Some((name, row)) = anchor_table::row_of(anchors, plan)? else { return Ok(false) };
                let (format, primary, secondary, tca) = name;
                let log = &mut self.written.log;
                log.push(ANCHOR);
                log.push(u8::try_from(format.len()).expect("names of formats are short"));
                log.extend(format.as_bytes());
                log.extend(primary.to_be_bytes());
                log.extend(secondary.to_be_bytes());
                log.extend(tca.to_be_bytes());
                log.extend(row);
                self.write_anchor(name, &row)?;
            }
        }
        Ok(true)
    }

    /// Writes rows from the log, those that the tables do not have yet.
    pub(super) fn write_again(&mut self, log: &[u8]) -> Result<(), redb::Error> {
        let mut rest = log;
        while !rest.is_empty() {
            rest =
                self.write_first(rest)?.ok_or_else(|| redb::Error::Corrupted("the log has unknown rows".to_owned()))?;
        }
        Ok(())
    }

    /// Writes the first row, and returns what is behind it; `None` if it is no row.
    fn write_first<'b>(&mut self, log: &'b [u8]) -> Result<Option<&'b [u8]>, redb::Error> {
        Ok(match log.split_first() {
            Some((&APPEND, rest)) => match split_append(rest) {
                Some((name, row, rest)) => {
                    self.write_append(name, row)?;
                    Some(rest)
                }
                None => None,
            },
            Some((&ANCHOR, rest)) => match split_anchor(rest) {
                Some((name, row, rest)) => {
                    self.write_anchor(name, row)?;
                    Some(rest)
                }
                None => None,
            },
            _ => None,
        })
    }

    /// Writes a row, and returns whether it was not there yet. If it was, so was what it is found by.
    fn write_append(&mut self, name: append_row::Name, row: &[u8]) -> Result<bool, redb::Error> {
        let is_new = insert(opened(&mut self.appends, self.transaction, APPENDS)?, name, row)?;
        if is_new {
            let (_, done) = append_row::request_of(name, row).expect("the row was made of an append");
            self.written.requests.extend(done);
        }
        Ok(is_new)
    }

    /// Writes a row, and returns whether it was not there yet. If it was, so was what it is found by.
    fn write_anchor(&mut self, name: anchor_row::Name<'_>, row: &[u8]) -> Result<bool, redb::Error> {
        let is_new = insert(opened(&mut self.anchors, self.transaction, ANCHORS)?, name, row)?;
        if is_new {
            let (format, primary, secondary, tca) = name;
            let pair = Pair { primary, secondary };
            self.written.anchors.push(AnchorKey { format: format.to_owned(), pair, tca: Tca(tca) });
        }
        Ok(is_new)
    }
}

impl Written {
    /// Writes, in the transaction of the rows, what these are found by: the keys of requests, and the anchors by time.
    pub(super) fn write_lookups(&self, transaction: &WriteTransaction) -> Result<(), redb::Error> {
        if !self.requests.is_empty() {
            let mut requests = transaction.open_table(REQUESTS)?;
            self.requests.iter().try_for_each(|done| request_table::write_request(&mut requests, done))?;
        }
        if !self.anchors.is_empty() {
            let mut register = transaction.open_table(REGISTER)?;
            self.anchors.iter().try_for_each(|key| register_table::add(&mut register, key))?;
        }
        Ok(())
    }
}

/// A table, opened with its first use and made if it is not there.
fn opened<'a, 'b, K: Key + 'static, V: Value + 'static>(
    table: &'b mut Option<Table<'a, K, V>>,
    transaction: &'a WriteTransaction,
    definition: TableDefinition<'_, K, V>,
) -> Result<&'b mut Table<'a, K, V>, redb::Error> {
    let opened = match table.take() {
        Some(table) => table,
        None => transaction.open_table(definition)?,
    };
    Ok(table.insert(opened))
}

/// Inserts a row, and returns whether it was not there yet.
fn insert<K: Key + 'static>(
    table: &mut Table<'_, K, &'static [u8]>,
    name: K::SelfType<'_>,
    row: &[u8],
) -> Result<bool, redb::Error> {
    match table.insert(name, row)?.map(|before| before.value() == row) {
        None => Ok(true),
        Some(true) => Ok(false),
        Some(false) => Err(redb::Error::Corrupted("the tables have another row than the log".to_owned())),
    }
}

fn split_append(bytes: &[u8]) -> Option<(append_row::Name, &[u8], &[u8])> {
    let (ledger, bytes) = bytes.split_first_chunk()?;
    let (last, bytes) = bytes.split_first_chunk()?;
    let (len, bytes) = bytes.split_first_chunk()?;
    let (row, rest) = bytes.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)?;
    let name = (u32::from_be_bytes(*ledger), u128::from_be_bytes(*last));
    append_row::request_of(name, row)?;
    Some((name, row, rest))
}

fn split_anchor(bytes: &[u8]) -> Option<(anchor_row::Name<'_>, &[u8], &[u8])> {
    let (&len, bytes) = bytes.split_first()?;
    let (format, bytes) = bytes.split_at_checked(usize::from(len))?;
    let (primary, bytes) = bytes.split_first_chunk()?;
    let (secondary, bytes) = bytes.split_first_chunk()?;
    let (tca, bytes) = bytes.split_first_chunk()?;
    let (row, rest) = bytes.split_at_checked(anchor_row::LEN)?;
    let pair = Pair { primary: u64::from_be_bytes(*primary), secondary: u64::from_be_bytes(*secondary) };
    let name = anchor_row::name(str::from_utf8(format).ok()?, pair, Tca(i64::from_be_bytes(*tca)));
    anchor_row::from_bytes(name, row)?;
    Some((name, row, rest))
}
