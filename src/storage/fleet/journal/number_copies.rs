//! What journals have of numbers: of each series what was given, and what is void.
//!
//! It is kept whole: a number takes no more in memory than in the files, which are bounded.

use std::collections::BTreeMap;

use crate::ledger::{GivenNumbers, SeriesName};
use crate::storage::fleet::known_fleet::FleetEra;
use crate::storage::fleet::numbers::{GivenCommit, VoidRow};

/// Copies of what journals have of numbers.
#[derive(Debug, Default)]
pub(super) struct NumberCopies {
    /// What was given of each series.
    pub(super) series: BTreeMap<SeriesName, Vec<JournalledNumbers>>,
    /// What is void.
    pub(super) voids: Vec<JournalledVoid>,
}

/// What a request was given, as journals have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JournalledNumbers {
    pub(super) given: GivenNumbers,
    /// Whether the series began with it.
    pub(super) begins: bool,
    /// The last era in which it was written down.
    pub(super) era: FleetEra,
}

/// A number that is void, as a journal has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JournalledVoid {
    pub(super) row: VoidRow,
    pub(super) era: FleetEra,
}

impl NumberCopies {
    /// Takes in a row of numbers.
    pub(super) fn add_commit(&mut self, commit: GivenCommit, era: FleetEra) {
        for (at, given) in commit.given.into_iter().enumerate() {
            let begins = commit.begins && at == 0;
            self.series
                .entry(given.series.clone())
                .or_default()
                .push(JournalledNumbers { given, begins, era });
        }
    }

    /// Takes in a row of a number that is void.
    pub(super) fn add_void(&mut self, row: VoidRow, era: FleetEra) {
        self.voids.push(JournalledVoid { row, era });
    }

    /// Sorts what was taken in, and of the same numbers in several journals keeps those of the last era.
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

    /// Leaves out what is of other fleets.
    pub(super) fn retain_origin(&mut self, origin: u128) {
        self.series
            .values_mut()
            .for_each(|of_series| of_series.retain(|journalled| journalled.era.origin == origin));
        self.voids
            .retain(|journalled| journalled.era.origin == origin);
    }
}
