//! Computes the latest time for which nodes may have minted if the store lacks their reservations,
//! for example after a wipe. The bound follows from the nodes' configuration.

use std::time::Duration;

use idmint_core::time::UnixNanos;

/// The configured limits on how far ahead a node can have minted if the store lacks its record, for
/// example after a wipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnseenNodes {
    /// The time that a node reserves ahead of its clock.
    pub window: Duration,
    /// The maximum lead of a node's clock over this machine's clock.
    pub ahead_max: Duration,
}

impl UnseenNodes {
    /// Returns an exclusive upper bound on the time that a node with an unknown horizon may have
    /// reserved by `now`. The bound is too low only if that node's clock is ahead by more than
    /// `ahead_max`. The bound is the floor of a fenced fleet, and of a new fleet while other nodes
    /// may still be minting.
    pub fn bound(self, now: UnixNanos) -> UnixNanos {
        now.after(self.window).after(self.ahead_max)
    }
}

/// The operator's statement on whether nodes may have minted in the namespace of a new fleet
/// before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Founding {
    /// The operator has confirmed that no node has ever minted in the namespace.
    First,
    /// A fleet may have existed before, and its nodes may still mint although the store was wiped.
    /// The value is how far ahead of their clocks those nodes may have reserved time.
    Again(Duration),
}

impl Founding {
    /// Returns the floor of a fleet that is created at `now`. `ahead_max` is the maximum lead of
    /// other nodes' clocks over the founder's clock.
    pub fn floor(self, now: UnixNanos, ahead_max: Duration) -> UnixNanos {
        match self {
            // Other clocks may be ahead, so add a margin. A node that starts without a record of
            // its reserved time adds the same margin.
            Founding::First => now.after(ahead_max),
            Founding::Again(window) => UnseenNodes { window, ahead_max }.bound(now),
        }
    }
}
