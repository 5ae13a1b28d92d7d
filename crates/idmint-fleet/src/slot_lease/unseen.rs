//! Computes how far into the future nodes may have minted if the store lacks their reservations,
//! for example after a wipe. The bound follows from the nodes' configuration.

use std::time::Duration;

use idmint_core::time::UnixNanos;

/// The configured limits that bound the time up to which a node can have minted if the store lacks
/// its record, for example after a wipe.
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
    /// `ahead_max`. It is used as the floor of a fleet that is fenced, or that is founded while
    /// other nodes may still be minting.
    pub fn bound(self, now: UnixNanos) -> UnixNanos {
        now.after(self.window).after(self.ahead_max)
    }
}

/// The operator's statement on whether nodes may have minted in a new fleet's namespace before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Founding {
    /// The operator has confirmed that no node has ever minted in the namespace.
    First,
    /// A fleet may have existed before, and its nodes may continue to mint although the store was
    /// wiped. The value is how far ahead of their clocks those nodes may have reserved time.
    Again(Duration),
}

impl Founding {
    /// Returns the floor (the time below which no id is minted) of a fleet that is created at
    /// `now`. `ahead_max` is the maximum difference between the founder's clock and other clocks.
    pub fn floor(self, now: UnixNanos, ahead_max: Duration) -> UnixNanos {
        match self {
            // Add a margin, because other clocks may be ahead. A node that starts without a record
            // of the time that it has reserved uses the same margin.
            Founding::First => now.after(ahead_max),
            Founding::Again(window) => UnseenNodes { window, ahead_max }.bound(now),
        }
    }
}
