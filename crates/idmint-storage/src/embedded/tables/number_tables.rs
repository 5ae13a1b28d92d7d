//! The tables of numbers: the numbers issued to each request, an index of request keys, the void
//! numbers, and the closed series.
//!
//! The last row of a series has its last number. Each row of issued numbers contains its request
//! key, and the index of keys only locates that row. If an earlier version created the database,
//! each of these tables is missing until a row is written to it.

use std::ops::RangeInclusive;

use redb::{ReadOnlyTable, ReadableTable, TableDefinition, WriteTransaction};

use super::database::{if_there, unreadable};
use super::formats_table::FormatsTable;
use super::record_tables::RecordTables;
use crate::failure::StoreError;
use crate::records::rows::number_rows::{self, KeyName, NumberName};
use crate::records::{NumberStore, SeriesState, SeriesSummary};
use idmint_records::ledger::{
    ClosedSeries, FormChange, GivenNumbers, KeyHash, NumberForm, NumberKinds, SeriesHead,
    SeriesName, TemplateHistory, VoidedNumber,
};

/// Maps a series and the last number of a request to the row with all numbers that the request
/// received.
pub(super) const NUMBERS: TableDefinition<'_, NumberName<'_>, &[u8]> =
    TableDefinition::new("numbers");
/// Maps a series and an idempotency key to the last number that the request with this key received.
pub(super) const NUMBER_KEYS: TableDefinition<'_, KeyName<'_>, &[u8]> =
    TableDefinition::new("number-keys");
/// Maps a series and a number that a caller made void to the time and the reason of the voiding.
pub(super) const VOIDS: TableDefinition<'_, NumberName<'_>, &[u8]> =
    TableDefinition::new("number-voids");
/// Maps a closed series and its last number to the time of closing and the caller who closed the
/// series. The last number is 0 if the series has no number.
pub(super) const CLOSED: TableDefinition<'_, NumberName<'_>, &[u8]> =
    TableDefinition::new("number-closed");

impl NumberStore for RecordTables {
    fn series_state(&self, series: &SeriesName) -> Result<SeriesState, StoreError> {
        self.look(|transaction| {
            Ok(SeriesState {
                head: head_of(&transaction.open_table(NUMBERS)?, series)?,
                closed: closing_of(&transaction.open_table(CLOSED)?, series)?,
            })
        })
    }

    fn series(
        &self,
        after: Option<&SeriesName>,
        count_max: usize,
    ) -> Result<Vec<SeriesSummary>, StoreError> {
        self.read(|transaction| {
            let numbers = if_there(transaction, NUMBERS)?;
            let closed = if_there(transaction, CLOSED)?;
            let mut found: Vec<SeriesSummary> = Vec::new();
            while found.len() < count_max {
                let behind = found.last().map(|summary| &summary.series).or(after);
                let begun = numbers.as_ref().map(|rows| next_name(rows, behind));
                let ended = closed.as_ref().map(|rows| next_name(rows, behind));
                let names = [begun.transpose()?.flatten(), ended.transpose()?.flatten()];
                let Some(series) = names.into_iter().flatten().min() else {
                    break;
                };
                let closing = match &closed {
                    Some(closed) => closing_of(closed, &series)?,
                    None => None,
                };
                let span = match &numbers {
                    Some(numbers) => span_of(numbers, &series)?,
                    None => None,
                };
                found.push(match (span, closing) {
                    (Some((first, head)), closed) => SeriesSummary {
                        series,
                        first,
                        last: head.last,
                        updated: head.recorded,
                        closed,
                    },
                    (None, Some(closed)) => SeriesSummary::unbegun(closed),
                    (None, None) => return Err(damaged((series.as_str(), 0))),
                });
            }
            Ok(found)
        })
    }

    fn given(
        &self,
        series: &SeriesName,
        from: u64,
        count_max: usize,
    ) -> Result<Vec<GivenNumbers>, StoreError> {
        self.read_numbers(NUMBERS, |numbers| {
            let rows = numbers.range((series.as_str(), from)..=(series.as_str(), u64::MAX))?;
            let given = rows.take(count_max).map(|row| {
                let (name, row) = row?;
                given_of(name.value(), row.value())
            });
            given.collect()
        })
    }

    fn given_to(
        &self,
        keys: &[(SeriesName, KeyHash)],
    ) -> Result<Vec<Option<GivenNumbers>>, StoreError> {
        self.look(|transaction| {
            let numbers = transaction.open_table(NUMBERS)?;
            let of_keys = transaction.open_table(NUMBER_KEYS)?;
            let find = |(series, key): &(SeriesName, KeyHash)| {
                let name = (series.as_str(), key.0);
                let damaged = || {
                    redb::Error::Corrupted(format!(
                        "the idempotency key {:032x} of the series {series} is corrupted",
                        key.0
                    ))
                };
                let Some(row) = of_keys.get(name)? else {
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
            keys.iter().map(find).collect()
        })
    }

    fn voids(
        &self,
        series: &SeriesName,
        numbers: RangeInclusive<u64>,
    ) -> Result<Vec<VoidedNumber>, StoreError> {
        let names = (series.as_str(), *numbers.start())..=(series.as_str(), *numbers.end());
        self.read_numbers(VOIDS, |voids| {
            let void = |(series, number): NumberName<'_>, row: &[u8]| {
                number_rows::void_of_bytes((series, number), row).ok_or_else(|| {
                    unreadable(
                        number_rows::is_whole((series, number), row),
                        &format!("the void of number {number} of the series {series} is"),
                    )
                })
            };
            let rows = voids.range(names.clone())?;
            rows.map(|row| {
                let (name, row) = row?;
                void(name.value(), row.value())
            })
            .collect()
        })
    }

    fn forms(
        &self,
        series: &SeriesName,
        numbers: RangeInclusive<u64>,
    ) -> Result<Vec<FormChange>, StoreError> {
        self.form_changes(series, &numbers)
    }

    fn form_at(&self, series: &SeriesName, number: u64) -> Result<Option<NumberForm>, StoreError> {
        self.latest_form(series, number)
    }

    fn is_held(&self, series: &SeriesName) -> Result<bool, StoreError> {
        RecordTables::is_held(self, series)
    }

    fn end_hold(&self, series: Option<&SeriesName>) -> Result<(), StoreError> {
        RecordTables::end_hold(self, series)
    }

    fn kinds(&self) -> Result<Option<NumberKinds>, StoreError> {
        Ok(FormatsTable::new(&self.database).number_kinds()?)
    }

    fn keep_kinds(&self, kinds: &NumberKinds) -> Result<(), StoreError> {
        Ok(FormatsTable::new(&self.database).keep_number_kinds(kinds)?)
    }

    fn templates(&self) -> Result<TemplateHistory, StoreError> {
        Ok(FormatsTable::new(&self.database).number_templates()?)
    }

    fn keep_templates(
        &self,
        _before: &TemplateHistory,
        history: &TemplateHistory,
    ) -> Result<bool, StoreError> {
        FormatsTable::new(&self.database).keep_number_templates(history)?;
        Ok(true)
    }
}

impl RecordTables {
    /// Reads one of the tables about the numbers of series. If the table does not exist, the result
    /// is empty.
    fn read_numbers<T>(
        &self,
        table: TableDefinition<'static, NumberName<'static>, &'static [u8]>,
        read: impl Fn(&ReadOnlyTable<NumberName<'static>, &'static [u8]>) -> Result<Vec<T>, redb::Error>,
    ) -> Result<Vec<T>, StoreError> {
        self.read(|transaction| {
            if_there(transaction, table)?.map_or(Ok(Vec::new()), |table| read(&table))
        })
    }
}

/// Returns the last number of a series and its time of issue, or `None` if there is none yet.
pub(super) fn head_of(
    numbers: &impl ReadableTable<NumberName<'static>, &'static [u8]>,
    series: &SeriesName,
) -> Result<Option<SeriesHead>, redb::Error> {
    let all = (series.as_str(), 0)..=(series.as_str(), u64::MAX);
    let last = numbers.range(all)?.next_back().transpose()?;
    last.map(|(name, row)| Ok(given_of(name.value(), row.value())?.head()))
        .transpose()
}

/// Returns the name of the first series in `rows` that follows the name `behind`, or of the first
/// series of all if `behind` is `None`. Series are ordered by name.
fn next_name(
    rows: &ReadOnlyTable<NumberName<'static>, &'static [u8]>,
    behind: Option<&SeriesName>,
) -> Result<Option<SeriesName>, redb::Error> {
    // Series names cannot contain NUL, so this is the smallest name after `behind`.
    let next = behind.map_or_else(String::new, |series| format!("{series}\0"));
    let row = rows.range((next.as_str(), 0)..)?.next().transpose()?;
    let name = row.map(|(name, _)| {
        let name = name.value();
        SeriesName::from_text(name.0).map_err(|_| damaged(name))
    });
    name.transpose()
}

/// Returns the first number of a series, and the last number with the time at which it was issued.
/// Returns `None` if the series has no number.
fn span_of(
    numbers: &impl ReadableTable<NumberName<'static>, &'static [u8]>,
    series: &SeriesName,
) -> Result<Option<(u64, SeriesHead)>, redb::Error> {
    let all = (series.as_str(), 0)..=(series.as_str(), u64::MAX);
    let Some((name, row)) = numbers.range(all)?.next().transpose()? else {
        return Ok(None);
    };
    let first = given_of(name.value(), row.value())?.first;
    Ok(head_of(numbers, series)?.map(|head| (first, head)))
}

/// Returns the time of closing and the caller who closed the series, or `None` if it is open.
pub(super) fn closing_of(
    closed: &impl ReadableTable<NumberName<'static>, &'static [u8]>,
    series: &SeriesName,
) -> Result<Option<ClosedSeries>, redb::Error> {
    let all = (series.as_str(), 0)..=(series.as_str(), u64::MAX);
    let row = closed.range(all)?.next().transpose()?;
    let closing = row.map(|(name, row)| {
        let (name, row) = (name.value(), row.value());
        number_rows::closed_of_bytes(name, row).ok_or_else(|| {
            let what = format!("the record that closed the series {series} is");
            unreadable(number_rows::is_whole(name, row), &what)
        })
    });
    closing.transpose()
}

/// Removes the numbers `wrong` and the idempotency keys of their requests. A caller has corrected
/// each number, which was the first of its series. Later numbers cannot be corrected.
pub(super) fn remove(
    transaction: &WriteTransaction,
    wrong: &[&GivenNumbers],
) -> Result<(), redb::Error> {
    let mut numbers = transaction.open_table(NUMBERS)?;
    let mut keys = transaction.open_table(NUMBER_KEYS)?;
    for given in wrong {
        numbers.remove(number_rows::name_of(given))?;
        keys.remove((given.series.as_str(), given.mark.key.0))?;
    }
    Ok(())
}

fn given_of(name: NumberName<'_>, row: &[u8]) -> Result<GivenNumbers, redb::Error> {
    number_rows::given_of_bytes(name, row).ok_or_else(|| {
        let (series, last) = name;
        let what = format!("the numbers of {series} up to {last} are");
        unreadable(number_rows::is_whole(name, row), &what)
    })
}

fn damaged((series, last): NumberName<'_>) -> redb::Error {
    redb::Error::Corrupted(format!(
        "the numbers of {series} up to {last} are corrupted"
    ))
}
