//! Series and their numbers, read.

use std::ops::RangeInclusive;

use super::rows::{self, GivenCommit, VoidRow};
use crate::ledger::{GivenNumbers, KeyHash, SeriesName, VoidedNumber};
use crate::storage::coordinator::{KeyValue, Range};
use crate::storage::failure::StoreError;
use crate::storage::fleet::shared_store::{OPERATIONS_MAX, SharedStore, damaged};
use crate::storage::records::{NumberRecord, SeriesSummary};

/// Rows that are read at first: each may have what many requests were given.
const ROWS_READ_FIRST: usize = 16;

/// Rows that are read at once when these were not enough.
const ROWS_READ_MAX: usize = 256;

/// What was read, and the rows that it is in.
pub(in crate::storage::fleet) struct Found<T> {
    pub(in crate::storage::fleet) found: T,
    pub(in crate::storage::fleet) rows: Vec<KeyValue>,
}

impl SharedStore {
    /// A series; `None` if it has not begun.
    pub(in crate::storage::fleet) fn series_summary(
        &self,
        series: &SeriesName,
    ) -> Result<Option<SeriesSummary>, StoreError> {
        let row = self.read_key(self.keys.series(series))?;
        row.map(|row| summary_of(series.clone(), &row)).transpose()
    }

    /// Series in the order of their names, those behind `after`, at most `count_max`.
    pub(in crate::storage::fleet) fn series(
        &self,
        after: Option<&SeriesName>,
        count_max: usize,
    ) -> Result<Vec<SeriesSummary>, StoreError> {
        if count_max == 0 {
            return Ok(Vec::new());
        }
        let found = self.read_range(Range {
            count_max,
            ..self.keys.all_series(after)
        })?;
        let summary = |row: &KeyValue| {
            let series = self
                .keys
                .series_of(&row.key)
                .ok_or_else(|| damaged(&row.key))?;
            summary_of(series, row)
        };
        found.iter().map(summary).collect()
    }

    /// What was given of a series, in its order, from the number `from` on: at most `count_max` requests.
    pub(in crate::storage::fleet) fn given(
        &self,
        series: &SeriesName,
        from: u64,
        count_max: usize,
    ) -> Result<Vec<GivenNumbers>, StoreError> {
        let (mut given, mut next, mut rows) = (Vec::new(), Some(from), ROWS_READ_FIRST);
        while let Some(from) = next.filter(|_| given.len() < count_max) {
            let page = Range {
                count_max: rows.min(count_max - given.len()),
                ..self.keys.numbers_from(series, from)
            };
            let found = self.read_range(page.clone())?;
            next = None;
            for row in &found {
                let commit = self.given_commit_of(series, row)?;
                next = commit
                    .last()
                    .checked_add(1)
                    .filter(|_| found.len() == page.count_max);
                given.extend(commit.given.into_iter().filter(|given| given.last >= from));
            }
            rows = ROWS_READ_MAX;
        }
        given.truncate(count_max);
        Ok(given)
    }

    /// What was given to each of these keys.
    pub(in crate::storage::fleet) fn given_to(
        &self,
        asked: &[(SeriesName, KeyHash)],
    ) -> Result<Found<Vec<Option<GivenNumbers>>>, StoreError> {
        let (mut found, mut rows) = (Vec::with_capacity(asked.len()), Vec::new());
        for some in asked.chunks(OPERATIONS_MAX) {
            let of_keys = some
                .iter()
                .map(|(series, key)| Range::one(self.keys.number_key(series, *key)));
            let of_keys = self.read(&of_keys.collect::<Vec<_>>())?;
            let mut ranges = Vec::new();
            for ((series, key), of_key) in some.iter().zip(&of_keys) {
                if let Some(row) = of_key.first() {
                    let last = rows::key_of_bytes(series, *key, &row.value)
                        .ok_or_else(|| damaged(&row.key))?;
                    ranges.push(Range {
                        count_max: 1,
                        ..self.keys.numbers_from(series, last)
                    });
                }
            }
            let mut commits = self.read(&ranges)?.into_iter();
            for ((series, key), of_key) in some.iter().zip(of_keys) {
                let Some(of_key) = of_key.first() else {
                    found.push(None);
                    continue;
                };
                let row = commits
                    .next()
                    .and_then(|mut found| found.pop())
                    .ok_or_else(|| damaged(&of_key.key))?;
                let commit = self.given_commit_of(series, &row)?;
                let given = commit
                    .given
                    .into_iter()
                    .find(|given| given.mark.key == *key);
                found.push(Some(given.ok_or_else(|| damaged(&of_key.key))?));
                rows.push(row);
            }
        }
        Ok(Found { found, rows })
    }

    /// A number of a series, and what is known of it.
    pub(in crate::storage::fleet) fn number(
        &self,
        series: &SeriesName,
        number: u64,
    ) -> Result<Option<Found<NumberRecord>>, StoreError> {
        let commit = Range {
            count_max: 1,
            ..self.keys.numbers_from(series, number)
        };
        let void = Range::one(self.keys.void(series, number));
        let rows: Vec<KeyValue> = self.read(&[commit, void])?.into_iter().flatten().collect();
        let Some(commit) = rows
            .iter()
            .find(|row| self.keys.numbers_of(&row.key).is_some())
        else {
            return Ok(None);
        };
        let mut given = self.given_commit_of(series, commit)?.given.into_iter();
        let Some(given) = given.find(|given| (given.first..=given.last).contains(&number)) else {
            return Ok(None);
        };
        let void = rows
            .iter()
            .find(|row| self.keys.void_of(&row.key).is_some());
        let void = void
            .map(|row| void_of(series, number, row))
            .transpose()?
            .map(|row| row.void);
        Ok(Some(Found {
            found: NumberRecord {
                number,
                given,
                void,
            },
            rows,
        }))
    }

    /// Which of these numbers of a series are void, in their order.
    pub(in crate::storage::fleet) fn voids(
        &self,
        series: &SeriesName,
        numbers: &RangeInclusive<u64>,
    ) -> Result<Vec<VoidedNumber>, StoreError> {
        let found = self.read_range(self.keys.voids(series, numbers))?;
        let void = |row: &KeyValue| {
            let (_, number) = self
                .keys
                .void_of(&row.key)
                .ok_or_else(|| damaged(&row.key))?;
            Ok(void_of(series, number, row)?.void)
        };
        found.iter().map(void).collect()
    }

    /// What a row has of a series.
    fn given_commit_of(
        &self,
        series: &SeriesName,
        row: &KeyValue,
    ) -> Result<GivenCommit, StoreError> {
        let last = self.keys.numbers_of(&row.key).map(|(_, last)| last);
        let commit =
            last.and_then(|last| rows::commit_of_bytes(&row.key, series, last, &row.value));
        commit.ok_or_else(|| damaged(&row.key))
    }
}

/// The series of a row.
pub(super) fn summary_of(series: SeriesName, row: &KeyValue) -> Result<SeriesSummary, StoreError> {
    rows::series_of_bytes(&row.key, series, &row.value).ok_or_else(|| damaged(&row.key))
}

fn void_of(series: &SeriesName, number: u64, row: &KeyValue) -> Result<VoidRow, StoreError> {
    rows::void_of_bytes(&row.key, (series, number), &row.value).ok_or_else(|| damaged(&row.key))
}
