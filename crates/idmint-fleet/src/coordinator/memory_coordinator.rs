//! A coordinator in the memory of one process. This store never fails. Tests wrap it to inject
//! failures.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::coordinator::{Coordinator, CoordinatorError};
use super::transaction::{
    Compare, Key, KeyValue, Lease, Outcome, REQUEST_BYTES_MAX, Range, Revision, Snapshot, Term,
    Transaction, Write,
};

/// etcd's default for `--max-txn-ops`. The limit applies separately to the comparisons of a
/// transaction and to each of its two lists of operations.
const OPERATIONS_MAX: usize = 128;

/// An in-memory store of keys and values. Leases never expire, but a test can
/// [end](Self::end_lease) them.
#[derive(Debug, Default)]
pub struct MemoryCoordinator {
    state: Mutex<State>,
    hand: Mutex<Hand>,
}

/// The clock that callers of this coordinator see.
#[derive(Debug, Default)]
struct Hand {
    time: Duration,
    /// The clock advances by this much before each response.
    pause: Duration,
}

#[derive(Debug, Default, Clone)]
struct State {
    revision: Revision,
    entries: BTreeMap<Key, (KeyValue, Option<Lease>)>,
    leases: BTreeSet<i64>,
    leases_granted: i64,
}

impl MemoryCoordinator {
    fn answered<T>(&self, answer: T) -> T {
        let mut hand = self.hand();
        hand.time = hand.time.saturating_add(hand.pause);
        answer
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    fn hand(&self) -> MutexGuard<'_, Hand> {
        self.hand.lock().expect("no holder of this lock panics")
    }
}

impl Coordinator for MemoryCoordinator {
    fn commit(&self, transaction: &Transaction) -> Result<Outcome, CoordinatorError> {
        assert_etcd_takes(transaction);
        let mut state = self.state();
        if !transaction
            .compare
            .iter()
            .all(|compare| state.holds(compare))
        {
            return self.answered(Ok(Outcome::Refused(state.read(&transaction.otherwise))));
        }
        let without_lease = |write: &&Write| matches!(write, Write::Put { lease: Some(lease), .. } if !state.leases.contains(&lease.0));
        if transaction.write.iter().any(|write| without_lease(&write)) {
            return Err(CoordinatorError::Refused(
                "requested lease not found".to_owned(),
            ));
        }
        if !transaction.write.is_empty() {
            state.revision = Revision(state.revision.0 + 1);
        }
        transaction
            .write
            .iter()
            .for_each(|write| state.write(write));
        self.answered(Ok(Outcome::Committed(state.read(&transaction.then_read))))
    }

    fn read(&self, ranges: &[Range]) -> Result<Snapshot, CoordinatorError> {
        self.answered(Ok(self.state().read(ranges)))
    }

    fn grant(&self, _lasts: Duration) -> Result<Lease, CoordinatorError> {
        let mut state = self.state();
        state.leases_granted += 1;
        let lease = state.leases_granted;
        state.leases.insert(lease);
        Ok(Lease(lease))
    }

    fn keep_alive(&self, lease: Lease) -> Result<bool, CoordinatorError> {
        Ok(self.state().leases.contains(&lease.0))
    }

    fn wait(&self, _pause: Duration) {}

    fn time(&self) -> Duration {
        self.hand().time
    }
}

/// Panics if etcd would reject the transaction. Such a transaction is a bug in the caller.
fn assert_etcd_takes(
    transaction @ Transaction {
        compare,
        write,
        then_read,
        otherwise,
    }: &Transaction,
) {
    let operations = compare
        .len()
        .max(write.len() + then_read.len())
        .max(otherwise.len());
    assert!(operations <= OPERATIONS_MAX, "too many operations");
    let key_of = |write| match write {
        &Write::Put { ref key, .. } | &Write::Delete(ref key) => key,
    };
    let keys: BTreeSet<&Key> = write.iter().map(key_of).collect();
    assert_eq!(keys.len(), write.len(), "a key is written twice");
    assert!(transaction.size() <= REQUEST_BYTES_MAX, "too many bytes");
}

impl State {
    fn holds(&self, compare: &Compare) -> bool {
        let entry = |key: &Key| self.entries.get(key).map(|(entry, _)| entry);
        match compare {
            Compare::Modified(key, revision) => {
                entry(key).map_or(Revision::ABSENT, |entry| entry.modified) == *revision
            }
            Compare::Created(key, revision) => {
                entry(key).map_or(Revision::ABSENT, |entry| entry.created) == *revision
            }
        }
    }

    fn write(&mut self, write: &Write) {
        match write {
            Write::Put { key, value, lease } => {
                let created = self
                    .entries
                    .get(key)
                    .map_or(self.revision, |(entry, _)| entry.created);
                let entry = KeyValue {
                    key: key.clone(),
                    value: value.clone(),
                    created,
                    modified: self.revision,
                };
                self.entries.insert(key.clone(), (entry, *lease));
            }
            Write::Delete(key) => {
                self.entries.remove(key);
            }
        }
    }

    fn read(&self, ranges: &[Range]) -> Snapshot {
        let within = |range: &Range| -> Vec<KeyValue> {
            let count_max = if range.count_max == 0 {
                usize::MAX
            } else {
                range.count_max
            };
            let Some(to) = &range.to else {
                return self
                    .entries
                    .get(&range.from)
                    .map(|(entry, _)| entry.clone())
                    .into_iter()
                    .collect();
            };
            if *to <= range.from {
                return Vec::new();
            }
            let found = self
                .entries
                .range::<str, _>((Bound::Included(&*range.from), Bound::Excluded(&**to)));
            let found = found.map(|(_, (entry, _))| entry);
            match range.is_descending {
                false => found.take(count_max).cloned().collect(),
                true => found.rev().take(count_max).cloned().collect(),
            }
        };
        Snapshot {
            revision: self.revision,
            ranges: ranges.iter().map(within).collect(),
            term: Term::default(),
        }
    }
}

#[cfg(test)]
#[path = "memory_coordinator_tests.rs"]
mod tests;
