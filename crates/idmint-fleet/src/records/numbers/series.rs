//! Reads series and their numbers.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::rows::{self, GivenCommit, VoidRow};
use crate::coordinator::{Compare, KeyValue, Range, Revision, Transaction, Write};
use crate::records::fleet_records::FleetRecords;
use crate::records::rows::{opened, sealed};
use crate::records::shared_store::{OPERATIONS_MAX, SharedStore, damaged, unreadable};
use idmint_records::ledger::{
    FormChange, GivenNumbers, KeyHash, NumberForm, NumberKinds, SeriesName, TemplateHistory,
    VoidedNumber,
};
use idmint_storage::{NumberRecord, NumberStore, SeriesState, SeriesSummary, StoreError};

/// The number of rows in the first read of a series' numbers. It is small, because each row may
/// contain the numbers of many requests.
const ROWS_READ_FIRST: usize = 16;

/// The maximum number of rows in each later read.
const ROWS_READ_MAX: usize = 256;

/// A value that was read, together with the rows that contain it.
pub(in crate::records) struct Found<T> {
    pub(in crate::records) found: T,
    pub(in crate::records) rows: Vec<KeyValue>,
}

impl NumberStore for FleetRecords {
    fn is_held(&self, series: &SeriesName) -> Result<bool, StoreError> {
        self.reads_hold(series)
    }

    fn end_hold(&self, series: Option<&SeriesName>) -> Result<(), StoreError> {
        self.ends_hold(series)
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn kinds(&self) -> Result<Option<NumberKinds>, StoreError> {
        self.store.number_kinds()
    }

    fn templates(&self) -> Result<TemplateHistory, StoreError> {
        Ok(self.store.number_templates()?.1)
    }

    fn keep_templates(
        &self,
        before: &TemplateHistory,
        history: &TemplateHistory,
    ) -> Result<bool, StoreError> {
        let (revision, there) = self.store.number_templates()?;
        if there != *before {
            return Ok(false);
        }
        self.store.keep_number_templates(revision, history)
    }

    /// Stores the kinds of series without comparing the stored ones. If another node stores its
    /// kinds at the same time, that does no harm, because all nodes of a fleet have the same kinds.
    fn keep_kinds(&self, kinds: &NumberKinds) -> Result<(), StoreError> {
        self.store.keep_number_kinds(kinds)
    }

    /// Also copies the row of a closed series to this node's journal, if it has one. An operator
    /// can then recover the row after a restore from an older backup.
    fn series_state(&self, series: &SeriesName) -> Result<SeriesState, StoreError> {
        let (asked, era) = (self.store.asking(), self.store.era());
        let Some(row) = self.store.read_key(self.store.keys.series(series))? else {
            return Ok(SeriesState::default());
        };
        let summary = summary_of(series.clone(), &row)?;
        if summary.closed.is_some() {
            self.keep_read(asked, era, &[row])?;
        }
        Ok(SeriesState {
            head: summary.head(),
            closed: summary.closed,
        })
    }

    fn forms(
        &self,
        series: &SeriesName,
        numbers: RangeInclusive<u64>,
    ) -> Result<Vec<FormChange>, StoreError> {
        let (first, last) = (*numbers.start(), *numbers.end());
        let ranges = [
            self.store.keys.form_at(series, first),
            self.store
                .keys
                .forms(series, &(first.saturating_add(1)..=last)),
        ];
        let found = self
            .store
            .read(&ranges[..if first < last { 2 } else { 1 }])?;
        found
            .iter()
            .flatten()
            .map(|row| self.store.form_of(series, row))
            .collect()
    }

    /// Also writes the row of the form to this node's journal, because the response relies on it.
    fn form_at(&self, series: &SeriesName, number: u64) -> Result<Option<NumberForm>, StoreError> {
        let (asked, era) = (self.store.asking(), self.store.era());
        let rows = self
            .store
            .read_range(self.store.keys.form_at(series, number))?;
        self.keep_read(asked, era, &rows)?;
        let change = rows.first().map(|row| self.store.form_of(series, row));
        Ok(change.transpose()?.map(|change| change.form))
    }

    fn series(
        &self,
        after: Option<&SeriesName>,
        count_max: usize,
    ) -> Result<Vec<SeriesSummary>, StoreError> {
        if count_max == 0 {
            return Ok(Vec::new());
        }
        let found = self.store.read_range(Range {
            count_max,
            ..self.store.keys.all_series(after)
        })?;
        let summary = |row: &KeyValue| {
            let series = self
                .store
                .keys
                .series_of(&row.key)
                .ok_or_else(|| unreadable(&row.key, &row.value))?;
            summary_of(series, row)
        };
        found.iter().map(summary).collect()
    }

    fn given(
        &self,
        series: &SeriesName,
        from: u64,
        count_max: usize,
    ) -> Result<Vec<GivenNumbers>, StoreError> {
        self.store.given_from(series, from, count_max)
    }

    fn given_to(
        &self,
        keys: &[(SeriesName, KeyHash)],
    ) -> Result<Vec<Option<GivenNumbers>>, StoreError> {
        let (asked, era) = (self.store.asking(), self.store.era());
        let Found { found, rows } = self.store.given_to(keys)?;
        self.keep_read(asked, era, &rows)?;
        Ok(found)
    }

    fn number(&self, series: &SeriesName, number: u64) -> Result<Option<NumberRecord>, StoreError> {
        let (asked, era) = (self.store.asking(), self.store.era());
        let Some(Found { found, rows }) = self.store.number(series, number)? else {
            return Ok(None);
        };
        self.keep_read(asked, era, &rows)?;
        Ok(Some(found))
    }

    fn voids(
        &self,
        series: &SeriesName,
        numbers: RangeInclusive<u64>,
    ) -> Result<Vec<VoidedNumber>, StoreError> {
        let found = self
            .store
            .read_range(self.store.keys.voids(series, &numbers))?;
        let void = |row: &KeyValue| {
            let (_, number) = self
                .store
                .keys
                .void_of(&row.key)
                .ok_or_else(|| unreadable(&row.key, &row.value))?;
            Ok(void_of(series, number, row)?.void)
        };
        found.iter().map(void).collect()
    }
}

impl SharedStore {
    /// Returns the kinds of series, `gapless` or `blocks`, that were configured at the last start
    /// of a node. Returns `None` if no node has stored any.
    pub(in crate::records) fn number_kinds(&self) -> Result<Option<NumberKinds>, StoreError> {
        let row = self.read_key(self.keys.number_kinds())?;
        row.map(|row| map_of(&row).map(NumberKinds)).transpose()
    }

    /// Stores the kinds of series without comparing the stored ones.
    pub(in crate::records) fn keep_number_kinds(
        &self,
        kinds: &NumberKinds,
    ) -> Result<(), StoreError> {
        let key = self.keys.number_kinds();
        let value = sealed(&key, serde_json::to_vec(&kinds.0).expect("texts are JSON"));
        let transaction = Transaction {
            write: vec![Write::put(key, value)],
            ..Transaction::default()
        };
        self.write_what_may_be_lost(transaction).map(drop)
    }

    /// Returns the stored history of the templates that write numbers as texts, and the revision of
    /// its row. The history has the templates of all starts of nodes. It is empty if no node has
    /// stored templates.
    pub(in crate::records) fn number_templates(
        &self,
    ) -> Result<(Revision, TemplateHistory), StoreError> {
        let row = self.read_key(self.keys.number_templates())?;
        let revision = row.as_ref().map_or(Revision::ABSENT, |row| row.modified);
        let history = row.map(|row| history_of(&row)).transpose()?;
        Ok((revision, history.unwrap_or_default()))
    }

    /// Replaces the stored history of templates. Returns `false` if its row no longer has this
    /// revision, because another node has changed it first.
    pub(in crate::records) fn keep_number_templates(
        &self,
        revision: Revision,
        history: &TemplateHistory,
    ) -> Result<bool, StoreError> {
        let key = self.keys.number_templates();
        let text = serde_json::to_vec(&history.to_texts()).expect("texts are JSON");
        let transaction = Transaction {
            compare: vec![Compare::Modified(key.clone(), revision)],
            write: vec![Write::put(key.clone(), sealed(&key, text))],
            ..Transaction::default()
        };
        self.write_what_may_be_lost(transaction)
    }

    /// Returns the summary of a series, or `None` if the series has no row. A series that was
    /// closed before its first number has one.
    pub(in crate::records) fn series_summary(
        &self,
        series: &SeriesName,
    ) -> Result<Option<SeriesSummary>, StoreError> {
        Ok(self.series_row(series)?.1)
    }

    /// Returns the revision of a series' row, and the summary in it. Returns [`Revision::ABSENT`]
    /// and `None` if there is no such row.
    pub(in crate::records) fn series_row(
        &self,
        series: &SeriesName,
    ) -> Result<(Revision, Option<SeriesSummary>), StoreError> {
        let row = self.read_key(self.keys.series(series))?;
        let revision = row.as_ref().map_or(Revision::ABSENT, |row| row.modified);
        let summary = row.map(|row| summary_of(series.clone(), &row));
        Ok((revision, summary.transpose()?))
    }

    /// Returns issued numbers of a series in ascending order, one entry for each request. Begins
    /// with the request that got the number `from`, and returns at most `count_max` entries.
    pub(in crate::records) fn given_from(
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

    /// Returns the numbers that were issued for each of these idempotency keys, or `None` for an
    /// unused key.
    pub(in crate::records) fn given_to(
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
                        .ok_or_else(|| unreadable(&row.key, &row.value))?;
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

    /// Returns one number of a series and the request to which it was issued, or `None` if the
    /// number was not issued.
    pub(in crate::records) fn number(
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
        let void = void.or_else(|| given.skipped(number));
        Ok(Some(Found {
            found: NumberRecord {
                number,
                given,
                void,
            },
            rows,
        }))
    }

    /// Parses a row with a change of the form in which numbers are written.
    pub(in crate::records) fn form_of(
        &self,
        series: &SeriesName,
        row: &KeyValue,
    ) -> Result<FormChange, StoreError> {
        let from = self.keys.form_of(&row.key).map(|(_, from)| from);
        let change =
            from.and_then(|from| rows::form_of_bytes(&row.key, (series, from), &row.value));
        change.ok_or_else(|| unreadable(&row.key, &row.value))
    }

    /// Parses a row of issued numbers.
    fn given_commit_of(
        &self,
        series: &SeriesName,
        row: &KeyValue,
    ) -> Result<GivenCommit, StoreError> {
        let last = self.keys.numbers_of(&row.key).map(|(_, last)| last);
        let commit =
            last.and_then(|last| rows::commit_of_bytes(&row.key, series, last, &row.value));
        commit.ok_or_else(|| unreadable(&row.key, &row.value))
    }
}

/// Parses a row with a map of texts.
fn map_of(row: &KeyValue) -> Result<BTreeMap<String, String>, StoreError> {
    let map = opened(&row.key, &row.value).and_then(|text| serde_json::from_slice(text).ok());
    map.ok_or_else(|| unreadable(&row.key, &row.value))
}

fn history_of(row: &KeyValue) -> Result<TemplateHistory, StoreError> {
    let history = TemplateHistory::from_texts(&map_of(row)?);
    history.ok_or_else(|| unreadable(&row.key, &row.value))
}

/// Parses the row of a series.
pub(super) fn summary_of(series: SeriesName, row: &KeyValue) -> Result<SeriesSummary, StoreError> {
    rows::series_of_bytes(&row.key, series, &row.value)
        .ok_or_else(|| unreadable(&row.key, &row.value))
}

fn void_of(series: &SeriesName, number: u64, row: &KeyValue) -> Result<VoidRow, StoreError> {
    rows::void_of_bytes(&row.key, (series, number), &row.value)
        .ok_or_else(|| unreadable(&row.key, &row.value))
}
