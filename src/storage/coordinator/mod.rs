//! The shared store of a fleet, as the protocols see it: a few keys, and transactions that compare before they write.
//!
//! What a coordinator can do is what etcd can do, and no more; `etcd/` speaks to one, and the tests have one that fails on
//! purpose. Three rules hold for whoever uses it:
//!
//! - Every write is a transaction that compares the revision it was decided on. A read is a hint.
//! - Only an outcome says that something was written. No answer says nothing.
//! - A transaction without an answer is sent again byte for byte, or given up; it is never made anew from later values under
//!   the same comparison. So at most one copy of it can commit: the first changes what the others compare.

mod member;
#[cfg(test)]
mod memory_coordinator;
mod transaction;

use std::fmt::Debug;
use std::thread;
use std::time::Duration;

pub use member::{Member, MemberState, Space};
#[cfg(test)]
pub(crate) use memory_coordinator::MemoryCoordinator;
pub use transaction::{Compare, Entry, Key, Lease, Outcome, Range, Revision, Snapshot, Transaction, Write};

use crate::time::since_boot;

/// A store that several nodes share. Every call waits for its answer, at most about a second.
pub trait Coordinator: Debug + Send + Sync {
    /// Compares and writes in one step, or, where a comparison fails, reads in one step what the caller asked for.
    ///
    /// # Errors
    /// [`CoordinatorError`].
    fn commit(&self, transaction: &Transaction) -> Result<Outcome, CoordinatorError>;

    /// Reads ranges at one revision.
    ///
    /// # Errors
    /// [`CoordinatorError`].
    fn read(&self, ranges: &[Range]) -> Result<Snapshot, CoordinatorError>;

    /// A new lease: keys under it are deleted when it was not kept alive for so long.
    ///
    /// # Errors
    /// [`CoordinatorError`]; a lease that nobody knows of ends by itself.
    fn grant(&self, lasts: Duration) -> Result<Lease, CoordinatorError>;

    /// Begins the time of a lease anew. Returns whether there still is one.
    ///
    /// # Errors
    /// [`CoordinatorError`].
    fn keep_alive(&self, lease: Lease) -> Result<bool, CoordinatorError>;

    /// Waits before something is sent again. In a simulated one no time passes.
    fn wait(&self, pause: Duration) {
        thread::sleep(pause);
    }

    /// The time by which answers grow old: that since boot, which passes while this process stands still.
    fn time(&self) -> Duration {
        since_boot()
    }

    /// What each of its members says of itself; nothing where there are none. May take a second for each that is silent.
    fn members(&self) -> Vec<Member> {
        Vec::new()
    }
}

/// A request to a coordinator without an outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CoordinatorError {
    /// No answer in time: it may have been done, it may be done yet.
    #[error("no answer from the coordinator: {0}")]
    NoAnswer(String),
    /// It was certainly not done: no connection, or no quorum before it was sent.
    #[error("the coordinator cannot be reached: {0}")]
    NotSent(String),
    /// It was refused and not done: no space left.
    #[error("the coordinator is full: {0}")]
    Full(String),
    /// It was refused and not done: a wrong user, a wrong cluster, a request too large.
    #[error("the coordinator refuses: {0}")]
    Refused(String),
}
