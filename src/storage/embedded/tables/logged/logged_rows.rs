//! The rows of records that one commit writes, as bytes in the log: the tables are written from these, in a process that goes
//! on as in one that starts after a crash.
//!
//! ```text
//! append   'a', name (ledger, 4 bytes; id of the last event, 16 bytes), length of the row in 4 bytes, the row
//! anchor   'g', length of the format's name in 1 byte, that name, pair (8 and 8 bytes), time (8 bytes), the row (9 bytes)
//! number   'n', length of the series' name in 1 byte, that name, last number (8 bytes), length of the row in 2 bytes, the row
//! void     'v', the same with the number that is void
//! ```
//!
//! Where a request is found, what its key was given, and the anchors by time, follow from these.

use redb::{Key, Table, TableDefinition, Value, WriteTransaction};

use crate::conjunction::{AnchorPlan, Pair, Tca};
use crate::ledger::{AppendPlan, KeyHash, NumberPlan, VoidPlan};
use crate::storage::embedded::tables::anchor_row;
use crate::storage::embedded::tables::anchor_table::ANCHORS;
use crate::storage::embedded::tables::append_table::APPENDS;
use crate::storage::embedded::tables::number_tables::{NUMBER_KEYS, NUMBERS, VOIDS};
use crate::storage::embedded::tables::register_table::{self, REGISTER};
use crate::storage::embedded::tables::request_table::{self, REQUESTS};
use crate::storage::records::append_row;
use crate::storage::records::number_rows::{self, KeyName};
use crate::storage::records::{AnchorKey, DoneRequest, RecordPlan, StoredAppend};

const APPEND: u8 = b'a';
const ANCHOR: u8 = b'g';
const NUMBER: u8 = b'n';
const VOID: u8 = b'v';

/// The rows of plans.
pub(in crate::storage::embedded::tables) fn bytes_of(plans: &[RecordPlan]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for plan in plans {
        match plan {
            RecordPlan::Append(plan) => push_append(&mut bytes, plan),
            RecordPlan::Anchor(plan) => push_anchor(&mut bytes, plan),
            RecordPlan::Number(NumberPlan { given, .. }) => {
                push_number(
                    &mut bytes,
                    NUMBER,
                    number_rows::name_of(given),
                    &number_rows::given_to_bytes(given),
                );
            }
            RecordPlan::Void(VoidPlan { void, .. }) => {
                push_number(
                    &mut bytes,
                    VOID,
                    number_rows::name_of_void(void),
                    &number_rows::void_to_bytes(void),
                );
            }
        }
    }
    bytes
}

fn push_append(bytes: &mut Vec<u8>, plan: &AppendPlan) {
    for ((ledger, last), row) in append_row::rows_of(&StoredAppend::of(plan)) {
        bytes.push(APPEND);
        bytes.extend(ledger.to_be_bytes());
        bytes.extend(last.to_be_bytes());
        bytes.extend(
            u32::try_from(row.len())
                .expect("an append is short")
                .to_be_bytes(),
        );
        bytes.extend(row);
    }
}

fn push_anchor(
    bytes: &mut Vec<u8>,
    AnchorPlan {
        format,
        pair,
        anchor,
        ..
    }: &AnchorPlan,
) {
    bytes.push(ANCHOR);
    bytes.push(u8::try_from(format.len()).expect("names of formats are short"));
    bytes.extend(format.as_bytes());
    bytes.extend(pair.primary.to_be_bytes());
    bytes.extend(pair.secondary.to_be_bytes());
    bytes.extend(anchor.tca.0.to_be_bytes());
    bytes.extend(anchor_row::to_bytes(
        anchor_row::name(format, *pair, anchor.tca),
        anchor.rank,
    ));
}

fn push_number(bytes: &mut Vec<u8>, kind: u8, (series, number): number_rows::Name<'_>, row: &[u8]) {
    bytes.push(kind);
    bytes.push(u8::try_from(series.len()).expect("names of series are short"));
    bytes.extend(series.as_bytes());
    bytes.extend(number.to_be_bytes());
    bytes.extend(
        u16::try_from(row.len())
            .expect("rows of numbers are short")
            .to_be_bytes(),
    );
    bytes.extend(row);
}

/// Writes rows into the tables, those that are not there yet, and what they are found by.
pub(super) fn write(transaction: &WriteTransaction, rows: &[u8]) -> Result<(), redb::Error> {
    let mut tables = Tables::of(transaction);
    let mut rest = rows;
    while !rest.is_empty() {
        let (row, behind) = split_row(rest)
            .ok_or_else(|| redb::Error::Corrupted("the log has unknown rows".to_owned()))?;
        match row {
            Row::Append(name, row, done) => tables.write_append(name, row, done)?,
            Row::Anchor(name, row) => tables.write_anchor(name, row)?,
            Row::Number(name, row, key) => tables.write_number(name, row, key)?,
            Row::Void(name, row) => tables.write_void(name, row)?,
        }
        rest = behind;
    }
    Ok(())
}

/// The tables of a transaction, each opened when it is first needed.
struct Tables<'a> {
    transaction: &'a WriteTransaction,
    appends: Option<Table<'a, append_row::Name, &'static [u8]>>,
    requests: Option<Table<'a, request_table::Name, &'static [u8]>>,
    anchors: Option<Table<'a, anchor_row::Name<'static>, &'static [u8]>>,
    register: Option<register_table::Register<'a>>,
    numbers: Option<NumberTable<'a>>,
    number_keys: Option<Table<'a, KeyName<'static>, &'static [u8]>>,
    voids: Option<NumberTable<'a>>,
}

type NumberTable<'a> = Table<'a, number_rows::Name<'static>, &'static [u8]>;

impl<'a> Tables<'a> {
    fn of(transaction: &'a WriteTransaction) -> Tables<'a> {
        Tables {
            transaction,
            appends: None,
            requests: None,
            anchors: None,
            register: None,
            numbers: None,
            number_keys: None,
            voids: None,
        }
    }

    fn write_append(
        &mut self,
        name: append_row::Name,
        row: &[u8],
        done: Option<DoneRequest>,
    ) -> Result<(), redb::Error> {
        let is_new = insert(
            opened(&mut self.appends, self.transaction, APPENDS)?,
            name,
            row,
        )?;
        match done.filter(|_| is_new) {
            Some(done) => request_table::write_request(
                opened(&mut self.requests, self.transaction, REQUESTS)?,
                &done,
            ),
            None => Ok(()),
        }
    }

    fn write_anchor(&mut self, name: anchor_row::Name<'_>, row: &[u8]) -> Result<(), redb::Error> {
        if !insert(
            opened(&mut self.anchors, self.transaction, ANCHORS)?,
            name,
            row,
        )? {
            return Ok(());
        }
        let (format, primary, secondary, tca) = name;
        let key = AnchorKey {
            format: format.to_owned(),
            pair: Pair { primary, secondary },
            tca: Tca(tca),
        };
        register_table::add(
            opened(&mut self.register, self.transaction, REGISTER)?,
            &key,
        )
    }

    fn write_number(
        &mut self,
        name: number_rows::Name<'_>,
        row: &[u8],
        key: KeyHash,
    ) -> Result<(), redb::Error> {
        if !insert(
            opened(&mut self.numbers, self.transaction, NUMBERS)?,
            name,
            row,
        )? {
            return Ok(());
        }
        let (series, last) = name;
        let key = (series, key.0);
        let row = number_rows::key_to_bytes(key, last);
        insert(
            opened(&mut self.number_keys, self.transaction, NUMBER_KEYS)?,
            key,
            &row,
        )
        .map(drop)
    }

    fn write_void(&mut self, name: number_rows::Name<'_>, row: &[u8]) -> Result<(), redb::Error> {
        insert(opened(&mut self.voids, self.transaction, VOIDS)?, name, row).map(drop)
    }
}

/// A row of the log.
enum Row<'a> {
    /// With the key of its request.
    Number(number_rows::Name<'a>, &'a [u8], KeyHash),
    Void(number_rows::Name<'a>, &'a [u8]),
    /// With the request that it came with, if that has a key.
    Append(append_row::Name, &'a [u8], Option<DoneRequest>),
    Anchor(anchor_row::Name<'a>, &'a [u8]),
}

/// The first row, and what is behind it; `None` if it is no row.
fn split_row(rows: &[u8]) -> Option<(Row<'_>, &[u8])> {
    match rows.split_first()? {
        (&APPEND, rest) => split_append(rest),
        (&ANCHOR, rest) => split_anchor(rest),
        (&NUMBER, rest) => split_number(rest),
        (&VOID, rest) => split_void(rest),
        _ => None,
    }
}

fn split_append(bytes: &[u8]) -> Option<(Row<'_>, &[u8])> {
    let (ledger, bytes) = bytes.split_first_chunk()?;
    let (last, bytes) = bytes.split_first_chunk()?;
    let (len, bytes) = bytes.split_first_chunk()?;
    let (row, rest) = bytes.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)?;
    let name = (u32::from_be_bytes(*ledger), u128::from_be_bytes(*last));
    let (_, done) = append_row::request_of(name, row)?;
    Some((Row::Append(name, row, done), rest))
}

fn split_anchor(bytes: &[u8]) -> Option<(Row<'_>, &[u8])> {
    let (&len, bytes) = bytes.split_first()?;
    let (format, bytes) = bytes.split_at_checked(usize::from(len))?;
    let (primary, bytes) = bytes.split_first_chunk()?;
    let (secondary, bytes) = bytes.split_first_chunk()?;
    let (tca, bytes) = bytes.split_first_chunk()?;
    let (row, rest) = bytes.split_at_checked(anchor_row::LEN)?;
    let pair = Pair {
        primary: u64::from_be_bytes(*primary),
        secondary: u64::from_be_bytes(*secondary),
    };
    let name = anchor_row::name(
        str::from_utf8(format).ok()?,
        pair,
        Tca(i64::from_be_bytes(*tca)),
    );
    anchor_row::from_bytes(name, row)?;
    Some((Row::Anchor(name, row), rest))
}

fn split_number(bytes: &[u8]) -> Option<(Row<'_>, &[u8])> {
    let (name, row, rest) = split_named(bytes)?;
    let given = number_rows::given_of_bytes(name, row)?;
    Some((Row::Number(name, row, given.mark.key), rest))
}

fn split_void(bytes: &[u8]) -> Option<(Row<'_>, &[u8])> {
    let (name, row, rest) = split_named(bytes)?;
    number_rows::void_of_bytes(name, row)?;
    Some((Row::Void(name, row), rest))
}

/// A row of a series with its name, and what is behind it.
fn split_named(bytes: &[u8]) -> Option<(number_rows::Name<'_>, &[u8], &[u8])> {
    let (&len, bytes) = bytes.split_first()?;
    let (series, bytes) = bytes.split_at_checked(usize::from(len))?;
    let (number, bytes) = bytes.split_first_chunk()?;
    let (len, bytes) = bytes.split_first_chunk()?;
    let (row, rest) = bytes.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    Some((
        (str::from_utf8(series).ok()?, u64::from_be_bytes(*number)),
        row,
        rest,
    ))
}

/// A table, opened with its first use and made if it is not there.
pub(super) fn opened<'a, 'b, K: Key + 'static, V: Value + 'static>(
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
        Some(false) => Err(redb::Error::Corrupted(
            "the tables have another row than the log".to_owned(),
        )),
    }
}
