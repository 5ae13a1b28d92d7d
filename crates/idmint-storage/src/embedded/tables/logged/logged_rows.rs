//! The byte format of a commit's rows in the log. The rows in the tables are always written from
//! these bytes, both while a process runs and at a start after a crash.
//!
//! ```text
//! append   'a', name (ledger, 4 bytes; id of the last event, 16 bytes), length of row (4 bytes),
//!          the row
//! anchor   'g', length of the format's name (1 byte), that name, pair (8 and 8 bytes),
//!          time (8 bytes), the row (9 bytes)
//! number   'n', length of the series' name (1 byte), that name, last number (8 bytes),
//!          length of the row (2 bytes), the row
//! void     'v', as `number`, with the void number
//! form     'f', as `number`, with the first number of the form
//! closed   'c', as `number`, with the last number, or 0 if there is none
//! ```
//!
//! The tables of requests, of number keys and of anchors by time are derived from these rows.

use redb::{Key, Table, TableDefinition, Value, WriteTransaction};

use crate::embedded::database_file::OtherLayout;
use crate::embedded::tables::anchor_row;
use crate::embedded::tables::anchor_table::ANCHORS;
use crate::embedded::tables::append_table::APPENDS;
use crate::embedded::tables::form_table::FORMS;
use crate::embedded::tables::number_tables::{CLOSED, NUMBER_KEYS, NUMBERS, VOIDS};
use crate::embedded::tables::register_table::{self, REGISTER};
use crate::embedded::tables::request_table::{self, REQUESTS};
use crate::records::rows::append_row;
use crate::records::rows::number_rows::{self, KeyName};
use crate::records::{AnchorKey, DoneRequest, RecordPlan, StoredAppend};
use idmint_records::conjunction::{AnchorPlan, Pair, Tca};
use idmint_records::ledger::{AppendPlan, ClosePlan, FormChange, KeyHash, NumberPlan, VoidPlan};

const APPEND: u8 = b'a';
const ANCHOR: u8 = b'g';
const NUMBER: u8 = b'n';
const VOID: u8 = b'v';
const FORM: u8 = b'f';
const CLOSE: u8 = b'c';

/// Encodes the rows that these plans write, in the byte format of the log. `forms` are the changes
/// of text form to store with the plans. A text form is how numbers are written, such as
/// `INV-0042`.
pub(in crate::embedded::tables) fn bytes_of(plans: &[RecordPlan], forms: &[FormChange]) -> Vec<u8> {
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
            RecordPlan::Close(ClosePlan { closed, .. }) => {
                push_number(
                    &mut bytes,
                    CLOSE,
                    number_rows::name_of_closed(closed),
                    &number_rows::closed_to_bytes(closed),
                );
            }
        }
    }
    for change in forms {
        push_number(
            &mut bytes,
            FORM,
            number_rows::name_of_form(change),
            &number_rows::form_to_bytes(change),
        );
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

fn push_number(
    bytes: &mut Vec<u8>,
    kind: u8,
    (series, number): number_rows::NumberName<'_>,
    row: &[u8],
) {
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

/// Writes the rows of a commit and their index entries to the tables. Skips a row that is already
/// there, because a start after a crash writes some rows again.
pub(super) fn write(transaction: &WriteTransaction, rows: &[u8]) -> Result<(), redb::Error> {
    let mut tables = Tables::of(transaction);
    let mut rest = rows;
    while !rest.is_empty() {
        let (row, behind) = split_row(rest)?;
        match row {
            Row::Append(name, row, done) => tables.write_append(name, row, done)?,
            Row::Anchor(name, row) => tables.write_anchor(name, row)?,
            Row::Number(name, row, key) => tables.write_number(name, row, key)?,
            Row::Void(name, row) => {
                insert(opened(&mut tables.voids, transaction, VOIDS)?, name, row)?;
            }
            Row::Form(name, row) => {
                insert(opened(&mut tables.forms, transaction, FORMS)?, name, row)?;
            }
            Row::Close(name, row) => {
                insert(opened(&mut tables.closed, transaction, CLOSED)?, name, row)?;
            }
        }
        rest = behind;
    }
    Ok(())
}

/// The tables that a transaction writes to. Each table is opened when it is first used.
struct Tables<'a> {
    transaction: &'a WriteTransaction,
    appends: Option<Table<'a, append_row::AppendName, &'static [u8]>>,
    requests: Option<Table<'a, request_table::Name, &'static [u8]>>,
    anchors: Option<Table<'a, anchor_row::Name<'static>, &'static [u8]>>,
    register: Option<register_table::Register<'a>>,
    numbers: Option<NumberTable<'a>>,
    number_keys: Option<Table<'a, KeyName<'static>, &'static [u8]>>,
    voids: Option<NumberTable<'a>>,
    forms: Option<NumberTable<'a>>,
    closed: Option<NumberTable<'a>>,
}

type NumberTable<'a> = Table<'a, number_rows::NumberName<'static>, &'static [u8]>;

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
            forms: None,
            closed: None,
        }
    }

    fn write_append(
        &mut self,
        name: append_row::AppendName,
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
        name: number_rows::NumberName<'_>,
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
}

/// A row of the log.
enum Row<'a> {
    /// The row of a request's numbers, and the hash of the request's idempotency key.
    Number(number_rows::NumberName<'a>, &'a [u8], KeyHash),
    Void(number_rows::NumberName<'a>, &'a [u8]),
    Form(number_rows::NumberName<'a>, &'a [u8]),
    Close(number_rows::NumberName<'a>, &'a [u8]),
    /// A row of events written together, and the request if it has an idempotency key.
    Append(append_row::AppendName, &'a [u8], Option<DoneRequest>),
    Anchor(anchor_row::Name<'a>, &'a [u8]),
}

/// Splits off the first row of a commit, and returns the row and the remaining bytes.
///
/// # Errors
/// Returns [`OtherLayout::LaterContent`] for a row that a later version of this program has
/// written, and [`redb::Error::Corrupted`] if the bytes are not a valid row.
fn split_row(rows: &[u8]) -> Result<(Row<'_>, &[u8]), redb::Error> {
    let (kind, rest) = rows.split_first().expect("some rows are left");
    let later = |what: &str| {
        OtherLayout::LaterContent(format!("the log of the database has {what}")).into()
    };
    let split: Split<'_> = match *kind {
        APPEND => split_append(rest),
        ANCHOR => split_anchor(rest),
        NUMBER | VOID | FORM | CLOSE => split_of_series(*kind, rest),
        kind => return Err(later(&format!("rows of the kind {:?}", char::from(kind)))),
    };
    match split {
        Some((Some(row), behind)) => Ok((row, behind)),
        Some((None, _)) => Err(later(&format!(
            "a row of the kind {:?} in an unknown form",
            char::from(*kind)
        ))),
        None => Err(redb::Error::Corrupted(
            "the log has invalid rows".to_owned(),
        )),
    }
}

/// A decoded row of the log and the bytes after it, or `None` if the bytes are not a valid row. The
/// row is `None` if its checksum is right but a later version wrote it, so it cannot be decoded.
type Split<'a> = Option<(Option<Row<'a>>, &'a [u8])>;

fn split_append(bytes: &[u8]) -> Split<'_> {
    let (ledger, bytes) = bytes.split_first_chunk()?;
    let (last, bytes) = bytes.split_first_chunk()?;
    let (len, bytes) = bytes.split_first_chunk()?;
    let (row, rest) = bytes.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)?;
    let name = (u32::from_be_bytes(*ledger), u128::from_be_bytes(*last));
    match append_row::request_of(name, row) {
        Some((_, done)) => Some((Some(Row::Append(name, row, done)), rest)),
        None => append_row::is_whole(name, row).then_some((None, rest)),
    }
}

fn split_anchor(bytes: &[u8]) -> Split<'_> {
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
    match anchor_row::from_bytes(name, row) {
        Some(_) => Some((Some(Row::Anchor(name, row)), rest)),
        None => anchor_row::is_whole(name, row).then_some((None, rest)),
    }
}

fn split_of_series(kind: u8, bytes: &[u8]) -> Split<'_> {
    let (name, row, rest) = split_named(bytes)?;
    let decoded = match kind {
        NUMBER => number_rows::given_of_bytes(name, row)
            .map(|given| Row::Number(name, row, given.mark.key)),
        VOID => number_rows::void_of_bytes(name, row).map(|_| Row::Void(name, row)),
        FORM => number_rows::form_of_bytes(name, row).map(|_| Row::Form(name, row)),
        _ => number_rows::closed_of_bytes(name, row).map(|_| Row::Close(name, row)),
    };
    match decoded {
        Some(row) => Some((Some(row), rest)),
        None => number_rows::is_whole(name, row).then_some((None, rest)),
    }
}

/// Splits off a row whose name starts with the name of a series, followed by a number. Returns the
/// row's name, its bytes, and the remaining bytes.
fn split_named(bytes: &[u8]) -> Option<(number_rows::NumberName<'_>, &[u8], &[u8])> {
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

/// Returns a table of this transaction. The table is opened when it is first used, and created if
/// it does not exist.
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

/// Inserts a row. Returns `true` if the row is new, or an error if its name has a different row.
fn insert<K: Key + 'static>(
    table: &mut Table<'_, K, &'static [u8]>,
    name: K::SelfType<'_>,
    row: &[u8],
) -> Result<bool, redb::Error> {
    match table.insert(name, row)?.map(|before| before.value() == row) {
        None => Ok(true),
        Some(true) => Ok(false),
        Some(false) => Err(redb::Error::Corrupted(
            "a row of the tables differs from the same row in the log".to_owned(),
        )),
    }
}
