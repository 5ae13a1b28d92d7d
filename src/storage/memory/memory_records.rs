//! Records in ordered maps, with everything that a database does for them and nothing that lasts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{Bound, RangeInclusive};
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::memory_numbers::MemoryNumbers;
use crate::conjunction::{Anchor, AnchorPlan, ExternalId, Pair, ReportTally, Tca};
use crate::ledger::{
    AppendPlan, EventId, EventTime, GivenNumbers, Head, KeyHash, LedgerId, Link, SeriesHead, SeriesName, VoidedNumber,
};
use crate::storage::failure::{FailureKind, StoreError};
use crate::storage::records::{
    AnchorKey, BackedUp, DoneRequest, LedgerSummary, ListPlace, ListRange, NumberStore, RecordPlan, RecordStore,
    SeriesSummary, StoredAppend, StoredConjunction, TalliedAnchor, WriteError, WrittenDay, days_to_forget,
    externals_row,
};

/// Records that are gone with the value.
#[derive(Debug, Default)]
pub struct MemoryRecords {
    maps: RwLock<Maps>,
}

#[derive(Debug, Default)]
struct Maps {
    /// The appends of every ledger, in their order; at least one of each.
    appends: BTreeMap<LedgerId, Vec<StoredAppend>>,
    /// The requests of every day, by their keys.
    requests: BTreeMap<WrittenDay, HashMap<KeyHash, DoneRequest>>,
    /// The rank of every anchor.
    anchors: BTreeMap<AnchorKey, u32>,
    /// The anchors of every format by time, and what is known of their reports.
    by_time: BTreeMap<(String, ListPlace), Option<ReportTally>>,
    /// The ids of other originators beside anchors that have any, and the anchors of each of these ids.
    externals: BTreeMap<AnchorKey, Vec<ExternalId>>,
    by_external: BTreeSet<(String, ExternalId, ListPlace)>,
    numbers: MemoryNumbers,
}

impl RecordStore for MemoryRecords {
    fn write(&self, plans: &[RecordPlan]) -> Result<(), WriteError> {
        let mut maps = self.maps_to_write();
        for (written, plan) in plans.iter().enumerate() {
            let is_current = match plan {
                RecordPlan::Append(plan) => maps.write_append(plan),
                RecordPlan::Anchor(plan) => maps.write_anchor(plan),
                RecordPlan::Number(plan) => maps.numbers.write(plan),
                RecordPlan::Void(plan) => maps.numbers.write_void(plan),
            };
            if !is_current {
                plans[..written].iter().rev().for_each(|plan| maps.take_back(plan));
                return Err(WriteError::Stale);
            }
        }
        for done in plans.iter().filter_map(DoneRequest::of) {
            maps.requests.entry(WrittenDay::of(done.recorded)).or_default().insert(done.key, done);
        }
        Ok(())
    }

    fn head(&self, ledger: LedgerId) -> Result<Option<Head>, StoreError> {
        Ok(self.maps().head(ledger))
    }

    fn ledger(&self, ledger: LedgerId) -> Result<Option<LedgerSummary>, StoreError> {
        Ok(self.maps().appends.get(&ledger).map(|appends| summary_of(appends)))
    }

    fn ledgers(&self, after: Option<LedgerId>, count_max: usize) -> Result<Vec<LedgerSummary>, StoreError> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let maps = self.maps();
        let found = maps.appends.range((from, Bound::Unbounded)).take(count_max);
        Ok(found.map(|(_, appends)| summary_of(appends)).collect())
    }

    fn chain(&self, ledger: LedgerId, after: Option<EventId>, count_max: usize) -> Result<Vec<Link>, StoreError> {
        let maps = self.maps();
        let appends = maps.appends_of(ledger);
        // The first append that can have an event after that one.
        let first = appends.partition_point(|append| after.is_some_and(|after| append.head().id <= after));
        let links = (first..appends.len()).flat_map(|at| links_of(appends, at));
        Ok(links.filter(|link| after.is_none_or(|after| link.id > after)).take(count_max).collect())
    }

    fn link(&self, id: EventId) -> Result<Option<Link>, StoreError> {
        let maps = self.maps();
        let appends = maps.appends_of(id.ledger());
        let at = appends.partition_point(|append| append.head().id < id);
        Ok(links_of(appends, at).into_iter().find(|link| link.id == id))
    }

    fn append(&self, last: EventId) -> Result<Option<(StoredAppend, Vec<Link>)>, StoreError> {
        let maps = self.maps();
        let appends = maps.appends_of(last.ledger());
        let at = appends.partition_point(|append| append.head().id < last);
        let found = appends.get(at).filter(|append| append.head().id == last);
        Ok(found.map(|append| (append.clone(), links_of(appends, at))))
    }

    fn requests(&self, keys: &[KeyHash]) -> Result<Vec<Option<DoneRequest>>, StoreError> {
        let maps = self.maps();
        let find = |key| maps.requests.values().rev().find_map(|of_day| of_day.get(key)).copied();
        Ok(keys.iter().map(find).collect())
    }

    fn forget_requests(&self, since: EventTime, _: usize) -> Result<bool, StoreError> {
        let mut maps = self.maps_to_write();
        let days: Vec<WrittenDay> = maps.requests.keys().copied().collect();
        let old = days_to_forget(&days, since);
        maps.requests.retain(|day, _| !old.contains(day));
        Ok(!old.is_empty())
    }

    fn request_days(&self) -> Result<Vec<WrittenDay>, StoreError> {
        Ok(self.maps().requests.keys().copied().collect())
    }

    fn neighbours(
        &self,
        format: &str,
        times: &mut dyn Iterator<Item = (Pair, Tca)>,
    ) -> Result<Vec<Vec<Anchor>>, StoreError> {
        let maps = self.maps();
        Ok(times.map(|(pair, tca)| maps.anchors_within(format, pair, &tca.neighbourhood())).collect())
    }

    fn anchors(&self, after: Option<&AnchorKey>, count_max: usize) -> Result<Vec<TalliedAnchor>, StoreError> {
        let maps = self.maps();
        let to = after.map_or(Bound::Unbounded, |after| Bound::Excluded(place_of(after)));
        let rows = maps.by_time.range((Bound::Unbounded, to)).rev().take(count_max);
        let anchor = |((format, (tca, pair)), tally): (&(String, ListPlace), &Option<ReportTally>)| TalliedAnchor {
            key: AnchorKey { format: format.clone(), pair: *pair, tca: *tca },
            tally: *tally,
        };
        Ok(rows.map(anchor).collect())
    }

    fn forget_anchors(&self, old: &[TalliedAnchor]) -> Result<(), StoreError> {
        let mut maps = self.maps_to_write();
        for TalliedAnchor { key, tally } in old {
            if maps.by_time.get(&place_of(key)) == Some(tally) {
                maps.by_time.remove(&place_of(key));
                maps.anchors.remove(key);
                for external in maps.externals.remove(key).into_iter().flatten() {
                    maps.by_external.remove(&(key.format.clone(), external, (key.tca, key.pair)));
                }
            }
        }
        Ok(())
    }

    fn anchors_within(
        &self,
        format: &str,
        spans: &mut dyn Iterator<Item = (Pair, RangeInclusive<Tca>)>,
    ) -> Result<Vec<Vec<Anchor>>, StoreError> {
        let maps = self.maps();
        Ok(spans.map(|(pair, times)| maps.anchors_within(format, pair, &times)).collect())
    }

    fn conjunctions(&self, range: &ListRange, count_max: usize) -> Result<Vec<StoredConjunction>, StoreError> {
        let maps = self.maps();
        let Some((from, to)) = range.places() else { return Ok(Vec::new()) };
        let rows = maps.by_time.range((range.format.clone(), from)..=(range.format.clone(), to));
        let rows: Box<dyn Iterator<Item = _>> = if range.latest_first { Box::new(rows.rev()) } else { Box::new(rows) };
        let conjunction = |((format, (tca, pair)), tally): (&(String, ListPlace), &Option<ReportTally>)| {
            let rank = maps.anchors[&AnchorKey { format: format.clone(), pair: *pair, tca: *tca }];
            StoredConjunction { pair: *pair, anchor: Anchor { tca: *tca, rank }, tally: *tally }
        };
        Ok(rows.take(count_max).map(conjunction).collect())
    }

    fn add_reports(&self, tallies: &[(AnchorKey, ReportTally)]) -> Result<(), StoreError> {
        let mut maps = self.maps_to_write();
        for (key, later) in tallies {
            if let Some(tally) = maps.by_time.get_mut(&place_of(key)) {
                *tally = Some(tally.map_or(*later, |earlier| earlier.followed_by(*later)));
            }
        }
        Ok(())
    }

    fn add_externals(&self, externals: &[(AnchorKey, ExternalId)]) -> Result<(), StoreError> {
        let mut maps = self.maps_to_write();
        for (key, external) in externals {
            if maps.anchors.contains_key(key)
                && externals_row::add(maps.externals.entry(key.clone()).or_default(), external)
            {
                maps.by_external.insert((key.format.clone(), external.clone(), (key.tca, key.pair)));
            }
        }
        Ok(())
    }

    fn externals(&self, anchors: &[AnchorKey]) -> Result<Vec<Vec<ExternalId>>, StoreError> {
        let maps = self.maps();
        Ok(anchors.iter().map(|key| maps.externals.get(key).cloned().unwrap_or_default()).collect())
    }

    fn anchors_of_external(
        &self,
        format: &str,
        external: &ExternalId,
        count_max: usize,
    ) -> Result<Vec<AnchorKey>, StoreError> {
        let maps = self.maps();
        let of_both = |place| (format.to_owned(), external.clone(), place);
        let found = maps.by_external.range(of_both(ListRange::FIRST)..=of_both(ListRange::LAST)).rev();
        let key = |(format, _, (tca, pair)): &(String, ExternalId, ListPlace)| AnchorKey {
            format: format.clone(),
            pair: *pair,
            tca: *tca,
        };
        Ok(found.take(count_max).map(key).collect())
    }

    fn back_up(&self, _: &Path) -> Result<BackedUp, StoreError> {
        Err(StoreError::new(FailureKind::NotUsable, "nothing is kept in memory that a backup could restore"))
    }

    fn obstacle(&self) -> Option<FailureKind> {
        None
    }

    fn reopen(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl NumberStore for MemoryRecords {
    fn series_head(&self, series: &SeriesName) -> Result<Option<SeriesHead>, StoreError> {
        Ok(self.maps().numbers.head(series))
    }

    fn series(&self, after: Option<&SeriesName>, count_max: usize) -> Result<Vec<SeriesSummary>, StoreError> {
        Ok(self.maps().numbers.series(after, count_max))
    }

    fn given(&self, series: &SeriesName, from: u64, count_max: usize) -> Result<Vec<GivenNumbers>, StoreError> {
        Ok(self.maps().numbers.given(series, from, count_max))
    }

    fn given_to(&self, keys: &[(SeriesName, KeyHash)]) -> Result<Vec<Option<GivenNumbers>>, StoreError> {
        let maps = self.maps();
        Ok(keys.iter().map(|key| maps.numbers.given_to(key)).collect())
    }

    fn voids(&self, series: &SeriesName, numbers: RangeInclusive<u64>) -> Result<Vec<VoidedNumber>, StoreError> {
        Ok(self.maps().numbers.voids(series, numbers))
    }
}

impl MemoryRecords {
    fn maps(&self) -> RwLockReadGuard<'_, Maps> {
        self.maps.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn maps_to_write(&self) -> RwLockWriteGuard<'_, Maps> {
        self.maps.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Maps {
    /// Stores it if its ledger has the head that it was made for.
    fn write_append(&mut self, plan: &AppendPlan) -> bool {
        let is_current = self.head(plan.ledger()) == plan.before;
        if is_current {
            self.appends.entry(plan.ledger()).or_default().push(StoredAppend::of(plan));
        }
        is_current
    }

    /// Stores it if the anchors near it are those that it was made for.
    fn write_anchor(&mut self, plan: &AnchorPlan) -> bool {
        let AnchorPlan { format, pair, anchor, free } = plan;
        let is_free = free.iter().all(|times| self.anchors_within(format, *pair, times).is_empty());
        let neighbours = self.anchors_within(format, *pair, &anchor.tca.neighbourhood());
        let is_current = is_free && Anchor::create(anchor.tca, &neighbours) == *anchor;
        if is_current {
            self.anchors.insert(key_of(plan), anchor.rank);
            self.by_time.insert((format.clone(), (anchor.tca, *pair)), None);
        }
        is_current
    }

    /// Undoes the last write of all.
    fn take_back(&mut self, plan: &RecordPlan) {
        match plan {
            RecordPlan::Append(plan) => {
                let ledger = plan.ledger();
                let is_emptied = self.appends.get_mut(&ledger).is_some_and(|appends| {
                    appends.pop();
                    appends.is_empty()
                });
                if is_emptied {
                    self.appends.remove(&ledger);
                }
            }
            RecordPlan::Anchor(plan) => {
                self.anchors.remove(&key_of(plan));
                self.by_time.remove(&(plan.format.clone(), (plan.anchor.tca, plan.pair)));
            }
            RecordPlan::Number(plan) => self.numbers.take_back(plan),
            RecordPlan::Void(plan) => self.numbers.take_back_void(plan),
        }
    }

    fn appends_of(&self, ledger: LedgerId) -> &[StoredAppend] {
        self.appends.get(&ledger).map_or(&[], Vec::as_slice)
    }

    fn head(&self, ledger: LedgerId) -> Option<Head> {
        self.appends_of(ledger).last().map(StoredAppend::head)
    }

    fn anchors_within(&self, format: &str, pair: Pair, times: &RangeInclusive<Tca>) -> Vec<Anchor> {
        let key = |tca: &Tca| AnchorKey { format: format.to_owned(), pair, tca: *tca };
        let found = self.anchors.range(key(times.start())..=key(times.end()));
        found.map(|(key, rank)| Anchor { tca: key.tca, rank: *rank }).collect()
    }
}

fn key_of(AnchorPlan { format, pair, anchor, .. }: &AnchorPlan) -> AnchorKey {
    AnchorKey { format: format.clone(), pair: *pair, tca: anchor.tca }
}

fn place_of(key: &AnchorKey) -> (String, ListPlace) {
    (key.format.clone(), (key.tca, key.pair))
}

/// A ledger by its appends, at least one.
fn summary_of(appends: &[StoredAppend]) -> LedgerSummary {
    LedgerSummary { genesis: appends[0].entries[0].id, head: appends[appends.len() - 1].head() }
}

/// The events of one append of a ledger, each with the id before it; none if there is no such append.
fn links_of(appends: &[StoredAppend], at: usize) -> Vec<Link> {
    let Some(append) = appends.get(at) else { return Vec::new() };
    let first = append.entries[0].id;
    let previous = match at.checked_sub(1) {
        Some(before) => appends[before].head().id,
        None => EventId::before_genesis(first.timestamp(), append.ledger()),
    };
    Link::chain(previous, append.first_place, append.entries.iter().map(|entry| entry.id)).collect()
}
