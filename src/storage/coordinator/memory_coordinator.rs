//! A coordinator in memory that never fails, for tests: those that fail on purpose are made around it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug};
use std::ops::Bound;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{
    Compare, Coordinator, CoordinatorError, Entry, Key, Lease, Outcome, Range, Revision, Snapshot, Transaction, Write,
};

/// Keys and values of one process. Leases end only when a test [ends](Self::end_lease) them.
#[derive(Debug, Default)]
pub(crate) struct MemoryCoordinator {
    state: Mutex<State>,
    hand: Mutex<Hand>,
}

/// The time of those who ask.
#[derive(Debug, Default)]
struct Hand {
    time: Duration,
    /// How long they stand still behind each answer.
    pause: Duration,
}

#[derive(Debug, Default, Clone)]
struct State {
    revision: Revision,
    entries: BTreeMap<Key, (Entry, Option<Lease>)>,
    leases: BTreeSet<i64>,
    leases_granted: i64,
}

impl MemoryCoordinator {
    /// A copy of everything that is stored now, as a backup is.
    pub(crate) fn copy(&self) -> MemoryCoordinator {
        let state = self.state.lock().expect("no holder of this lock panics").clone();
        MemoryCoordinator { state: Mutex::new(state), hand: Mutex::default() }
    }

    /// Puts back an earlier copy. Leases are granted under new numbers, as by a real one, which draws them at random.
    pub(crate) fn restore(&self, copy: &MemoryCoordinator) {
        let earlier = copy.state.lock().expect("no holder of this lock panics").clone();
        let mut state = self.state.lock().expect("no holder of this lock panics");
        *state = State { leases_granted: state.leases_granted, ..earlier };
    }

    /// The same store with other commits: `commit` has the store, and what is asked of it.
    pub(crate) fn committed_by<F>(self: &Arc<Self>, commit: F) -> Arc<dyn Coordinator>
    where
        F: Fn(&MemoryCoordinator, &Transaction) -> Result<Outcome, CoordinatorError> + Send + Sync + 'static,
    {
        Arc::new(CommittedBy { memory: Arc::clone(self), commit })
    }

    /// From now on whoever asks stands still for so long behind each answer.
    pub(crate) fn stand_still_behind_answers(&self, pause: Duration) {
        self.hand.lock().expect("no holder of this lock panics").pause = pause;
    }

    fn answered<T>(&self, answer: T) -> T {
        let mut hand = self.hand.lock().expect("no holder of this lock panics");
        hand.time = hand.time.saturating_add(hand.pause);
        answer
    }

    /// The revision of the last write.
    pub(crate) fn revision(&self) -> Revision {
        self.state.lock().expect("no holder of this lock panics").revision
    }

    /// Ends a lease now, with all keys under it.
    pub(crate) fn end_lease(&self, lease: Lease) {
        let mut state = self.state.lock().expect("no holder of this lock panics");
        if state.leases.remove(&lease.0) {
            state.revision = Revision(state.revision.0 + 1);
            state.entries.retain(|_, (_, held_by)| *held_by != Some(lease));
        }
    }
}

/// A coordinator whose commits go through a function.
struct CommittedBy<F> {
    memory: Arc<MemoryCoordinator>,
    commit: F,
}

impl<F> Debug for CommittedBy<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.memory.fmt(out)
    }
}

impl<F> Coordinator for CommittedBy<F>
where
    F: Fn(&MemoryCoordinator, &Transaction) -> Result<Outcome, CoordinatorError> + Send + Sync,
{
    fn commit(&self, transaction: &Transaction) -> Result<Outcome, CoordinatorError> {
        (self.commit)(&self.memory, transaction)
    }

    fn read(&self, ranges: &[Range]) -> Result<Snapshot, CoordinatorError> {
        self.memory.read(ranges)
    }

    fn grant(&self, lasts: Duration) -> Result<Lease, CoordinatorError> {
        self.memory.grant(lasts)
    }

    fn keep_alive(&self, lease: Lease) -> Result<bool, CoordinatorError> {
        self.memory.keep_alive(lease)
    }

    fn wait(&self, pause: Duration) {
        self.memory.wait(pause);
    }

    fn time(&self) -> Duration {
        self.memory.time()
    }
}

impl Coordinator for MemoryCoordinator {
    fn commit(&self, transaction: &Transaction) -> Result<Outcome, CoordinatorError> {
        assert_etcd_would_take(transaction);
        let mut state = self.state.lock().expect("no holder of this lock panics");
        if !transaction.compare.iter().all(|compare| state.holds(compare)) {
            return self.answered(Ok(Outcome::Refused(state.read(&transaction.otherwise))));
        }
        let without_lease =
            |write: &&Write| matches!(write, Write::Put { lease: Some(lease), .. } if !state.leases.contains(&lease.0));
        if transaction.write.iter().any(|write| without_lease(&write)) {
            return Err(CoordinatorError::Refused("requested lease not found".to_owned()));
        }
        if !transaction.write.is_empty() {
            state.revision = Revision(state.revision.0 + 1);
        }
        transaction.write.iter().for_each(|write| state.write(write));
        self.answered(Ok(Outcome::Committed(state.read(&transaction.then_read))))
    }

    fn read(&self, ranges: &[Range]) -> Result<Snapshot, CoordinatorError> {
        self.answered(Ok(self.state.lock().expect("no holder of this lock panics").read(ranges)))
    }

    fn grant(&self, _lasts: Duration) -> Result<Lease, CoordinatorError> {
        let mut state = self.state.lock().expect("no holder of this lock panics");
        state.leases_granted += 1;
        let lease = state.leases_granted;
        state.leases.insert(lease);
        Ok(Lease(lease))
    }

    fn keep_alive(&self, lease: Lease) -> Result<bool, CoordinatorError> {
        Ok(self.state.lock().expect("no holder of this lock panics").leases.contains(&lease.0))
    }

    fn wait(&self, _pause: Duration) {}

    fn time(&self) -> Duration {
        self.hand.lock().expect("no holder of this lock panics").time
    }
}

/// Operations of one kind, and bytes of a transaction, that etcd takes.
const OPERATIONS_MAX: usize = 128;
const BYTES_MAX: usize = 1_572_864;

/// A transaction that etcd would refuse is a mistake of whoever made it.
fn assert_etcd_would_take(Transaction { compare, write, then_read, otherwise }: &Transaction) {
    let operations = compare.len().max(write.len() + then_read.len()).max(otherwise.len());
    assert!(operations <= OPERATIONS_MAX, "too many operations");
    let key_of = |write: &Write| match write {
        Write::Put { key, .. } | Write::Delete(key) => key.clone(),
    };
    let keys: BTreeSet<Key> = write.iter().map(key_of).collect();
    assert_eq!(keys.len(), write.len(), "a key is written twice");
    let len_of = |write: &Write| match write {
        Write::Put { key, value, .. } => key.len() + value.len(),
        Write::Delete(key) => key.len(),
    };
    assert!(write.iter().map(len_of).sum::<usize>() < BYTES_MAX, "too many bytes");
}

impl State {
    fn holds(&self, compare: &Compare) -> bool {
        let entry = |key: &Key| self.entries.get(key).map(|(entry, _)| entry);
        match compare {
            Compare::Modified(key, revision) => {
                entry(key).map_or(Revision::ABSENT, |entry| entry.modified) == *revision
            }
            Compare::Created(key, revision) => entry(key).map_or(Revision::ABSENT, |entry| entry.created) == *revision,
        }
    }

    fn write(&mut self, write: &Write) {
        match write {
            Write::Put { key, value, lease } => {
                let created = self.entries.get(key).map_or(self.revision, |(entry, _)| entry.created);
                let entry = Entry { key: key.clone(), value: value.clone(), created, modified: self.revision };
                self.entries.insert(key.clone(), (entry, *lease));
            }
            Write::Delete(key) => {
                self.entries.remove(key);
            }
        }
    }

    fn read(&self, ranges: &[Range]) -> Snapshot {
        let within = |range: &Range| -> Vec<Entry> {
            let count_max = if range.count_max == 0 { usize::MAX } else { range.count_max };
            let Some(to) = &range.to else {
                return self.entries.get(&range.from).map(|(entry, _)| entry.clone()).into_iter().collect();
            };
            if *to <= range.from {
                return Vec::new();
            }
            let found = self.entries.range::<str, _>((Bound::Included(&*range.from), Bound::Excluded(&**to)));
            let found = found.map(|(_, (entry, _))| entry);
            match range.is_descending {
                false => found.take(count_max).cloned().collect(),
                true => found.rev().take(count_max).cloned().collect(),
            }
        };
        Snapshot { revision: self.revision, ranges: ranges.iter().map(within).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_ends_takes_its_keys_along() {
        let coordinator = MemoryCoordinator::default();
        let lease = coordinator.grant(Duration::from_secs(60)).expect("never fails");
        let put = |key: &str, lease| Write::Put { key: key.to_owned(), value: Vec::new(), lease };
        let write = Transaction { write: vec![put("held", Some(lease)), put("kept", None)], ..Transaction::default() };
        coordinator.commit(&write).expect("the lease is there");
        assert_eq!(coordinator.keep_alive(lease), Ok(true));
        coordinator.end_lease(lease);
        assert_eq!(coordinator.keep_alive(lease), Ok(false));
        let left = coordinator.read(&[Range { to: Some("z".to_owned()), count_max: 0, ..Range::one("a") }]);
        let left = left.expect("never fails").ranges.remove(0);
        assert_eq!(left.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["kept"]);
        assert!(matches!(coordinator.commit(&write), Err(CoordinatorError::Refused(_))));
    }
}
