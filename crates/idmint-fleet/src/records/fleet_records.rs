//! The store for all records that the nodes of a fleet share. Other modules implement the methods
//! for ledgers, series, conjunctions and requests.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::journal::AppendJournal;
use super::keys::Keys;
use super::known_fleet::{FleetEra, KnownFleet};
use super::room::Room;
use super::rows::Attempt;
use super::shared_store::{Asked, BYTES_MAX, NO_ROOM, NotWritten, SharedStore, Written, fits};
use super::transaction_draft::{PAIR_LEN, TransactionDraft, fitting, has_landed, journalled};
use crate::coordinator::{Coordinator, Key, KeyValue, Write};
use idmint_core::time::UnixNanos;
use idmint_storage::{
    BackedUp, FailureKind, Namespace, Obstacle, RecordPlan, RecordStore, StoreError, WriteError,
};

/// The record store that the nodes of a fleet share.
pub struct FleetRecords {
    pub(super) store: SharedStore,
    room: Arc<Room>,
    /// A random number that identifies this process.
    process: u64,
    /// The number of transactions that this process has attempted so far, which is the next
    /// transaction's attempt number. Relaxed accesses suffice, because the numbers only have to
    /// differ.
    attempts: AtomicU64,
    /// The sizes in bytes of those rows of pairs that are longer than [`PAIR_LEN`], by key, as of
    /// the last read.
    long_pairs: Mutex<HashMap<Key, usize>>,
    /// The journal of this node, or `None` in a process that keeps no journal, such as a test.
    journal: Option<AppendJournal>,
}

impl FleetRecords {
    /// Creates the record store of a namespace. `known` is this node's knowledge of the fleet.
    /// `room` says whether the coordinator has space for more records. `process` is a random number
    /// that identifies this process.
    pub fn new(
        coordinator: Arc<dyn Coordinator>,
        namespace: &Namespace,
        known: Arc<KnownFleet>,
        room: Arc<Room>,
        process: u64,
    ) -> FleetRecords {
        let store = SharedStore::new(coordinator, Keys::of(namespace), known);
        FleetRecords {
            store,
            room,
            process,
            attempts: AtomicU64::new(0),
            long_pairs: Mutex::default(),
            journal: None,
        }
    }

    /// Sets the journal. Each row is written to the journal before a response that relies on it is
    /// sent.
    #[must_use]
    pub fn with_journal(self, journal: Option<AppendJournal>) -> FleetRecords {
        FleetRecords { journal, ..self }
    }

    fn long_pairs(&self) -> MutexGuard<'_, HashMap<Key, usize>> {
        self.long_pairs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers which of these rows of pairs are long, because fewer of them fit into one
    /// transaction.
    pub(super) fn note_pairs<'r>(&self, rows: impl IntoIterator<Item = (&'r Key, &'r Vec<u8>)>) {
        let mut long_pairs = self.long_pairs();
        for (key, value) in rows {
            if value.len() > PAIR_LEN {
                long_pairs.insert(key.clone(), value.len());
            } else if !long_pairs.is_empty() {
                long_pairs.remove(key);
            }
        }
    }

    pub(super) fn attempt(&self) -> Attempt {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        Attempt(u128::from(self.process) << 64 | u128::from(number))
    }

    /// Writes committed rows to this node's journal. Call this before sending a response that
    /// relies on the rows. `era` is the era in which they were committed.
    fn keep<'a>(&self, era: FleetEra, rows: impl IntoIterator<Item = (&'a str, &'a [u8])>) {
        if let Some(journal) = &self.journal {
            journal.keep(era, &rows.into_iter().collect::<Vec<_>>());
        }
    }

    /// Writes rows to the journal, and checks that they were requested at most `JOURNALLED_WITHIN`
    /// ago, at `asked`. After a restore of the coordinator, the journals then have all rows that
    /// responses rely on.
    ///
    /// # Errors
    /// Returns [`StoreError`] if this process was suspended in the meantime. Without a journal, the
    /// check is skipped, because no row could be recovered anyway.
    fn keep_in_time<'a>(
        &self,
        asked: Asked,
        era: FleetEra,
        rows: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<(), StoreError> {
        self.keep(era, rows);
        self.journal
            .as_ref()
            .map_or(Ok(()), |_| self.store.check_in_time(asked))
    }

    /// Writes rows that were read from the coordinator to this node's journal. Fails if the read
    /// was sent too long ago, because an operator may have imported the journal without these rows.
    ///
    /// # Errors
    /// Returns the errors of [`FleetRecords::keep_in_time`].
    pub(super) fn keep_read(
        &self,
        asked: Asked,
        era: FleetEra,
        rows: &[KeyValue],
    ) -> Result<(), StoreError> {
        let rows = rows
            .iter()
            .map(|row| (row.key.as_str(), row.value.as_slice()));
        self.keep_in_time(asked, era, rows)
    }
}

impl RecordStore for FleetRecords {
    fn fitting(&self, plans: &[RecordPlan]) -> usize {
        let long_pairs = self.long_pairs();
        fitting(plans, |format, pair| {
            let len = (!long_pairs.is_empty())
                .then(|| long_pairs.get(&self.store.keys.pair(format, pair)));
            len.flatten().map_or(PAIR_LEN, |len| *len)
        })
    }

    fn write(&self, plans: &[RecordPlan]) -> Result<(), WriteError> {
        assert_eq!(
            fitting(plans, |_, _| PAIR_LEN),
            plans.len(),
            "a caller writes no more than fits into a transaction"
        );
        if plans.is_empty() {
            return Ok(());
        }
        if self.room.is_scarce() {
            return Err(WriteError::NotWritten(NO_ROOM.into()));
        }
        if plans
            .iter()
            .any(|plan| matches!(plan, RecordPlan::Close(_)))
        {
            self.check_closing().map_err(WriteError::NotWritten)?;
        }
        let era = self.store.era();
        let lacks = |key: &str| {
            self.journal
                .as_ref()
                .is_some_and(|journal| journal.lacks(era, key))
        };
        let mut round = TransactionDraft::read(&self.store, self.attempt(), plans, &lacks)
            .map_err(WriteError::NotWritten)?;
        if !plans.iter().all(|plan| round.add(plan)) {
            return Err(WriteError::Stale);
        }
        let (transaction, era) = (round.transaction(), self.store.era());
        if plans.len() == 1 && transaction.size() > BYTES_MAX {
            return Err(WriteError::TooLong(self.store.too_long(&transaction)));
        }
        if !fits(&transaction) {
            // The rows of pairs have grown since they were last read. Remember their sizes, so that
            // the next attempt takes fewer plans.
            let pairs = transaction.write.iter().filter_map(|write| match write {
                Write::Put { key, value, .. } => self.store.keys.pair_of(key).map(|_| (key, value)),
                Write::Delete(_) => None,
            });
            self.note_pairs(pairs);
            return Err(WriteError::Stale);
        }
        // Before the commit, journal the rows that precede the new ones. Suppose that three nodes
        // append to a ledger one after the other, and each is killed after its commit, before it
        // writes to its journal. Without this step, no journal would have any of the three commits.
        self.keep(era, round.predecessors());
        match self.store.write(transaction.clone(), |stored| {
            has_landed(&transaction, stored)
        }) {
            Ok(Written::Committed(asked)) => {
                let rows = journalled(&self.store.keys, &transaction);
                self.keep_in_time(asked, era, rows)
                    .map_err(WriteError::Store)
            }
            Ok(Written::Stale) => Err(WriteError::Stale),
            Err(NotWritten::Refused(error)) => Err(WriteError::NotWritten(error)),
            Err(NotWritten::Unknown(error)) => Err(WriteError::Store(error)),
        }
    }

    fn judging_time(&self, now: UnixNanos) -> Result<Option<UnixNanos>, StoreError> {
        self.store.judging_time(now)
    }

    fn back_up(&self, _: &Path) -> Result<BackedUp, StoreError> {
        let advice = "etcd stores the records of a fleet: back it up with etcd snapshots (docs/OPERATIONS.md)";
        Err(StoreError::new(FailureKind::NotUsable, advice))
    }

    fn obstacle(&self) -> Option<Obstacle> {
        self.store.obstacle()
    }

    fn reopen(&self) -> Result<(), StoreError> {
        self.store.look_again()
    }

    fn write_obstacle(&self) -> Option<Obstacle> {
        let is_scarce = self.room.is_scarce();
        is_scarce.then_some(NO_ROOM).or(self.store.write_obstacle())
    }

    fn holds_numbers(&self) -> bool {
        self.knows_hold()
    }

    fn look_at_hold(&self) -> Result<(), StoreError> {
        self.looks_at_hold()
    }

    fn is_remote(&self) -> bool {
        true
    }
}

impl fmt::Debug for FleetRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetRecords")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "fleet_records_tests.rs"]
mod tests;
