//! The ids of other originators beside anchors: kept, found, and forgotten with their anchors.

use std::collections::BTreeMap;

use crate::conjunction::ExternalId;
use crate::storage::coordinator::{Compare, Key, KeyValue, Range, Revision, Transaction, Write};
use crate::storage::failure::{FailureKind, StoreError};
use crate::storage::fleet::rows::{externals_of_bytes, externals_to_bytes};
use crate::storage::fleet::shared_store::{SharedStore, damaged};
use crate::storage::records::{AnchorKey, externals_row};

/// Ids that are kept by one transaction: each may need two comparisons and two writes.
const ADDED_MAX: usize = 60;

/// How often they are written again because another node was faster. All of these tries together take less time than a caller
/// waits.
const TRIES_MAX: usize = 16;

/// What stands beside an anchor, and under which key if it is there.
#[derive(Debug, Default)]
pub(in crate::storage::fleet) struct Beside {
    pub(in crate::storage::fleet) externals: Vec<ExternalId>,
    row: Option<(Key, Revision)>,
}

impl SharedStore {
    /// Keeps ids beside anchors that are stored.
    pub(in crate::storage::fleet) fn add_externals(
        &self,
        externals: &[(AnchorKey, ExternalId)],
    ) -> Result<(), StoreError> {
        for some in externals.chunks(ADDED_MAX) {
            let mut is_written = false;
            for _ in 0..TRIES_MAX {
                is_written = self.write_what_may_be_lost(self.adding(some)?)?;
                if is_written {
                    break;
                }
            }
            if !is_written {
                let error =
                    "other nodes have written the same conjunctions meanwhile, again and again";
                return Err(StoreError::new(FailureKind::Unreachable, error));
            }
        }
        Ok(())
    }

    /// The transaction that keeps a few ids.
    fn adding(&self, externals: &[(AnchorKey, ExternalId)]) -> Result<Transaction, StoreError> {
        let mut by_anchor: BTreeMap<&AnchorKey, Vec<&ExternalId>> = BTreeMap::new();
        externals
            .iter()
            .for_each(|(key, external)| by_anchor.entry(key).or_default().push(external));
        let anchors = by_anchor
            .keys()
            .map(|key| Range::one(self.keys.conjunction(&key.format, (key.tca, key.pair))));
        let anchors = self.read(&anchors.collect::<Vec<_>>())?;
        let beside = self.beside(by_anchor.keys().copied())?;
        let mut transaction = Transaction::default();
        for ((anchor, externals), (found, beside)) in
            by_anchor.into_iter().zip(anchors.iter().zip(beside))
        {
            // Its reports may be counted meanwhile.
            let Some(found) = found.first() else { continue };
            let mut all = beside.externals;
            let new = externals
                .into_iter()
                .filter(|external| externals_row::add(&mut all, external));
            let of_new =
                new.map(|external| Write::put(self.keys.external(anchor, external), Vec::new()));
            let before = transaction.write.len();
            transaction.write.extend(of_new);
            if transaction.write.len() > before {
                let key = self.keys.externals(anchor);
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

    /// What stands beside each of these anchors.
    pub(in crate::storage::fleet) fn beside<'a>(
        &self,
        anchors: impl Iterator<Item = &'a AnchorKey>,
    ) -> Result<Vec<Beside>, StoreError> {
        let ranges: Vec<Range> = anchors
            .map(|anchor| Range::one(self.keys.externals(anchor)))
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
            let externals = externals_of_bytes(&key, &value).ok_or_else(|| damaged(&key))?;
            Ok(Beside {
                externals,
                row: Some((key, modified)),
            })
        };
        self.read(&ranges)?.into_iter().map(beside).collect()
    }

    /// The anchors that have an id, at most `count_max`, the latest first.
    pub(in crate::storage::fleet) fn anchors_of_external(
        &self,
        format: &str,
        external: &ExternalId,
        count_max: usize,
    ) -> Result<Vec<AnchorKey>, StoreError> {
        if count_max == 0 {
            return Ok(Vec::new());
        }
        let rows = self.keys.anchors_of_external(format, external);
        let found = self.read_range(Range {
            count_max,
            is_descending: true,
            ..rows
        })?;
        let anchor = |entry: &KeyValue| {
            self.keys
                .anchor_of_external(format, &entry.key)
                .ok_or_else(|| damaged(&entry.key))
        };
        found.iter().map(anchor).collect()
    }
}

impl Beside {
    /// How many rows there are.
    pub(in crate::storage::fleet) fn row_count(&self) -> usize {
        self.row.iter().len() + self.externals.len()
    }

    /// Has a transaction forget these rows with the anchor.
    pub(in crate::storage::fleet) fn forget(
        &self,
        anchor: &AnchorKey,
        store: &SharedStore,
        transaction: &mut Transaction,
    ) {
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
            .map(|external| Write::Delete(store.keys.external(anchor, external)));
        transaction.write.extend(of_externals);
    }
}
