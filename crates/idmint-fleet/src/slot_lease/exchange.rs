//! The requests and replies between the coordinator and the state machine that leases a slot, and
//! the effects of the replies on the mint.

use std::time::Duration;

use super::reservation::Reserved;
use crate::high_water::Regression;
use crate::{Coordinator, CoordinatorError, Lease, Outcome, Range, Snapshot, Transaction};
use idmint_core::minting::{Refusal, SlotLack};
use idmint_core::time::UnixNanos;
use idmint_storage::{FormatsError, RequestOutcome};

/// One request to the coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// Asks for a new lease of this duration.
    Grant(Duration),
    /// Extends a lease, so that it lasts for its full duration again.
    KeepAlive(Lease),
    /// Reads these ranges.
    Read(Vec<Range>),
    /// Commits this transaction.
    Commit(Transaction),
}

impl Request {
    /// Sends the request and waits for the reply.
    pub(crate) fn send(&self, coordinator: &dyn Coordinator) -> Reply {
        let reply = match self {
            Request::Grant(lasts) => coordinator.grant(*lasts).map(Reply::Granted),
            Request::KeepAlive(lease) => coordinator.keep_alive(*lease).map(Reply::KeptAlive),
            Request::Read(ranges) => coordinator.read(ranges).map(Reply::Read),
            Request::Commit(transaction) => coordinator.commit(transaction).map(Reply::Outcome),
        };
        reply.unwrap_or_else(Reply::Failed)
    }
}

/// The reply to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Granted(Lease),
    /// `true` if the lease still exists.
    KeptAlive(bool),
    Read(Snapshot),
    Outcome(Outcome),
    /// The request was not done, or its outcome is unknown.
    Failed(CoordinatorError),
}

impl Reply {
    /// Returns the outcome that the metrics count for this request.
    pub(crate) fn request_outcome(&self) -> RequestOutcome {
        match self {
            Reply::Granted(_)
            | Reply::KeptAlive(_)
            | Reply::Read(_)
            | Reply::Outcome(Outcome::Committed(_)) => RequestOutcome::Done,
            Reply::Outcome(Outcome::Refused(_)) => RequestOutcome::Outdated,
            Reply::Failed(CoordinatorError::NoAnswer(_)) => RequestOutcome::NoAnswer,
            Reply::Failed(CoordinatorError::NotSent(_)) => RequestOutcome::NotSent,
            Reply::Failed(CoordinatorError::Full(_)) => RequestOutcome::Full,
            Reply::Failed(CoordinatorError::Refused(_) | CoordinatorError::Denied(_)) => {
                RequestOutcome::Refused
            }
        }
    }
}

/// The next action of the thread that leases the slot.
#[derive(Debug)]
pub(crate) enum Step {
    /// Send this request, and pass its reply to the lease.
    Send(Request),
    /// Wait until this instant. Wake up earlier if the mint needs time that is not reserved yet.
    WaitUntil(UnixNanos),
    /// The lease has ended and will not take another slot.
    Ended,
}

/// The horizon that the next renewal of the slot should reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Want {
    /// The lowest horizon that is sufficient for the mint.
    pub(crate) horizon: UnixNanos,
    /// `true` if callers are waiting for this horizon.
    pub(crate) at_once: bool,
}

/// The effect of a reply on the mint.
#[derive(Debug)]
pub(crate) enum Change {
    /// No change.
    None,
    /// No fleet existed, and this node has created one. The value is the fleet's floor, the instant
    /// from which it mints.
    Founded(UnixNanos),
    /// This node still has no slot, for this reason.
    StillWithout(Refusal),
    /// A slot was taken.
    Acquired(Acquired),
    /// The coordinator acknowledged a renewal of the slot. The value is the new reservation.
    Extended(Reserved),
    /// This node lost the slot, because another node has taken it or may take it.
    Fenced,
    /// The coordinator has lost acknowledged data, so its responses can no longer be trusted.
    Regressed(Regression),
    /// This node may not mint in this fleet, because the slots or id formats in its configuration
    /// differ from the fleet's.
    Disagrees(FormatsError),
    /// This node no longer uses its slot. If the coordinator did not acknowledge the release, the
    /// slot stays leased until the lease expires.
    Released,
}

/// A slot that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Acquired {
    pub(crate) slot: u32,
    /// The first instant for which this node may mint ids in the slot. No node has used the slot
    /// for this instant or a later one.
    pub(crate) start: UnixNanos,
    /// The fleet's floor. No node mints an id for an earlier time. It is set when the fleet is
    /// created and by `fence-restore`, and may be raised by an adoption.
    pub(crate) floor: UnixNanos,
    /// The acknowledged horizon of the slot.
    pub(crate) reserved: Reserved,
}

/// Returns the refusal that callers get while this node has no slot. The refusal says when to
/// retry.
pub(super) fn without(lack: SlotLack, retry_after: Duration) -> Refusal {
    Refusal::NoWorkerSlot { lack, retry_after }
}
