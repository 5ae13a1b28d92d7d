//! Anchors and the register of conjunctions: read, counted, and forgotten when they are old.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;

use super::externals::Beside;
use crate::conjunction::{Anchor, Pair, ReportTally, Tca};
use crate::storage::coordinator::{Compare, Key, KeyValue, Range, Transaction, Write};
use crate::storage::failure::StoreError;
use crate::storage::fleet::rows::{
    Attempt, conjunction_of_bytes, conjunction_to_bytes, pair_of_bytes, pair_to_bytes,
};
use crate::storage::fleet::shared_store::{OPERATIONS_MAX, SharedStore, damaged};
use crate::storage::records::{AnchorKey, ListRange, StoredConjunction, TalliedAnchor};

/// Tallies that are written in one transaction.
const TALLIES_MAX: usize = 100;

/// How often tallies are written again that another node was writing, too.
const TALLY_TRIES_MAX: usize = 3;

/// Anchors that are forgotten in one transaction, fewer if much stands beside them: each and its pair are compared and written.
const SWEPT_MAX: usize = 60;

impl SharedStore {
    /// For each of these spans of time of a pair its anchors within, by their times, and the rows of these pairs.
    pub(in crate::storage::fleet) fn anchors_within(
        &self,
        format: &str,
        spans: &[(Pair, RangeInclusive<Tca>)],
    ) -> Result<(Vec<Vec<Anchor>>, Vec<KeyValue>), StoreError> {
        let mut places: HashMap<Pair, usize> = HashMap::new();
        let mut ranges = Vec::new();
        for (pair, _) in spans {
            places.entry(*pair).or_insert_with(|| {
                ranges.push(Range::one(self.keys.pair(format, *pair)));
                ranges.len() - 1
            });
        }
        let found = self.read(&ranges)?;
        let anchors: Vec<Vec<Anchor>> = found
            .iter()
            .map(|found| anchors_of(found))
            .collect::<Result<_, _>>()?;
        let within = |(pair, times): &(Pair, RangeInclusive<Tca>)| {
            let of_pair = anchors[places[pair]].iter().copied();
            let mut within: Vec<Anchor> = of_pair
                .filter(|anchor| times.contains(&anchor.tca))
                .collect();
            within.sort_by_key(|anchor| anchor.tca);
            within
        };
        let within = spans.iter().map(within).collect();
        Ok((within, found.into_iter().flatten().collect()))
    }

    /// Conjunctions by time, at most `count_max`.
    pub(in crate::storage::fleet) fn conjunctions(
        &self,
        range: &ListRange,
        count_max: usize,
    ) -> Result<Vec<StoredConjunction>, StoreError> {
        let Some(places) = range.places().filter(|_| count_max > 0) else {
            return Ok(Vec::new());
        };
        let rows = self.keys.conjunctions(&range.format, places);
        let found = self.read_range(Range {
            count_max,
            is_descending: range.latest_first,
            ..rows
        })?;
        let conjunction = |entry: &KeyValue| {
            let AnchorKey { pair, tca, .. } = self.keys.anchor_of(&entry.key)?;
            let (rank, tally) = conjunction_of_bytes(&entry.key, &entry.value)?;
            Some(StoredConjunction {
                pair,
                anchor: Anchor { tca, rank },
                tally,
            })
        };
        found
            .iter()
            .map(|entry| conjunction(entry).ok_or_else(|| damaged(&entry.key)))
            .collect()
    }

    /// Adds to what is known of the reports of conjunctions. They are hints: where other nodes are always faster they are lost.
    pub(in crate::storage::fleet) fn add_reports(
        &self,
        tallies: &[(AnchorKey, ReportTally)],
    ) -> Result<(), StoreError> {
        for some in tallies.chunks(TALLIES_MAX) {
            for _ in 0..TALLY_TRIES_MAX {
                if self.add_some_reports(some)? {
                    break;
                }
            }
        }
        Ok(())
    }

    fn add_some_reports(&self, tallies: &[(AnchorKey, ReportTally)]) -> Result<bool, StoreError> {
        let mut later: BTreeMap<String, ReportTally> = BTreeMap::new();
        for (AnchorKey { format, pair, tca }, tally) in tallies {
            let key = self.keys.conjunction(format, (*tca, *pair));
            later
                .entry(key)
                .and_modify(|known| *known = known.followed_by(*tally))
                .or_insert(*tally);
        }
        let ranges: Vec<Range> = later.keys().map(Range::one).collect();
        let mut transaction = Transaction::default();
        for ((key, later), found) in later.into_iter().zip(self.read(&ranges)?) {
            let Some(entry) = found.first() else { continue };
            let (rank, earlier) =
                conjunction_of_bytes(&key, &entry.value).ok_or_else(|| damaged(&key))?;
            let tally = earlier.map_or(later, |earlier| earlier.followed_by(later));
            let value = conjunction_to_bytes(&key, rank, Some(&tally));
            transaction
                .compare
                .push(Compare::Modified(key.clone(), entry.modified));
            transaction.write.push(Write::put(key, value));
        }
        self.write_what_may_be_lost(transaction)
    }

    /// Anchors from the last key to the first, those before that one, at most `count_max`.
    pub(in crate::storage::fleet) fn anchors(
        &self,
        after: Option<&AnchorKey>,
        count_max: usize,
    ) -> Result<Vec<TalliedAnchor>, StoreError> {
        let rows = self.keys.conjunctions_before(after);
        let found = self.read_range(Range {
            count_max,
            is_descending: true,
            ..rows
        })?;
        let anchor = |entry: &KeyValue| {
            let key = self.keys.anchor_of(&entry.key)?;
            let (_, tally) = conjunction_of_bytes(&entry.key, &entry.value)?;
            Some(TalliedAnchor { key, tally })
        };
        found
            .iter()
            .map(|entry| anchor(entry).ok_or_else(|| damaged(&entry.key)))
            .collect()
    }

    /// Forgets anchors, but for those whose reports were counted since they were read. What another node writes at the same time
    /// is left to the next sweep.
    pub(in crate::storage::fleet) fn forget_anchors(
        &self,
        old: &[TalliedAnchor],
        attempt: impl Fn() -> Attempt,
    ) -> Result<(), StoreError> {
        for some in old.chunks(SWEPT_MAX) {
            let beside = self.beside(some.iter().map(|anchor| &anchor.key))?;
            let all: Vec<(&TalliedAnchor, Beside)> = some.iter().zip(beside).collect();
            let operations = |(_, beside): &(_, Beside)| 2 + beside.row_count();
            let mut need = all.first().map_or(0, operations);
            let parts = all.chunk_by(|_, next| {
                need += operations(next);
                let fits = need <= OPERATIONS_MAX;
                if !fits {
                    need = operations(next);
                }
                fits
            });
            for part in parts {
                let transaction = self.forgetting(part, &attempt)?;
                self.write_what_may_be_lost(transaction)?;
            }
        }
        Ok(())
    }

    /// The transaction that forgets a few anchors.
    fn forgetting(
        &self,
        old: &[(&TalliedAnchor, Beside)],
        attempt: &impl Fn() -> Attempt,
    ) -> Result<Transaction, StoreError> {
        let key_of = |key: &AnchorKey| self.keys.conjunction(&key.format, (key.tca, key.pair));
        let of_pair = |key: &AnchorKey| self.keys.pair(&key.format, key.pair);
        let pairs: BTreeSet<Key> = old.iter().map(|(anchor, _)| of_pair(&anchor.key)).collect();
        let ranges = old
            .iter()
            .map(|(anchor, _)| key_of(&anchor.key))
            .chain(pairs.iter().cloned())
            .map(Range::one);
        let mut found = self.read(&ranges.collect::<Vec<_>>())?.into_iter();
        let mut transaction = Transaction::default();
        let mut forgotten: HashMap<Key, Vec<Tca>> = HashMap::new();
        for ((TalliedAnchor { key, tally }, beside), found) in old.iter().zip(found.by_ref()) {
            let Some(entry) = found.first() else { continue };
            let (_, now) = conjunction_of_bytes(&entry.key, &entry.value)
                .ok_or_else(|| damaged(&entry.key))?;
            if now == *tally {
                transaction
                    .compare
                    .push(Compare::Modified(entry.key.clone(), entry.modified));
                transaction.write.push(Write::Delete(entry.key.clone()));
                beside.forget(key, self, &mut transaction);
                forgotten.entry(of_pair(key)).or_default().push(key.tca);
            }
        }
        for entry in found.flatten() {
            let Some(forgotten) = forgotten.get(&entry.key) else {
                continue;
            };
            let anchors =
                pair_of_bytes(&entry.key, &entry.value).ok_or_else(|| damaged(&entry.key))?;
            let kept: Vec<Anchor> = anchors
                .into_iter()
                .filter(|anchor| !forgotten.contains(&anchor.tca))
                .collect();
            transaction
                .compare
                .push(Compare::Modified(entry.key.clone(), entry.modified));
            transaction.write.push(match kept.is_empty() {
                true => Write::Delete(entry.key),
                false => {
                    let value = pair_to_bytes(&entry.key, attempt(), &kept);
                    Write::put(entry.key, value)
                }
            });
        }
        Ok(transaction)
    }
}

/// The anchors of the row of a pair; none where there is no row.
pub(in crate::storage::fleet) fn anchors_of(found: &[KeyValue]) -> Result<Vec<Anchor>, StoreError> {
    let Some(entry) = found.first() else {
        return Ok(Vec::new());
    };
    pair_of_bytes(&entry.key, &entry.value).ok_or_else(|| damaged(&entry.key))
}
