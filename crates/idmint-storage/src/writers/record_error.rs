//! The error of a request that reads or writes records.

use tracing::error;

use crate::failure::{FailureKind, Obstacle, StoreError, WithCauses};
use idmint_core::minting::Refusal;
use idmint_records::conjunction::GroupRefusal;
use idmint_records::ledger::{AppendRefusal, NumberRefusal, VoidRefusal};

/// The maximum number of requests in the queue of the writer thread. More requests are refused.
pub(super) const WAITING_MAX: usize = 1_024;

/// The error of a request that reads or writes records. After `Unknown`, the request may have been
/// carried out. After any other variant, it was not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The events cannot be appended to the ledger.
    #[error("the events cannot be appended")]
    Append(AppendRefusal),
    /// The idempotency key was used before for a different request.
    #[error("the idempotency key was used before for other events")]
    KeyConflict,
    /// The numbers cannot be issued.
    #[error(transparent)]
    Number(NumberRefusal),
    /// The number cannot be voided.
    #[error(transparent)]
    Void(VoidRefusal),
    /// A report cannot be grouped.
    #[error("a report cannot be grouped")]
    Group(GroupRefusal),
    /// The node's clock is certainly wrong, so no record was written. Otherwise records such as
    /// ledger events would keep the wrong time forever.
    #[error("records cannot be written now: {0}")]
    Clock(Refusal),
    /// The queue of the writer thread is full.
    #[error("the queue for writes is full: {WAITING_MAX} requests are waiting; retry")]
    Busy,
    /// The store that all nodes of the fleet share does not respond. No record was written.
    #[error("{0}")]
    Unreachable(Obstacle),
    /// The store cannot be read or written. No record was written.
    #[error("{0}")]
    Unavailable(Obstacle),
    /// The outcome is unknown, because the request may have been written.
    #[error(
        "the store did not respond in time, so it is unknown whether this was written; retry with the same key"
    )]
    Unknown,
}

/// Logs the reason why the store could not be read. Returns the error to send to the caller.
pub fn log_unreadable(error: &StoreError) -> RecordError {
    error!(
        "a request failed, because records cannot be read: {}",
        WithCauses(error)
    );
    error.obstacle().into()
}

/// Logs why the store refused a write. Returns the error to send to the caller, who may repeat the
/// request.
pub(super) fn log_unwritten(error: &StoreError) -> RecordError {
    error!(
        "a request failed, because records cannot be written: {}",
        WithCauses(error)
    );
    error.obstacle().into()
}

impl From<Obstacle> for RecordError {
    /// Returns the error for a caller whose request the store refuses for this reason.
    fn from(obstacle: Obstacle) -> RecordError {
        match obstacle.failure_kind() {
            FailureKind::Unreachable => RecordError::Unreachable(obstacle),
            FailureKind::Locked
            | FailureKind::NotUsable
            | FailureKind::Full
            | FailureKind::Damaged
            | FailureKind::Disagrees => RecordError::Unavailable(obstacle),
        }
    }
}
