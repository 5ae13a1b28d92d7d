//! What a coordinator can do, and how it fails.

use std::fmt::Debug;
use std::thread;
use std::time::Duration;

use super::member::Member;
use super::transaction::{Lease, Outcome, Range, Snapshot, Transaction};
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
