//! Anchors and the register of conjunctions: read, counted, and forgotten when they are old.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use super::rows::{Attempt, conjunction_of_bytes, conjunction_to_bytes, pair_of_bytes, pair_to_bytes};
use super::shared_store::{NotWritten, SharedStore, Written, damaged};
use crate::conjunction::{Anchor, Pair, ReportTally, Tca};
use crate::storage::coordinator::{Compare, Entry, Range, Transaction, Write};
use crate::storage::failure::StoreError;
use crate::storage::records::{AnchorKey, ListRange, StoredConjunction};

/// Tallies that are written in one transaction.
const TALLIES_MAX: usize = 100;

/// How often tallies are written again that another node was writing, too.
const TALLY_TRIES_MAX: usize = 3;

/// Anchors of one pair that are looked at in a step, and about as many operations in a transaction of the sweep.
const SWEPT_MAX: usize = 60;

impl SharedStore {
    /// For each of these spans of time of a pair its anchors within, by their times, and the rows of these pairs.
    pub(super) fn anchors_within(
        &self,
        format: &str,
        spans: &mut dyn Iterator<Item = (Pair, RangeInclusive<Tca>)>,
    ) -> Result<(Vec<Vec<Anchor>>, Vec<Entry>), StoreError> {
        let spans: Vec<_> = spans.collect();
        let mut places: HashMap<Pair, usize> = HashMap::new();
        let mut ranges = Vec::new();
        for (pair, _) in &spans {
            places.entry(*pair).or_insert_with(|| {
                ranges.push(Range::one(self.keys.pair(format, *pair)));
                ranges.len() - 1
            });
        }
        let found = self.read(&ranges)?;
        let anchors: Vec<Vec<Anchor>> = found.iter().map(|found| anchors_of(found)).collect::<Result<_, _>>()?;
        let within = |(pair, times): &(Pair, RangeInclusive<Tca>)| {
            let of_pair = anchors[places[pair]].iter().copied();
            let mut within: Vec<Anchor> = of_pair.filter(|anchor| times.contains(&anchor.tca)).collect();
            within.sort_by_key(|anchor| anchor.tca);
            within
        };
        let within = spans.iter().map(within).collect();
        Ok((within, found.into_iter().flatten().collect()))
    }

    /// Conjunctions by time, at most so many.
    pub(super) fn conjunctions(
        &self,
        range: &ListRange,
        count_max: usize,
    ) -> Result<Vec<StoredConjunction>, StoreError> {
        let Some(places) = range.places().filter(|_| count_max > 0) else { return Ok(Vec::new()) };
        let rows = self.keys.conjunctions(&range.format, places);
        let found = self.read_range(Range { count_max, is_descending: range.latest_first, ..rows })?;
        let conjunction = |entry: &Entry| {
            let (tca, pair) = self.keys.place_of(&entry.key)?;
            let (rank, tally) = conjunction_of_bytes(&entry.key, &entry.value)?;
            Some(StoredConjunction { pair, anchor: Anchor { tca, rank }, tally })
        };
        found.iter().map(|entry| conjunction(entry).ok_or_else(|| damaged(&entry.key))).collect()
    }

    /// Adds to what is known of the reports of conjunctions. They are hints: where other nodes are always faster they are lost.
    pub(super) fn add_reports(&self, tallies: &[(AnchorKey, ReportTally)]) -> Result<(), StoreError> {
        for some in tallies.chunks(TALLIES_MAX) {
            for _ in 0..TALLY_TRIES_MAX {
                if self.add_some_reports(some)? == Written::Committed {
                    break;
                }
            }
        }
        Ok(())
    }

    fn add_some_reports(&self, tallies: &[(AnchorKey, ReportTally)]) -> Result<Written, StoreError> {
        let mut later: BTreeMap<String, ReportTally> = BTreeMap::new();
        for (AnchorKey { format, pair, tca }, tally) in tallies {
            let key = self.keys.conjunction(format, (*tca, *pair));
            later.entry(key).and_modify(|known| *known = known.followed_by(*tally)).or_insert(*tally);
        }
        let ranges: Vec<Range> = later.keys().map(Range::one).collect();
        let mut transaction = Transaction::default();
        for ((key, later), found) in later.into_iter().zip(self.read(&ranges)?) {
            let Some(entry) = found.first() else { continue };
            let (rank, earlier) = conjunction_of_bytes(&key, &entry.value).ok_or_else(|| damaged(&key))?;
            let tally = earlier.map_or(later, |earlier| earlier.followed_by(later));
            let value = conjunction_to_bytes(&key, rank, Some(&tally));
            transaction.compare.push(Compare::Modified(key.clone(), entry.modified));
            transaction.write.push(Write::Put { key, value, lease: None });
        }
        self.write_what_may_be_lost(transaction)
    }

    /// Looks at so many anchors in their order, from a key or the first, and forgets those before an instant. Returns where
    /// to go on; `None` at the end.
    pub(super) fn forget_anchors(
        &self,
        from: Option<&AnchorKey>,
        before: Tca,
        count_max: usize,
        attempt: impl Fn() -> Attempt,
    ) -> Result<Option<AnchorKey>, StoreError> {
        let first = from.map(|key| (key.format.as_str(), key.pair));
        // Each pair has an anchor, so one pair more than anchors are looked at shows where to go on.
        let count_read = count_max.saturating_add(1);
        let pairs = self.read_range(Range { count_max: count_read, ..self.keys.pairs_from(first) })?;
        let (mut transaction, mut left) = (Transaction::default(), count_max);
        for entry in &pairs {
            let (format, pair) = self.keys.pair_of(&entry.key).ok_or_else(|| damaged(&entry.key))?;
            let key = |tca| AnchorKey { format: format.clone(), pair, tca };
            let anchors = pair_of_bytes(&entry.key, &entry.value).ok_or_else(|| damaged(&entry.key))?;
            let begins = from.filter(|from| (from.format.as_str(), from.pair) == (format.as_str(), pair));
            let is_ahead = |tca: &Tca| begins.is_none_or(|from| *tca >= from.tca);
            let mut times: Vec<Tca> = anchors.iter().map(|anchor| anchor.tca).filter(is_ahead).collect();
            times.sort_unstable();
            let looked_at = &times[..times.len().min(left).min(SWEPT_MAX)];
            let old: Vec<Tca> = looked_at.iter().copied().filter(|tca| *tca < before).collect();
            if transaction.write.len() + old.len() >= SWEPT_MAX {
                self.write_what_may_be_lost(std::mem::take(&mut transaction))?;
            }
            if !old.is_empty() {
                let kept: Vec<Anchor> = anchors.iter().copied().filter(|anchor| !old.contains(&anchor.tca)).collect();
                transaction.compare.push(Compare::Modified(entry.key.clone(), entry.modified));
                transaction.write.push(match kept.is_empty() {
                    true => Write::Delete(entry.key.clone()),
                    false => {
                        let value = pair_to_bytes(&entry.key, attempt(), &kept);
                        Write::Put { key: entry.key.clone(), value, lease: None }
                    }
                });
                for tca in old {
                    transaction.write.push(Write::Delete(self.keys.conjunction(&format, (tca, pair))));
                }
            }
            left -= looked_at.len();
            if let Some(next) = times.get(looked_at.len()) {
                self.write_what_may_be_lost(transaction)?;
                return Ok(Some(key(*next)));
            }
        }
        self.write_what_may_be_lost(transaction)?;
        Ok(None)
    }

    /// Writes what is not missed where another node was faster.
    fn write_what_may_be_lost(&self, transaction: Transaction) -> Result<Written, StoreError> {
        if transaction.write.is_empty() {
            return Ok(Written::Committed);
        }
        match self.write(transaction, |_| false) {
            Ok(written) => Ok(written),
            Err(NotWritten::Refused(error) | NotWritten::Unknown(error)) => Err(error),
        }
    }
}

/// The anchors of the row of a pair; none where there is no row.
pub(super) fn anchors_of(found: &[Entry]) -> Result<Vec<Anchor>, StoreError> {
    let Some(entry) = found.first() else { return Ok(Vec::new()) };
    pair_of_bytes(&entry.key, &entry.value).ok_or_else(|| damaged(&entry.key))
}
