//! Up to where nodes may have minted of whom nobody has heard.

use std::time::Duration;

use crate::time::UnixNanos;

/// How far ahead a node mints at most of whom nothing is known but its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unheard {
    /// How far ahead of its clock a node reserves at most.
    pub window: Duration,
    /// How far its clock may be ahead of this one.
    pub ahead_max: Duration,
}

impl Unheard {
    /// At or above this instant no node mints by what it has reserved until `now`, unless its clock is further ahead than it may
    /// be. A fleet that begins anew begins here, and so does one that is founded where others may be minting still.
    pub fn bound(self, now: UnixNanos) -> UnixNanos {
        now.after(self.window).after(self.ahead_max)
    }
}

/// What is known of a namespace in which there is no fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Founding {
    /// An operator says that nobody has minted in it.
    First,
    /// Its store may have been wiped while others mint on: each up to where it had reserved.
    Again(Duration),
}

impl Founding {
    /// From here on a fleet mints that is founded now by a node whose clock may be so far from others.
    pub fn floor(self, now: UnixNanos, ahead_max: Duration) -> UnixNanos {
        match self {
            // As at a start without a record.
            Founding::First => now.after(ahead_max),
            Founding::Again(window) => Unheard { window, ahead_max }.bound(now),
        }
    }
}
