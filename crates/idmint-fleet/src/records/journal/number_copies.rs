//! Journalled numbers: the issued numbers and the void numbers of each series.
//!
//! All numbers are kept in memory, because they take no more space there than in the files, whose
//! size is limited.

use std::collections::BTreeMap;

use crate::records::known_fleet::FleetEra;
use crate::records::numbers::{GivenCommit, VoidRow};
use idmint_records::ledger::{EventTime, GivenNumbers, SeriesName};

/// The issued numbers and the void numbers from all given journals.
#[derive(Debug, Default)]
pub(super) struct NumberCopies {
    /// The issued numbers of each series.
    pub(super) series: BTreeMap<SeriesName, Vec<JournalledNumbers>>,
    /// The void numbers.
    pub(super) voids: Vec<JournalledVoid>,
}

/// The numbers that were issued to one request, from a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JournalledNumbers {
    pub(super) given: GivenNumbers,
    /// `true` if these are the first numbers of the series.
    pub(super) begins: bool,
    /// The latest era (the time between two fences) in which any journal has the numbers.
    pub(super) era: FleetEra,
}

/// A void number from a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JournalledVoid {
    pub(super) row: VoidRow,
    pub(super) era: FleetEra,
}

impl NumberCopies {
    /// Adds a row of issued numbers.
    pub(super) fn add_commit(&mut self, commit: GivenCommit, era: FleetEra) {
        for (at, given) in commit.given.into_iter().enumerate() {
            let begins = commit.begins && at == 0;
            self.series
                .entry(given.series.clone())
                .or_default()
                .push(JournalledNumbers { given, begins, era });
        }
    }

    /// Adds the row of a void number.
    pub(super) fn add_void(&mut self, row: VoidRow, era: FleetEra) {
        self.voids.push(JournalledVoid { row, era });
    }

    /// Sorts all numbers. If several journals have equal entries, keeps the one of the latest era.
    pub(super) fn settle(&mut self) {
        for of_series in self.series.values_mut() {
            of_series.sort_by_key(|JournalledNumbers { given, era, .. }| {
                (
                    given.first,
                    given.last,
                    given.mark.key,
                    given.recorded,
                    std::cmp::Reverse(*era),
                )
            });
            of_series.dedup_by(|later, earlier| later.given == earlier.given);
        }
        self.voids.sort_by_key(|JournalledVoid { row, era }| {
            (
                row.void.series.clone(),
                row.void.number,
                row.of,
                std::cmp::Reverse(*era),
            )
        });
        self.voids.dedup_by(|later, earlier| {
            (&later.row.void, later.row.of) == (&earlier.row.void, earlier.row.of)
        });
    }

    /// Removes the numbers of eras for which `is_kept` returns `false`.
    pub(super) fn retain(&mut self, is_kept: impl Fn(FleetEra) -> bool) {
        self.series
            .values_mut()
            .for_each(|of_series| of_series.retain(|journalled| is_kept(journalled.era)));
        self.voids.retain(|journalled| is_kept(journalled.era));
    }

    /// Returns the recording times of all numbers.
    pub(super) fn recorded(&self) -> impl Iterator<Item = EventTime> {
        let journalled = self.series.values().flatten();
        journalled.map(|journalled| journalled.given.recorded)
    }
}
