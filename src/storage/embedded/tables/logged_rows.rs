//! The rows of records that one commit writes: into the tables, and as bytes into the log, from which they are written again
//! where a process ended before the engine had synced them.
//!
//! ```text
//! append   'a', name (ledger, 4 bytes; id of the last event, 16 bytes), length of the row in 4 bytes, the row
//! anchor   'g', length of the format's name in 1 byte, that name, pair (8 and 8 bytes), time (8 bytes), the row (9 bytes)
//! ```
//!
//! Where a request is found, and the anchors by time, follow from these.

use redb::{Durability, Table, TableDefinition};

use super::anchor_row;
use super::anchor_table::{self, ANCHORS};
use super::append_table;
use super::append_table::APPENDS;
use super::engine::Engine;
use super::register_table::{self, REGISTER};
use super::request_table::{self, REQUESTS};
use crate::conjunction::{Pair, Tca};
use crate::storage::records::RecordPlan;
use crate::storage::records::append_row;

/// The number of the last commit that is in the tables.
const COMMITS: TableDefinition<'_, (), u64> = TableDefinition::new("commits");

const APPEND: u8 = b'a';
const ANCHOR: u8 = b'g';

/// The tables of one transaction, and what it writes there.
pub(super) struct LoggedRows<'a> {
    appends: Table<'a, append_row::Name, &'static [u8]>,
    requests: Table<'a, request_table::Name, &'static [u8]>,
    anchors: Table<'a, anchor_row::Name<'static>, &'static [u8]>,
    register: register_table::Register<'a>,
    log: Vec<u8>,
}

impl<'a> LoggedRows<'a> {
    /// The tables of a transaction, made if they are not there.
    pub(super) fn open(transaction: &'a redb::WriteTransaction) -> Result<LoggedRows<'a>, redb::Error> {
        Ok(LoggedRows {
            appends: transaction.open_table(APPENDS)?,
            requests: transaction.open_table(REQUESTS)?,
            anchors: transaction.open_table(ANCHORS)?,
            register: transaction.open_table(REGISTER)?,
            log: Vec::new(),
        })
    }

    /// Writes a record if what it was decided on holds; else returns `false`.
    pub(super) fn write(&mut self, plan: &RecordPlan) -> Result<bool, redb::Error> {
        match plan {
            RecordPlan::Append(plan) => {
                let Some((name, row)) = append_table::row_of(&self.appends, plan)? else { return Ok(false) };
                self.log.push(APPEND);
                self.log.extend(name.0.to_be_bytes());
                self.log.extend(name.1.to_be_bytes());
                self.log.extend(u32::try_from(row.len()).expect("an append is short").to_be_bytes());
                self.log.extend(&row);
                self.write_append(name, &row)?;
            }
            RecordPlan::Anchor(plan) => {
                let Some((name, row)) = anchor_table::row_of(&self.anchors, plan)? else { return Ok(false) };
                let (format, primary, secondary, tca) = name;
                self.log.push(ANCHOR);
                self.log.push(u8::try_from(format.len()).expect("names of formats are short"));
                self.log.extend(format.as_bytes());
                self.log.extend(primary.to_be_bytes());
                self.log.extend(secondary.to_be_bytes());
                self.log.extend(tca.to_be_bytes());
                self.log.extend(row);
                self.write_anchor(name, &row)?;
            }
        }
        Ok(true)
    }

    /// What was written, as bytes.
    pub(super) fn into_log(self) -> Vec<u8> {
        self.log
    }

    fn write_append(&mut self, name: append_row::Name, row: &[u8]) -> Result<(), redb::Error> {
        let replaced = self.appends.insert(name, row)?.is_some();
        assert!(!replaced, "an id above the head of its ledger is new");
        let (_, done) = append_row::request_of(name, row).expect("the row was made of an append");
        done.map_or(Ok(()), |done| request_table::write_request(&mut self.requests, &done))
    }

    fn write_anchor(&mut self, name: anchor_row::Name<'_>, row: &[u8]) -> Result<(), redb::Error> {
        self.anchors.insert(name, row)?;
        let (format, primary, secondary, tca) = name;
        register_table::add(&mut self.register, format, Pair { primary, secondary }, Tca(tca))
    }

    /// Writes rows from the log.
    fn write_again(&mut self, log: &[u8]) -> Result<(), redb::Error> {
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

/// The number of the last commit in the tables of a transaction; 0 before the first.
pub(super) fn last_commit(transaction: &redb::WriteTransaction) -> Result<u64, redb::Error> {
    use redb::ReadableTable;
    Ok(transaction.open_table(COMMITS)?.get(())?.map_or(0, |number| number.value()))
}

/// Notes the number of the commit that a transaction is.
pub(super) fn note_commit(transaction: &redb::WriteTransaction, number: u64) -> Result<(), redb::Error> {
    transaction.open_table(COMMITS)?.insert((), number)?;
    Ok(())
}

/// Writes into the tables what stands in the log alone. It goes on standing there: syncing the tables may need room, and a
/// start must not fail because the disk is full.
pub(super) fn recover(engine: &Engine) -> Result<(), redb::Error> {
    let mut transaction = engine.begin_write()?;
    let last = last_commit(&transaction)?;
    let entries = engine.log().recover(last)?;
    let Some(newest) = entries.last().map(|entry| entry.number) else { return Ok(transaction.abort()?) };
    {
        let mut rows = LoggedRows::open(&transaction)?;
        entries.iter().try_for_each(|entry| rows.write_again(&entry.content))?;
    }
    note_commit(&transaction, newest)?;
    transaction.set_durability(Durability::None)?;
    transaction.commit()?;
    tracing::info!("{} commits were in the log alone", entries.len());
    Ok(())
}
