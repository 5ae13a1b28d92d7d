//! The interface of a coordinator, the store that the nodes of a fleet share, and its errors.

use std::fmt::Debug;
use std::thread;
use std::time::Duration;

use super::member::Member;
use super::transaction::{Lease, Outcome, Range, Snapshot, Transaction};
use idmint_core::time::since_boot;

/// A store that several nodes share. Each call blocks until the response arrives, for about a
/// second at most.
pub trait Coordinator: Debug + Send + Sync {
    /// Checks the conditions of a transaction and performs its writes in one atomic step. If a
    /// condition fails, writes nothing, and reads the ranges in `otherwise` in the same step.
    ///
    /// # Errors
    /// Returns [`CoordinatorError`] if the transaction was not done, or if its outcome is unknown.
    fn commit(&self, transaction: &Transaction) -> Result<Outcome, CoordinatorError>;

    /// Reads several ranges at a single revision.
    ///
    /// # Errors
    /// Returns [`CoordinatorError`] if no response arrives.
    fn read(&self, ranges: &[Range]) -> Result<Snapshot, CoordinatorError>;

    /// Creates a lease that expires unless it is kept alive within `lasts`. The keys under an
    /// expired lease are deleted.
    ///
    /// # Errors
    /// Returns [`CoordinatorError`] if no response arrives. The coordinator may have created the
    /// lease nevertheless. That lease expires by itself, because no node keeps it alive.
    fn grant(&self, lasts: Duration) -> Result<Lease, CoordinatorError>;

    /// Extends a lease by its full duration, counted from now. Returns `false` if the lease no
    /// longer exists.
    ///
    /// # Errors
    /// Returns [`CoordinatorError`] if no response arrives.
    fn keep_alive(&self, lease: Lease) -> Result<bool, CoordinatorError>;

    /// Waits for `pause` before a retry. A simulated coordinator does not wait.
    fn wait(&self, pause: Duration) {
        thread::sleep(pause);
    }

    /// Returns the time since boot, from which callers compute the age of a response. This time
    /// also advances while the process is suspended.
    fn time(&self) -> Duration {
        since_boot()
    }

    /// Returns the state of each member (server) of the coordinator, or an empty list if it has
    /// none. The call may take one second for each member that does not respond.
    fn members(&self) -> Vec<Member> {
        Vec::new()
    }
}

/// The reason why a request failed, or why its outcome is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CoordinatorError {
    /// No response arrived in time. The request may have been done, or may still be done later.
    #[error("the coordinator (etcd) did not respond: {0}")]
    NoAnswer(String),
    /// No member received the request, or no quorum was available. The request was certainly not
    /// done.
    #[error("the coordinator (etcd) cannot be reached: {0}")]
    NotSent(String),
    /// The coordinator refused the request because it has no space left. The request was not done.
    #[error("the coordinator (etcd) is full: {0}")]
    Full(String),
    /// The coordinator refused the request because of its size or content. The request was not
    /// done.
    #[error("the coordinator (etcd) refused the request: {0}")]
    Refused(String),
    /// The coordinator refused the request because the user or password is wrong, or permissions
    /// are missing. The request was not done.
    #[error("the coordinator (etcd) refused the credentials of this node: {0}")]
    Denied(String),
}
