//! What a session begins with.

use std::time::Duration;

use super::catch_up::CatchUp;
use crate::minting::session_start::SessionStart;
use crate::time::UnixNanos;

/// Where a session begins, and what the configuration says of it.
#[derive(Debug, Clone, Copy)]
pub(in crate::minting) struct Beginning {
    /// Where it begins: at the durable horizon, or at the clock if that shows more.
    pub(in crate::minting) start: SessionStart,
    /// The slot that it has; `None` where worker numbers are held for good.
    pub(in crate::minting) slot: Option<u32>,
    /// What the clock shows.
    pub(in crate::minting) now: UnixNanos,
    /// The most that one extension reserves.
    pub(in crate::minting) window: Duration,
    /// How far ahead of the clock a lane may mint.
    pub(in crate::minting) lead_max: Duration,
    /// How long an answer may be held until its ids are due.
    pub(in crate::minting) wait_max: Duration,
    /// The configured shard number.
    pub(in crate::minting) shard: u64,
}

impl Beginning {
    /// How far minting may run ahead of the clock.
    pub(in crate::minting) fn catch_up(&self) -> CatchUp {
        CatchUp::new(self.start.at, self.now)
    }
}
