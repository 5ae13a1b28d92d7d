//! The journalled numbers: the issued numbers of each series, the forms in which they are written,
//! the void numbers, and the closed series.
//!
//! All numbers are kept in memory. They take no more space there than in the journal files, whose
//! size is limited.

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
    /// The changes of the form in which each series writes its numbers, for example as `INV-00042`.
    /// Each change has the era in which its row was committed.
    pub(super) forms: BTreeMap<SeriesName, Vec<(FormChange, FleetEra)>>,
    /// The closed series, each with the era in which its row was committed. An era lasts from one
    /// fence to the next.
    pub(super) closed: Vec<(ClosedSeries, FleetEra)>,
}

/// The numbers that were issued to one request, from a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JournalledNumbers {
    pub(super) given: GivenNumbers,
    /// `true` if these are the first numbers of the series.
    pub(super) begins: bool,
    /// `true` if this is a wrong first number that was replaced by a corrected one. Set by
    /// [`NumberCopies::settle`].
    pub(super) is_corrected: bool,
    /// The latest era in which any node journalled the numbers. An era lasts from one fence to the
    /// next.
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

    /// Adds a change of the form in which numbers are written.
    pub(super) fn add_form(&mut self, change: FormChange, era: FleetEra) {
        let of_series = self.forms.entry(change.series.clone()).or_default();
        of_series.push((change, era));
    }

    /// Adds the row of a closed series.
    pub(super) fn add_closed(&mut self, closed: ClosedSeries, era: FleetEra) {
        self.closed.push((closed, era));
    }

    /// Returns the form in which each entry of the consecutive numbers `numbers` is written. `None`
    /// means that an entry is written like the number before it.
    ///
    /// A form is stored for the request that got the first number in this form. An entry without a
    /// stored form may be of an earlier era than the number before it. Its form is then the last
    /// one that was stored for a lower number up to its own era. For example, 4 and 5 were issued,
    /// a restore lost 4, and a new 4 was issued. Then 5 keeps the form of the lost 4.
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

    /// `true` if one of `numbers` is of a later era than the closing of the series. So a restore
    /// has undone the closing.
    pub(super) fn is_reopened_by(
        &self,
        series: &SeriesName,
        numbers: &[JournalledNumbers],
    ) -> bool {
        let mut closed = self.closed.iter();
        let closed = closed.find(|(closed, _)| closed.series == *series);
        closed.is_some_and(|(_, era)| numbers.iter().any(|journalled| journalled.era > *era))
    }

    /// `true` if all numbers of the series above `closed.last`, up to `last`, are of earlier eras
    /// than `era`, the era of the closing. So a restore had lost them before the series was closed.
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
        // If no journal has `last`, it may have been issued after the closing. Return `false` in
        // that case.
        above.iter().any(|above| Some(above.given.last) == last)
            && above.iter().all(|above| above.era < era)
    }

    /// Adds the row of a void number.
    pub(super) fn add_void(&mut self, row: VoidRow, era: FleetEra) {
        self.voids.push(JournalledVoid { row, era });
    }

    /// Sorts all entries. Of equal entries in several journals, keeps the one of the latest era.
    ///
    /// If a series begins twice in the same era, its first number was wrong, and the entry that was
    /// recorded later is the correction. The node that corrected the number journalled both entries
    /// in that era.
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

    /// Removes the rows of all eras for which `is_kept` returns `false`.
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
