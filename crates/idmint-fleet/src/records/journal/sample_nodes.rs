//! Test nodes with journals. They share a coordinator that tests can back up, restore and inspect.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;

use super::{AppendJournal, JournalCopies, JournalImport, Reimported};
use crate::coordinator::{Coordinator, CoordinatorError, MemoryCoordinator, Range, Revision};
use crate::records::known_fleet::{AgreedMeta, FleetEra, KnownFleet};
use crate::records::{FleetRecords, ImportError};
use idmint_core::time::UnixNanos;
use idmint_records::ledger::{AppendPlan, EventId};
use idmint_storage::Namespace;
use idmint_storage::{RecordPlan, RecordStore};

/// The first era of the fleet, in which most tests begin.
pub(super) const FIRST: FleetEra = FleetEra {
    fences: 0,
    floor: UnixNanos::from_seconds(1),
    origin: 7,
};
/// The next era of the same fleet, after a fence.
pub(super) const FENCED: FleetEra = FleetEra {
    floor: UnixNanos::from_seconds(2),
    ..FIRST
};
/// An era that began with a fence that lowered the floor, because a clock far ahead had set the
/// previous floor.
pub(super) const LOWERED: FleetEra = FleetEra {
    fences: 1,
    floor: UnixNanos::from_seconds(0),
    ..FIRST
};

/// Nodes of one fleet, each with a data folder.
pub(super) struct SampleNodes {
    pub(super) store: Arc<MemoryCoordinator>,
    pub(super) folders: Vec<TempDir>,
    failures: Arc<AtomicU64>,
}

impl SampleNodes {
    pub(super) fn of(nodes: usize) -> SampleNodes {
        let folders = (0..nodes).map(|_| tempfile::tempdir().unwrap()).collect();
        SampleNodes {
            store: Arc::default(),
            folders,
            failures: Arc::default(),
        }
    }

    /// Starts a process of the node `number`. `era` is the fleet's current era.
    pub(super) fn node(&self, number: usize, era: FleetEra) -> FleetRecords {
        self.node_on(Arc::clone(&self.store) as Arc<dyn Coordinator>, number, era)
    }

    pub(super) fn node_on(
        &self,
        coordinator: Arc<dyn Coordinator>,
        number: usize,
        era: FleetEra,
    ) -> FleetRecords {
        self.nameless(coordinator, era)
            .with_journal(Some(self.journal(number)))
    }

    /// Starts a process of the node `number` that is killed right after its next commit, before it
    /// journals that commit.
    pub(super) fn killed(&self, number: usize, era: FleetEra) -> FleetRecords {
        let killed = self.store.committed_by(|store, transaction| {
            store.commit(transaction)?;
            Err(CoordinatorError::Refused("killed".to_owned()))
        });
        self.node_on(killed, number, era)
    }

    /// Starts a node without a journal.
    pub(super) fn forgetful(&self) -> FleetRecords {
        self.nameless(Arc::clone(&self.store) as Arc<dyn Coordinator>, FIRST)
    }

    pub(super) fn journal(&self, number: usize) -> AppendJournal {
        let failures = Arc::clone(&self.failures);
        let count = move || {
            failures.fetch_add(1, Ordering::Relaxed);
        };
        AppendJournal::of(self.folders[number].path(), &Namespace::default(), count)
    }

    fn nameless(&self, coordinator: Arc<dyn Coordinator>, era: FleetEra) -> FleetRecords {
        let known = Arc::new(KnownFleet::agreeing(AgreedMeta {
            era,
            ..AgreedMeta::default()
        }));
        FleetRecords::new(
            coordinator,
            &Namespace::default(),
            known,
            Arc::default(),
            rand::random(),
        )
    }

    /// Returns the number of failed writes to a journal.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Reads the journals of these nodes.
    pub(super) fn copies(&self, nodes: impl IntoIterator<Item = usize>) -> JournalCopies {
        let paths: Vec<PathBuf> = nodes
            .into_iter()
            .map(|node| self.folders[node].path().to_owned())
            .collect();
        JournalCopies::read(&paths, &Namespace::default()).unwrap()
    }

    pub(super) fn import(&self, copies: &JournalCopies) -> Reimported {
        self.try_import(Arc::clone(&self.store) as Arc<dyn Coordinator>, copies)
            .unwrap()
    }

    pub(super) fn try_import(
        &self,
        coordinator: Arc<dyn Coordinator>,
        copies: &JournalCopies,
    ) -> Result<Reimported, ImportError> {
        JournalImport::new(coordinator, &Namespace::default(), Revision::ABSENT, copies).run()
    }

    /// Returns all stored rows whose keys are of these kinds, such as `ledger` or `event`.
    pub(super) fn stored(&self, kinds: &[&str]) -> BTreeMap<String, Vec<u8>> {
        let all = self
            .store
            .read(&[Range::prefix("/")])
            .unwrap()
            .ranges
            .remove(0);
        let is_of = |key: &str| {
            kinds
                .iter()
                .any(|kind| key.starts_with(&format!("/idmint/v1/default/{kind}/")))
        };
        all.into_iter()
            .filter(|entry| is_of(&entry.key))
            .map(|entry| (entry.key, entry.value))
            .collect()
    }
}

/// Writes an append and returns its plan.
pub(super) fn write(records: &dyn RecordStore, plan: AppendPlan) -> AppendPlan {
    records.write(&[RecordPlan::Append(plan.clone())]).unwrap();
    plan
}

/// Returns the ids of the events of a plan.
pub(super) fn ids(plan: &AppendPlan) -> Vec<EventId> {
    plan.links().map(|link| link.id).collect()
}
