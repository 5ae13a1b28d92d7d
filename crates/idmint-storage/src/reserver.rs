//! The trait for reserving time in which sequenced ids may be minted. A single node stores the end
//! of that time, its horizon, on disk. A node of a fleet renews the lease of its slot.

use std::fmt::Debug;
use std::pin::Pin;

use idmint_core::named;
use idmint_core::time::UnixNanos;

/// The future that the methods of a [`Reserver`] return.
pub type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Reserves time in which sequenced ids may be minted.
pub trait Reserver: Debug + Send + Sync {
    /// Requests more time, and returns before that time is reserved.
    fn refill(&self);

    /// Requests all time up to `needed`. Waits until ids may be minted in that time, or until the
    /// reservation has failed.
    ///
    /// Returns `true` if the caller should try to mint again, and `false` if the store failed.
    fn raise_to(&self, needed: UnixNanos) -> Waiting<'_, bool>;

    /// If this node leases its slot, stops minting and releases the slot, so that another node can
    /// lease it at once. If the node has no slot at the moment, stops looking for one. Waits for a
    /// few seconds at most. A slot that is not released by then stays leased until its lease
    /// expires.
    ///
    /// Does nothing on a node that never leases a slot. Such a node continues to mint.
    fn release(&self) -> Waiting<'_, ()>;

    /// Returns the slot that this node leases, or `None` if it leases none at the moment. A node
    /// with a configured slot never leases one.
    fn leased_slot(&self) -> Option<u32>;

    /// Returns statistics about reservations and coordinator requests since the start of the
    /// process.
    fn counts(&self) -> ReserverCounts;
}

/// Statistics of a [`Reserver`]. All counts begin at the start of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ReserverCounts {
    /// The number of times that the node durably raised its horizon, the end of the reserved time.
    pub extended: u64,
    /// The number of times that the disk failed to store a higher horizon. The process ends after
    /// the first failure.
    pub failed: u64,
    /// The number of times that another node took over this node's leased slot.
    pub fenced: u64,
    /// `true` while the coordinator of the fleet lacks data that it had acknowledged to this node
    /// earlier.
    pub is_regressed: bool,
    /// The minimum difference, in seconds, between this node's clock and the median of the fleet's
    /// clocks. The actual difference may be larger. The value is negative if the clock is behind.
    pub peer_skew_seconds: f64,
    /// The number of requests to the coordinator with each outcome, in the order of
    /// [`RequestOutcome::ALL`].
    pub requests: [u64; RequestOutcome::ALL.len()],
}

named! {
    fn label;
    /// The outcome of a request to the coordinator of a fleet.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RequestOutcome {
        /// The coordinator has carried out the request.
        Done = "done",
        /// The coordinator refused the request, because a key had changed since this node read it.
        Outdated = "outdated",
        /// No response arrived in time.
        NoAnswer = "no_answer",
        /// The request could not be sent.
        NotSent = "not_sent",
        /// The coordinator has no space left.
        Full = "full",
        /// The coordinator refused the caller or the request.
        Refused = "refused",
    }
}
