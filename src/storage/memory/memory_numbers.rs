//! Numbers in ordered maps.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Bound, RangeInclusive};

use crate::ledger::{GivenNumbers, KeyHash, NumberPlan, SeriesHead, SeriesName, VoidPlan, VoidedNumber};
use crate::storage::records::SeriesSummary;

/// All numbers, with everything that a database does for them.
#[derive(Debug, Default)]
pub(super) struct MemoryNumbers {
    /// What was given of every series, in its order; at least one of each.
    given: BTreeMap<SeriesName, Vec<GivenNumbers>>,
    /// Where in its series what a key was given stands.
    keys: HashMap<(SeriesName, KeyHash), usize>,
    voids: BTreeMap<(SeriesName, u64), VoidedNumber>,
}

impl MemoryNumbers {
    /// Stores it if its series has the head that it was made for.
    pub(super) fn write(&mut self, plan: &NumberPlan) -> bool {
        let NumberPlan { before, given } = plan;
        let is_current = self.head(&given.series) == *before;
        if is_current {
            let of_series = self.given.entry(given.series.clone()).or_default();
            self.keys.insert((given.series.clone(), given.mark.key), of_series.len());
            of_series.push(given.clone());
        }
        is_current
    }

    /// Stores it unless the number is void.
    pub(super) fn write_void(&mut self, VoidPlan { void, .. }: &VoidPlan) -> bool {
        let place = (void.series.clone(), void.number);
        let is_current = !self.voids.contains_key(&place);
        if is_current {
            self.voids.insert(place, void.clone());
        }
        is_current
    }

    /// Undoes the last write of its series.
    pub(super) fn take_back(&mut self, NumberPlan { given, .. }: &NumberPlan) {
        self.keys.remove(&(given.series.clone(), given.mark.key));
        let is_emptied = self.given.get_mut(&given.series).is_some_and(|of_series| {
            of_series.pop();
            of_series.is_empty()
        });
        if is_emptied {
            self.given.remove(&given.series);
        }
    }

    /// Undoes its write.
    pub(super) fn take_back_void(&mut self, VoidPlan { void, .. }: &VoidPlan) {
        self.voids.remove(&(void.series.clone(), void.number));
    }

    pub(super) fn head(&self, series: &SeriesName) -> Option<SeriesHead> {
        self.of(series).last().map(GivenNumbers::head)
    }

    pub(super) fn series(&self, after: Option<&SeriesName>, count_max: usize) -> Vec<SeriesSummary> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let found = self.given.range((from, Bound::Unbounded)).take(count_max);
        let summary = |(series, given): (&SeriesName, &Vec<GivenNumbers>)| {
            let SeriesHead { last, recorded } = given[given.len() - 1].head();
            SeriesSummary { series: series.clone(), first: given[0].first, last, updated: recorded }
        };
        found.map(summary).collect()
    }

    pub(super) fn given(&self, series: &SeriesName, from: u64, count_max: usize) -> Vec<GivenNumbers> {
        let of_series = self.of(series);
        let first = of_series.partition_point(|given| given.last < from);
        of_series[first..].iter().take(count_max).cloned().collect()
    }

    pub(super) fn given_to(&self, key: &(SeriesName, KeyHash)) -> Option<GivenNumbers> {
        self.keys.get(key).map(|at| self.of(&key.0)[*at].clone())
    }

    pub(super) fn voids(&self, series: &SeriesName, numbers: RangeInclusive<u64>) -> Vec<VoidedNumber> {
        let place = |number: &u64| (series.clone(), *number);
        self.voids.range(place(numbers.start())..=place(numbers.end())).map(|(_, void)| void.clone()).collect()
    }

    fn of(&self, series: &SeriesName) -> &[GivenNumbers] {
        self.given.get(series).map_or(&[], Vec::as_slice)
    }
}
