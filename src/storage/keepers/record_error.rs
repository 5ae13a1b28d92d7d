//! Why a request about records was not done.

use tracing::error;

use crate::conjunction::GroupRefusal;
use crate::ledger::{AppendRefusal, NumberRefusal, VoidRefusal};
use crate::minting::Refusal;
use crate::storage::failure::{FailureKind, StoreError, WithCauses};

/// Requests that may wait for the thread; a further one is refused.
pub(super) const WAITING_MAX: usize = 1_024;

/// A request that was not done, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The events cannot be appended.
    #[error("the events cannot be appended")]
    Append(AppendRefusal),
    /// The key came with another request.
    #[error("the idempotency key was used before for other events")]
    KeyConflict,
    /// No number can be given.
    #[error(transparent)]
    Number(NumberRefusal),
    /// The number cannot be made void.
    #[error(transparent)]
    Void(VoidRefusal),
    /// A report cannot be grouped.
    #[error("a report cannot be grouped")]
    Group(GroupRefusal),
    /// The clock cannot be right, and what is appended carries its time for ever.
    #[error("nothing is appended now: {0}")]
    Clock(Refusal),
    /// Too many requests wait.
    #[error("{WAITING_MAX} orders wait to be written already")]
    Busy,
    /// The store that nodes share does not answer. Nothing was written.
    #[error("the coordinator (etcd) does not answer, or has no quorum; the log says how")]
    Unreachable,
    /// The store cannot be read or written. Nothing was written.
    #[error("the store cannot be read or written; the log says how")]
    Unavailable,
    /// Whether it was written is not known.
    #[error("it is not known whether this was written: ask again with the same key")]
    Unknown,
}

/// Logs why the store cannot be read, and returns what its caller is told.
pub fn log_unreadable(error: &StoreError) -> RecordError {
    error!("the records cannot be read: {}", WithCauses(error));
    RecordError::of_failure(error.failure_kind())
}

/// Logs why the store did not take what may be written again, and returns what its caller is told.
pub(super) fn log_unwritten(error: &StoreError) -> RecordError {
    error!("the records cannot be written: {}", WithCauses(error));
    RecordError::of_failure(error.failure_kind())
}

impl RecordError {
    /// What is told of a store that did nothing.
    pub(super) fn of_failure(kind: FailureKind) -> RecordError {
        match kind {
            FailureKind::Unreachable => RecordError::Unreachable,
            FailureKind::Locked
            | FailureKind::NotUsable
            | FailureKind::Full
            | FailureKind::Damaged
            | FailureKind::Disagrees => RecordError::Unavailable,
        }
    }
}
