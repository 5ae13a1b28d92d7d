//! What goes between a node's lease of a slot and the coordinator, and between the lease and minting.

use std::time::Duration;

use super::reservation::Reserved;
use crate::cluster::high_water::Regression;
use crate::minting::{Refusal, SlotLack};
use crate::storage::{
    Coordinator, CoordinatorError, FormatsError, Lease, Outcome, Range, Snapshot, Transaction,
};
use crate::time::UnixNanos;

/// One request to the coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cluster) enum Request {
    /// A new lease that lasts so long.
    Grant(Duration),
    /// Begin the time of a lease anew.
    KeepAlive(Lease),
    /// Read these.
    Read(Vec<Range>),
    /// Compare and write.
    Commit(Transaction),
}

impl Request {
    /// Sends it, and waits for what comes of it.
    pub(in crate::cluster) fn send(&self, coordinator: &dyn Coordinator) -> Reply {
        let reply = match self {
            Request::Grant(lasts) => coordinator.grant(*lasts).map(Reply::Granted),
            Request::KeepAlive(lease) => coordinator.keep_alive(*lease).map(Reply::KeptAlive),
            Request::Read(ranges) => coordinator.read(ranges).map(Reply::Read),
            Request::Commit(transaction) => coordinator.commit(transaction).map(Reply::Outcome),
        };
        reply.unwrap_or_else(Reply::Failed)
    }
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cluster) enum Reply {
    Granted(Lease),
    /// Whether there still is such a lease.
    KeptAlive(bool),
    Read(Snapshot),
    Outcome(Outcome),
    /// That is not known, or nothing.
    Failed(CoordinatorError),
}

/// What a lease does next.
#[derive(Debug)]
pub(in crate::cluster) enum Step {
    /// Sends this; the next thing it learns is the reply.
    Send(Request),
    /// Nothing before this instant, unless minting wants something.
    WaitUntil(UnixNanos),
    /// Nothing ever again.
    Ended,
}

/// What minting wants of the next renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cluster) struct Want {
    /// The least horizon that suits it.
    pub(in crate::cluster) horizon: UnixNanos,
    /// Callers wait for it.
    pub(in crate::cluster) at_once: bool,
}

/// What a reply means for minting.
#[derive(Debug)]
pub(in crate::cluster) enum Change {
    /// Nothing.
    None,
    /// There was no fleet, and this node has founded one, which begins at this instant.
    Founded(UnixNanos),
    /// There is no slot yet, for this reason.
    StillWithout(Refusal),
    /// A slot was taken.
    Acquired(Acquired),
    /// The slot may be used for longer.
    Extended(Reserved),
    /// Another node has the slot, or may get it.
    Fenced,
    /// The coordinator has lost what it had acknowledged: nothing that it says can be built on.
    Regressed(Regression),
    /// This node may not mint in this fleet.
    Disagrees(FormatsError),
    /// The slot was given back, or there was none.
    Released,
}

/// A slot that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cluster) struct Acquired {
    pub(in crate::cluster) slot: u32,
    /// From here on nobody has used it.
    pub(in crate::cluster) start: UnixNanos,
    /// Where the fleet began, or was begun anew.
    pub(in crate::cluster) floor: UnixNanos,
    /// How far it may be used.
    pub(in crate::cluster) reserved: Reserved,
}

/// Why there is no slot, and when to try again.
pub(super) fn without(lack: SlotLack, retry_after: Duration) -> Refusal {
    Refusal::NoWorkerSlot { lack, retry_after }
}
