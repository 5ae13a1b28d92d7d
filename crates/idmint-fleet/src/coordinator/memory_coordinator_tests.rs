//! Methods that let tests control a coordinator in memory, and tests of its leases.

use std::fmt::{self, Debug};
use std::sync::Arc;

use super::*;

impl MemoryCoordinator {
    /// Returns a copy of the current content, like a backup.
    pub(crate) fn copy(&self) -> MemoryCoordinator {
        let state = self.state().clone();
        MemoryCoordinator {
            state: Mutex::new(state),
            ..MemoryCoordinator::default()
        }
    }

    /// Replaces the content with an earlier copy. Later leases get new ids, as in etcd, which draws
    /// lease ids at random.
    pub(crate) fn restore(&self, copy: &MemoryCoordinator) {
        let earlier = copy.state().clone();
        let mut state = self.state();
        *state = State {
            leases_granted: state.leases_granted,
            ..earlier
        };
    }

    /// Returns a coordinator on top of this store that handles each commit by calling
    /// `commit(store, transaction)`. That function decides whether the store commits, and which
    /// outcome the caller sees.
    pub(crate) fn committed_by<F>(self: &Arc<Self>, commit: F) -> Arc<dyn Coordinator>
    where
        F: Fn(&MemoryCoordinator, &Transaction) -> Result<Outcome, CoordinatorError>
            + Send
            + Sync
            + 'static,
    {
        Arc::new(CommittedBy {
            memory: Arc::clone(self),
            commit,
        })
    }

    /// From now on, advances the callers' clock by `pause` before each response. To callers this
    /// looks like a process that is suspended while it waits for the response.
    pub(crate) fn stand_still_behind_answers(&self, pause: Duration) {
        self.hand().pause = pause;
    }

    /// Returns the revision of the last write.
    pub(crate) fn revision(&self) -> Revision {
        self.state().revision
    }

    /// Ends a lease at once, and deletes all keys under it.
    pub(crate) fn end_lease(&self, lease: Lease) {
        let mut state = self.state();
        if state.leases.remove(&lease.0) {
            state.revision = Revision(state.revision.0 + 1);
            state
                .entries
                .retain(|_, (_, held_by)| *held_by != Some(lease));
        }
    }
}

/// A coordinator that passes each commit to a function.
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

#[test]
fn a_lease_that_ends_takes_its_keys_along() {
    let coordinator = MemoryCoordinator::default();
    let lease = coordinator
        .grant(Duration::from_secs(60))
        .expect("never fails");
    let put = |key: &str, lease| Write::Put {
        key: key.to_owned(),
        value: Vec::new(),
        lease,
    };
    let write = Transaction {
        write: vec![put("held", Some(lease)), put("kept", None)],
        ..Transaction::default()
    };
    coordinator.commit(&write).expect("the lease is there");
    assert_eq!(coordinator.keep_alive(lease), Ok(true));
    coordinator.end_lease(lease);
    assert_eq!(coordinator.keep_alive(lease), Ok(false));
    let left = coordinator.read(&[Range {
        to: Some("z".to_owned()),
        count_max: 0,
        ..Range::one("a")
    }]);
    let left = left.expect("never fails").ranges.remove(0);
    assert_eq!(
        left.iter()
            .map(|entry| entry.key.as_str())
            .collect::<Vec<_>>(),
        ["kept"]
    );
    assert!(matches!(
        coordinator.commit(&write),
        Err(CoordinatorError::Refused(_))
    ));
}
