//! Reads, updates and removes the conjunctions of a fleet. Each conjunction has an anchor, a report
//! count and external ids.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;

use super::fleet_records::FleetRecords;
use super::keys::Keys;
use super::rows::{
    conjunction_of_bytes, conjunction_to_bytes, externals_of_bytes, externals_to_bytes,
    pair_of_bytes, pair_to_bytes,
};
use super::shared_store::{OPERATIONS_MAX, fits, unreadable, unreadable_conjunction};
use crate::coordinator::{Compare, Key, KeyValue, Range, Revision, Transaction, Write};
use idmint_records::conjunction::{Anchor, ExternalId, Pair, ReportCount, Tca};
use idmint_storage::rows::externals_row;
use idmint_storage::{
    AnchorKey, ConjunctionStore, CountedAnchor, FailureKind, ListRange, StoreError,
    StoredConjunction,
};

/// The maximum number of report counts that are updated in one transaction.
const TALLIES_MAX: usize = 100;

/// The maximum number of anchors that one cleanup transaction removes. Each anchor needs up to two
/// of the 128 operations that etcd accepts, and more if it has external ids.
const SWEPT_MAX: usize = 60;

/// The maximum number of external ids that one transaction adds. Each of them may need two
/// comparisons and two writes, and etcd accepts 128 of each.
const EXTERNALS_MAX: usize = 60;

/// The maximum number of attempts to write external ids or report counts. An attempt fails if
/// another node writes the same rows first. All attempts together end before the caller's timeout.
const TRIES_MAX: usize = 16;

impl ConjunctionStore for FleetRecords {
    fn anchors_within(
        &self,
        format: &str,
        spans: &mut dyn Iterator<Item = (Pair, RangeInclusive<Tca>)>,
    ) -> Result<Vec<Vec<Anchor>>, StoreError> {
        let spans: Vec<_> = spans.collect();
        let mut within = Vec::with_capacity(spans.len());
        for some in spans.chunks(OPERATIONS_MAX) {
            let (asked, era) = (self.store.asking(), self.store.era());
            let mut places: HashMap<Pair, usize> = HashMap::new();
            let mut ranges = Vec::new();
            for (pair, _) in some {
                places.entry(*pair).or_insert_with(|| {
                    ranges.push(Range::one(self.store.keys.pair(format, *pair)));
                    ranges.len() - 1
                });
            }
            let found = self.store.read(&ranges)?;
            let anchors: Vec<Vec<Anchor>> = found
                .iter()
                .map(|found| anchors_of(found))
                .collect::<Result<_, _>>()?;
            let rows: Vec<KeyValue> = found.into_iter().flatten().collect();
            self.note_pairs(rows.iter().map(|row| (&row.key, &row.value)));
            self.keep_read(asked, era, &rows)?;
            for (pair, times) in some {
                let mut of_span = anchors[places[pair]].clone();
                of_span.retain(|anchor| times.contains(&anchor.tca));
                of_span.sort_by_key(|anchor| anchor.tca);
                within.push(of_span);
            }
        }
        Ok(within)
    }

    fn conjunctions(
        &self,
        range: &ListRange,
        count_max: usize,
    ) -> Result<Vec<StoredConjunction>, StoreError> {
        let Some(places) = range.places().filter(|_| count_max > 0) else {
            return Ok(Vec::new());
        };
        let rows = self.store.keys.conjunctions(&range.format, places);
        let found = self.store.read_range(Range {
            count_max,
            is_descending: range.latest_first,
            ..rows
        })?;
        let conjunction = |entry: &KeyValue| {
            let AnchorKey { pair, tca, .. } = self.store.keys.anchor_of(&entry.key)?;
            let (rank, report_count) = conjunction_of_bytes(&entry.key, &entry.value)?;
            Some(StoredConjunction {
                pair,
                anchor: Anchor { tca, rank },
                report_count,
            })
        };
        found
            .iter()
            .map(|entry| {
                conjunction(entry).ok_or_else(|| unreadable_conjunction(&entry.key, &entry.value))
            })
            .collect()
    }

    fn add_reports(&self, report_counts: &[(AnchorKey, ReportCount)]) -> Result<(), StoreError> {
        for some in report_counts.chunks(TALLIES_MAX) {
            try_until_written(|| self.add_some_reports(some))?;
        }
        Ok(())
    }

    fn add_externals(&self, externals: &[(AnchorKey, ExternalId)]) -> Result<(), StoreError> {
        for some in externals.chunks(EXTERNALS_MAX) {
            try_until_written(|| self.store.write_what_may_be_lost(self.adding(some)?))?;
        }
        Ok(())
    }

    fn externals(&self, anchors: &[AnchorKey]) -> Result<Vec<Vec<ExternalId>>, StoreError> {
        let beside = self.beside(anchors.iter())?;
        Ok(beside.into_iter().map(|beside| beside.externals).collect())
    }

    fn anchors_of_external(
        &self,
        format: &str,
        external: &ExternalId,
        count_max: usize,
    ) -> Result<Vec<AnchorKey>, StoreError> {
        if count_max == 0 {
            return Ok(Vec::new());
        }
        let rows = self.store.keys.anchors_of_external(format, external);
        let found = self.store.read_range(Range {
            count_max,
            is_descending: true,
            ..rows
        })?;
        let anchor = |entry: &KeyValue| {
            self.store
                .keys
                .anchor_of_external(format, &entry.key)
                .ok_or_else(|| unreadable(&entry.key, &entry.value))
        };
        found.iter().map(anchor).collect()
    }

    fn anchors(
        &self,
        after: Option<&AnchorKey>,
        count_max: usize,
    ) -> Result<Vec<CountedAnchor>, StoreError> {
        let rows = self.store.keys.conjunctions_before(after);
        let found = self.store.read_range(Range {
            count_max,
            is_descending: true,
            ..rows
        })?;
        let anchor = |entry: &KeyValue| {
            let key = self.store.keys.anchor_of(&entry.key)?;
            let (_, report_count) = conjunction_of_bytes(&entry.key, &entry.value)?;
            Some(CountedAnchor { key, report_count })
        };
        found
            .iter()
            .map(|entry| {
                anchor(entry).ok_or_else(|| unreadable_conjunction(&entry.key, &entry.value))
            })
            .collect()
    }

    fn forget_anchors(&self, old: &[CountedAnchor]) -> Result<(), StoreError> {
        for some in old.chunks(SWEPT_MAX) {
            let beside = self.beside(some.iter().map(|anchor| &anchor.key))?;
            let all: Vec<(&CountedAnchor, Beside)> = some.iter().zip(beside).collect();
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
                self.forget_part(part)?;
            }
        }
        Ok(())
    }
}

impl FleetRecords {
    fn add_some_reports(
        &self,
        report_counts: &[(AnchorKey, ReportCount)],
    ) -> Result<bool, StoreError> {
        let mut later: BTreeMap<String, ReportCount> = BTreeMap::new();
        for (AnchorKey { format, pair, tca }, report_count) in report_counts {
            let key = self.store.keys.conjunction(format, (*tca, *pair));
            later
                .entry(key)
                .and_modify(|known| *known = known.followed_by(*report_count))
                .or_insert(*report_count);
        }
        let ranges: Vec<Range> = later.keys().map(Range::one).collect();
        let mut transaction = Transaction::default();
        for ((key, later), found) in later.into_iter().zip(self.store.read(&ranges)?) {
            let Some(entry) = found.first() else { continue };
            let (rank, earlier) = conjunction_of_bytes(&key, &entry.value)
                .ok_or_else(|| unreadable_conjunction(&key, &entry.value))?;
            let report_count = earlier.map_or(later, |earlier| earlier.followed_by(later));
            let value = conjunction_to_bytes(&key, rank, Some(&report_count));
            transaction
                .compare
                .push(Compare::Modified(key.clone(), entry.modified));
            transaction.write.push(Write::put(key, value));
        }
        self.store.write_what_may_be_lost(transaction)
    }

    /// Removes these anchors in one transaction, or in several if the rows of their pairs are long.
    fn forget_part(&self, old: &[(&CountedAnchor, Beside)]) -> Result<(), StoreError> {
        let transaction = self.forgetting(old)?;
        if old.len() > 1 && !fits(&transaction) {
            let (some, others) = old.split_at(old.len() / 2);
            self.forget_part(some)?;
            return self.forget_part(others);
        }
        // If another node changed one of these rows first, no anchor is removed now. The next
        // cleanup tries again.
        self.store.write_what_may_be_lost(transaction).map(drop)
    }

    /// Returns a transaction that removes these anchors. An anchor whose report count has changed
    /// since the read is kept, because its conjunction was reported again.
    fn forgetting(&self, old: &[(&CountedAnchor, Beside)]) -> Result<Transaction, StoreError> {
        let key_of = |key: &AnchorKey| {
            self.store
                .keys
                .conjunction(&key.format, (key.tca, key.pair))
        };
        let of_pair = |key: &AnchorKey| self.store.keys.pair(&key.format, key.pair);
        let pairs: BTreeSet<Key> = old.iter().map(|(anchor, _)| of_pair(&anchor.key)).collect();
        let ranges = old
            .iter()
            .map(|(anchor, _)| key_of(&anchor.key))
            .chain(pairs.iter().cloned())
            .map(Range::one);
        let mut found = self.store.read(&ranges.collect::<Vec<_>>())?.into_iter();
        let mut transaction = Transaction::default();
        let mut forgotten: HashMap<Key, Vec<Tca>> = HashMap::new();
        for ((CountedAnchor { key, report_count }, beside), found) in old.iter().zip(found.by_ref())
        {
            let Some(entry) = found.first() else { continue };
            let (_, now) = conjunction_of_bytes(&entry.key, &entry.value)
                .ok_or_else(|| unreadable_conjunction(&entry.key, &entry.value))?;
            if now == *report_count {
                transaction
                    .compare
                    .push(Compare::Modified(entry.key.clone(), entry.modified));
                transaction.write.push(Write::Delete(entry.key.clone()));
                beside.forget(key, &self.store.keys, &mut transaction);
                forgotten.entry(of_pair(key)).or_default().push(key.tca);
            }
        }
        for entry in found.flatten() {
            let Some(forgotten) = forgotten.get(&entry.key) else {
                continue;
            };
            let anchors = pair_of_bytes(&entry.key, &entry.value)
                .ok_or_else(|| unreadable(&entry.key, &entry.value))?;
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
                    let value = pair_to_bytes(&entry.key, self.attempt(), &kept);
                    Write::put(entry.key, value)
                }
            });
        }
        Ok(transaction)
    }

    /// Returns a transaction that adds these external ids.
    fn adding(&self, externals: &[(AnchorKey, ExternalId)]) -> Result<Transaction, StoreError> {
        let mut by_anchor: BTreeMap<&AnchorKey, Vec<&ExternalId>> = BTreeMap::new();
        externals
            .iter()
            .for_each(|(key, external)| by_anchor.entry(key).or_default().push(external));
        let anchors = by_anchor.keys().map(|key| {
            Range::one(
                self.store
                    .keys
                    .conjunction(&key.format, (key.tca, key.pair)),
            )
        });
        let anchors = self.store.read(&anchors.collect::<Vec<_>>())?;
        let beside = self.beside(by_anchor.keys().copied())?;
        let mut transaction = Transaction::default();
        for ((anchor, externals), (found, beside)) in
            by_anchor.into_iter().zip(anchors.iter().zip(beside))
        {
            // Compare the revision that created the anchor, not its last revision. The write then
            // succeeds even if other nodes count reports in the meantime.
            let Some(found) = found.first() else { continue };
            let mut all = beside.externals;
            let new = externals
                .into_iter()
                .filter(|external| externals_row::add(&mut all, external));
            let of_new = new
                .map(|external| Write::put(self.store.keys.external(anchor, external), Vec::new()));
            let before = transaction.write.len();
            transaction.write.extend(of_new);
            if transaction.write.len() > before {
                let key = self.store.keys.externals(anchor);
                let revision = beside
                    .row
                    .map_or(Revision::ABSENT, |(_, revision)| revision);
                transaction
                    .compare
                    .push(Compare::Created(found.key.clone(), found.created));
                transaction
                    .compare
                    .push(Compare::Modified(key.clone(), revision));
                transaction
                    .write
                    .push(Write::put(key.clone(), externals_to_bytes(&key, &all)));
            }
        }
        Ok(transaction)
    }

    /// Reads the external ids of each of these anchors, and the rows that contain them.
    fn beside<'a>(
        &self,
        anchors: impl Iterator<Item = &'a AnchorKey>,
    ) -> Result<Vec<Beside>, StoreError> {
        let ranges: Vec<Range> = anchors
            .map(|anchor| Range::one(self.store.keys.externals(anchor)))
            .collect();
        let beside = |found: Vec<KeyValue>| {
            let Some(KeyValue {
                key,
                value,
                modified,
                ..
            }) = found.into_iter().next()
            else {
                return Ok(Beside::default());
            };
            let externals =
                externals_of_bytes(&key, &value).ok_or_else(|| unreadable(&key, &value))?;
            Ok(Beside {
                externals,
                row: Some((key, modified)),
            })
        };
        self.store.read(&ranges)?.into_iter().map(beside).collect()
    }
}

/// The ids that other organizations gave to a conjunction. `row` has the key and the revision of
/// the row with these ids, or is `None` if there is no such row.
#[derive(Debug, Default)]
struct Beside {
    externals: Vec<ExternalId>,
    row: Option<(Key, Revision)>,
}

impl Beside {
    /// Returns the number of rows that these external ids occupy.
    fn row_count(&self) -> usize {
        self.row.iter().len() + self.externals.len()
    }

    /// Adds the deletion of an anchor's external ids to the transaction that deletes the anchor.
    fn forget(&self, anchor: &AnchorKey, keys: &Keys, transaction: &mut Transaction) {
        let Some((key, revision)) = &self.row else {
            return;
        };
        transaction
            .compare
            .push(Compare::Modified(key.clone(), *revision));
        transaction.write.push(Write::Delete(key.clone()));
        let of_externals = self
            .externals
            .iter()
            .map(|external| Write::Delete(keys.external(anchor, external)));
        transaction.write.extend(of_externals);
    }
}

/// Repeats `write` until it returns `true`. A write returns `false` if another node wrote the same
/// rows first.
///
/// # Errors
/// Returns the error of `write`, or an error if another node was first [`TRIES_MAX`] times.
fn try_until_written(
    mut write: impl FnMut() -> Result<bool, StoreError>,
) -> Result<(), StoreError> {
    for _ in 0..TRIES_MAX {
        if write()? {
            return Ok(());
        }
    }
    let error = "other nodes kept writing the same conjunctions";
    Err(StoreError::new(FailureKind::Unreachable, error))
}

/// Returns the anchors in the row of a pair of objects, or an empty list if there is no such row.
pub(super) fn anchors_of(found: &[KeyValue]) -> Result<Vec<Anchor>, StoreError> {
    let Some(entry) = found.first() else {
        return Ok(Vec::new());
    };
    pair_of_bytes(&entry.key, &entry.value).ok_or_else(|| unreadable(&entry.key, &entry.value))
}
