//! Numbers, in three tables of the database: what was given, what each key was given, and what is void.
//!
//! The head of a series is its last row, and a key stands in the row of what it was given: the table of keys says only where to
//! look. A database of an earlier version has none of the tables until something is written to them.

use std::ops::RangeInclusive;

use redb::{ReadableTable, TableDefinition};

use crate::ledger::{GivenNumbers, KeyHash, SeriesHead, SeriesName, VoidedNumber};
use crate::storage::records::SeriesSummary;
use crate::storage::records::number_rows::{self, KeyName, Name};

/// Series and last number to what a request was given.
pub(super) const NUMBERS: TableDefinition<'_, Name<'_>, &[u8]> = TableDefinition::new("numbers");
/// Series and key to the last number that the key was given.
pub(super) const NUMBER_KEYS: TableDefinition<'_, KeyName<'_>, &[u8]> =
    TableDefinition::new("number-keys");
/// Series and number to what is known of a number that is void.
pub(super) const VOIDS: TableDefinition<'_, Name<'_>, &[u8]> = TableDefinition::new("number-voids");

/// Rows named by a series and a number, as a transaction sees them.
pub(super) trait NumberRows: ReadableTable<Name<'static>, &'static [u8]> {}
impl<T: ReadableTable<Name<'static>, &'static [u8]>> NumberRows for T {}

/// The rows of keys, as a transaction sees them.
pub(super) trait KeyRows: ReadableTable<KeyName<'static>, &'static [u8]> {}
impl<T: ReadableTable<KeyName<'static>, &'static [u8]>> KeyRows for T {}

/// The last number of a series.
pub(super) fn head_of(
    numbers: &impl NumberRows,
    series: &SeriesName,
) -> Result<Option<SeriesHead>, redb::Error> {
    let last = numbers
        .range(all_of(series.as_str()))?
        .next_back()
        .transpose()?;
    last.map(|(name, row)| Ok(given_of(name.value(), row.value())?.head()))
        .transpose()
}

/// Series in the order of their names, those behind `after`, at most `count_max`.
pub(super) fn series(
    numbers: &impl NumberRows,
    after: Option<&SeriesName>,
    count_max: usize,
) -> Result<Vec<SeriesSummary>, redb::Error> {
    let mut found: Vec<SeriesSummary> = Vec::new();
    while found.len() < count_max {
        let behind = found.last().map(|summary| &summary.series).or(after);
        // No name has a letter below this one.
        let next = behind.map_or_else(String::new, |series| format!("{series}\0"));
        let Some((name, row)) = numbers.range((next.as_str(), 0)..)?.next().transpose()? else {
            break;
        };
        let GivenNumbers { series, first, .. } = given_of(name.value(), row.value())?;
        let head = head_of(numbers, &series)?;
        let SeriesHead { last, recorded } = head.ok_or_else(|| damaged(name.value()))?;
        found.push(SeriesSummary {
            series,
            first,
            last,
            updated: recorded,
        });
    }
    Ok(found)
}

/// What was given of a series, in its order, from the number `from` on: at most `count_max` requests.
pub(super) fn given(
    numbers: &impl NumberRows,
    series: &SeriesName,
    from: u64,
    count_max: usize,
) -> Result<Vec<GivenNumbers>, redb::Error> {
    let rows = numbers.range((series.as_str(), from)..=(series.as_str(), u64::MAX))?;
    let read = |row: Result<
        (
            redb::AccessGuard<'_, Name<'static>>,
            redb::AccessGuard<'_, &'static [u8]>,
        ),
        _,
    >| {
        let (name, row) = row?;
        given_of(name.value(), row.value())
    };
    rows.take(count_max).map(read).collect()
}

/// What was given to each of these keys.
pub(super) fn given_to(
    numbers: &impl NumberRows,
    keys: &impl KeyRows,
    asked: &[(SeriesName, KeyHash)],
) -> Result<Vec<Option<GivenNumbers>>, redb::Error> {
    let find = |(series, key): &(SeriesName, KeyHash)| {
        let name = (series.as_str(), key.0);
        let damaged = || {
            redb::Error::Corrupted(format!(
                "the key {:032x} of {series} is not what was written",
                key.0
            ))
        };
        let Some(row) = keys.get(name)? else {
            return Ok(None);
        };
        let last = number_rows::key_of_bytes(name, row.value()).ok_or_else(damaged)?;
        let name = (series.as_str(), last);
        let row = numbers.get(name)?.ok_or_else(damaged)?;
        let given = given_of(name, row.value())?;
        if given.mark.key == *key {
            Ok(Some(given))
        } else {
            Err(damaged())
        }
    };
    asked.iter().map(find).collect()
}

/// Which of these numbers of a series are void, in their order.
pub(super) fn voids(
    voids: &impl NumberRows,
    series: &SeriesName,
    numbers: &RangeInclusive<u64>,
) -> Result<Vec<VoidedNumber>, redb::Error> {
    let rows =
        voids.range((series.as_str(), *numbers.start())..=(series.as_str(), *numbers.end()))?;
    rows.map(|row| {
        let (name, row) = row?;
        let damaged = |(series, number): Name<'_>| {
            redb::Error::Corrupted(format!(
                "what is known of {number} of {series} is not what was written"
            ))
        };
        number_rows::void_of_bytes(name.value(), row.value()).ok_or_else(|| damaged(name.value()))
    })
    .collect()
}

fn all_of(series: &str) -> RangeInclusive<Name<'_>> {
    (series, 0)..=(series, u64::MAX)
}

fn given_of(name: Name<'_>, row: &[u8]) -> Result<GivenNumbers, redb::Error> {
    number_rows::given_of_bytes(name, row).ok_or_else(|| damaged(name))
}

fn damaged((series, last): Name<'_>) -> redb::Error {
    redb::Error::Corrupted(format!(
        "the numbers of {series} up to {last} are not what was written"
    ))
}
