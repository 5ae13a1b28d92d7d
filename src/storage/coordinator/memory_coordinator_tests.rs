//! What tests make a coordinator in memory do, and what its leases do.

use std::fmt::{self, Debug};
use std::sync::Arc;

use super::*;

impl MemoryCoordinator {
    /// A copy of everything that is stored now, as a backup is.
    pub(crate) fn copy(&self) -> MemoryCoordinator {
        let state = self.state().clone();
        MemoryCoordinator {
            state: Mutex::new(state),
            ..MemoryCoordinator::within(self.bounds)
        }
    }

    /// Puts back an earlier copy. Leases are granted under new numbers, as by a real one, which draws them at random.
    pub(crate) fn restore(&self, copy: &MemoryCoordinator) {
        let earlier = copy.state().clone();
        let mut state = self.state();
        *state = State {
            leases_granted: state.leases_granted,
            ..earlier
        };
    }

    /// The same store with other commits: `commit` has the store, and what is asked of it.
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

    /// From now on whoever asks stands still for so long behind each answer.
    pub(crate) fn stand_still_behind_answers(&self, pause: Duration) {
        self.hand().pause = pause;
    }

    /// The revision of the last write.
    pub(crate) fn revision(&self) -> Revision {
        self.state().revision
    }

    /// Ends a lease now, with all keys under it.
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
