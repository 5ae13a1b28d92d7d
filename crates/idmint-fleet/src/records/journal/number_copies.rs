//! The numbers that were found in journals: the issued numbers of each series, the forms in which
//! they are written, the void numbers, and the closed series.
//!
//! All numbers are kept in memory. They take no more space there than in the journal files, and the
//! size of these files is limited.

use std::collections::BTreeMap;

use crate::records::known_fleet::FleetEra;
use crate::records::numbers::{GivenCommit, VoidRow};
use idmint_records::ledger::{
    ClosedSeries, EventTime, FormChange, GivenNumbers, NumberForm, SeriesName,
};

/// The issued numbers and the void numbers from all given journals.
#[derive(Debug, Default)]
pub(super) struct NumberCopies {
    /// The issued numbers of each series.
    pub(super) series: BTreeMap<SeriesName, Vec<JournalledNumbers>>,
    /// The void numbers.
    pub(super) voids: Vec<JournalledVoid>,
    /// For each series, the changes of its numbers' form, such as `INV-00042`, each with the era
    /// (time between two `fence-restore` commands) in which its row was committed.
    pub(super) forms: BTreeMap<SeriesName, Vec<(FormChange, FleetEra)>>,
    /// The closed series, each with the era (time between two `fence-restore` commands) of its row.
    pub(super) closed: Vec<(ClosedSeries, FleetEra)>,
}

/// The numbers that were issued to one request, from a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JournalledNumbers {
    pub(super) given: GivenNumbers,
    /// `true` if these are the first numbers of the series.
    pub(super) begins: bool,
    /// `true` if this is the first number of the series, was wrong, and was then replaced by a
    /// corrected one. [`NumberCopies::settle`] sets this flag.
    pub(super) is_corrected: bool,
    /// The latest era in which any node wrote the numbers to its journal. An era is the time from
    /// one `fence-restore` command to the next.
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
                .push(JournalledNumbers {
                    given,
                    begins,
                    is_corrected: false,
                    era,
                });
        }
    }

    /// Adds a change of form.
    pub(super) fn add_form(&mut self, change: FormChange, era: FleetEra) {
        let of_series = self.forms.entry(change.series.clone()).or_default();
        of_series.push((change, era));
    }

    /// Adds the row of a closed series.
    pub(super) fn add_closed(&mut self, closed: ClosedSeries, era: FleetEra) {
        self.closed.push((closed, era));
    }

    /// Returns the stored form (how a number is written) for each entry of the consecutive numbers
    /// `numbers` of a series. `None` means that an entry is written like the number before it.
    ///
    /// A form is stored for the request that got the first number in this form. If a number without
    /// a stored form is of an earlier era than the number before it, the returned form is the last
    /// one that was stored for a lower number in the same or an earlier era. For example, 4 and 5
    /// were issued, a restore lost 4, and a new 4 was issued. Then 5 keeps the form of the lost 4.
    pub(super) fn forms_of(
        &self,
        series: &SeriesName,
        numbers: &[JournalledNumbers],
    ) -> Vec<Option<NumberForm>> {
        let forms = self.forms.get(series).map_or(&[][..], Vec::as_slice);
        let mut before: Option<FleetEra> = None;
        let form_of = |JournalledNumbers { given, era, .. }: &JournalledNumbers| {
            let is_restored = before.replace(*era).is_some_and(|before| before > *era);
            let own = |(change, _): &&(FormChange, FleetEra)| {
                (change.from, change.of) == (given.first, given.mark.key)
            };
            let earlier = |(change, of): &&(FormChange, FleetEra)| {
                is_restored && change.from < given.first && of <= era
            };
            let own = forms.iter().find(own);
            let change = own.or_else(|| {
                let earlier = forms.iter().filter(earlier);
                earlier.max_by_key(|(change, of)| (change.from, *of))
            });
            change.map(|(change, _)| change.form.clone())
        };
        numbers.iter().map(form_of).collect()
    }

    /// `true` if one of `numbers` is from a later era (time between two `fence-restore` commands)
    /// than the closing of the series. A restore had then undone the closing.
    pub(super) fn is_reopened_by(
        &self,
        series: &SeriesName,
        numbers: &[JournalledNumbers],
    ) -> bool {
        let mut closed = self.closed.iter();
        let closed = closed.find(|(closed, _)| closed.series == *series);
        closed.is_some_and(|(_, era)| numbers.iter().any(|journalled| journalled.era > *era))
    }

    /// `true` if all numbers of the series above `closed.last`, up to `last`, are from earlier eras
    /// (times between `fence-restore` commands) than `era`: a restore lost them before the closing.
    pub(super) fn are_before_closing(
        &self,
        closed: &ClosedSeries,
        era: FleetEra,
        last: Option<u64>,
    ) -> bool {
        let of_series = self.series.get(&closed.series).into_iter().flatten();
        let above: Vec<_> = of_series
            .filter(|JournalledNumbers { given, .. }| {
                Some(given.last) > closed.last && Some(given.last) <= last
            })
            .collect();
        // If no journal has `last`, it may have been issued after the closing, so return `false`.
        above.iter().any(|above| Some(above.given.last) == last)
            && above.iter().all(|above| above.era < era)
    }

    /// Adds the row of a void number.
    pub(super) fn add_void(&mut self, row: VoidRow, era: FleetEra) {
        self.voids.push(JournalledVoid { row, era });
    }

    /// Sorts all entries. If several journals have equal entries, keeps only the entry of the
    /// latest era.
    ///
    /// If a series begins twice in the same era, its first number was wrong, and the entry that was
    /// recorded later corrects it. The node that made the correction journalled both entries in
    /// that era.
    pub(super) fn settle(&mut self) {
        for of_series in self.series.values_mut() {
            let begun: Vec<(FleetEra, EventTime)> = of_series
                .iter()
                .filter(|journalled| journalled.begins)
                .map(|journalled| (journalled.era, journalled.given.recorded))
                .collect();
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
            for journalled in of_series.iter_mut().filter(|journalled| journalled.begins) {
                let (era, recorded) = (journalled.era, journalled.given.recorded);
                let corrects = |other: &(FleetEra, EventTime)| other.0 == era && other.1 > recorded;
                journalled.is_corrected = begun.iter().any(corrects);
            }
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
        self.closed.sort_by_key(|(closed, era)| {
            (
                closed.series.clone(),
                std::cmp::Reverse((*era, closed.recorded)),
            )
        });
        self.closed
            .dedup_by(|later, earlier| later.0.series == earlier.0.series);
    }

    /// Removes the rows of all eras (times between two `fence-restore` commands) that are not kept.
    pub(super) fn retain(&mut self, is_kept: impl Fn(FleetEra) -> bool) {
        self.series
            .values_mut()
            .for_each(|of_series| of_series.retain(|journalled| is_kept(journalled.era)));
        self.voids.retain(|journalled| is_kept(journalled.era));
        self.forms
            .values_mut()
            .for_each(|of_series| of_series.retain(|(_, era)| is_kept(*era)));
        self.closed.retain(|(_, era)| is_kept(*era));
    }

    /// Returns the recording times of all numbers.
    pub(super) fn recorded(&self) -> impl Iterator<Item = EventTime> {
        let journalled = self.series.values().flatten();
        journalled.map(|journalled| journalled.given.recorded)
    }
}
