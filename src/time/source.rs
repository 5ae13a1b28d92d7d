//! Where time comes from: the operating system, or a test's hand.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::manual_clock::ManualTime;

/// Two readings of one machine: nanoseconds since it started, which nobody can set, and the wall clock, which anybody can.
#[derive(Debug, Clone)]
pub(super) enum Source {
    System,
    Manual(Arc<ManualTime>),
}

impl Source {
    /// Nanoseconds since boot, counting sleep and suspend (`CLOCK_BOOTTIME`); never goes back.
    ///
    /// `std::time::Instant` is not used: on Linux it stops while the machine is suspended.
    #[inline]
    pub(super) fn boot_nanos(&self) -> u64 {
        match self {
            Source::System => {
                let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
                let seconds = u64::try_from(time.tv_sec).expect("time since boot is not negative");
                let nanos = u64::try_from(time.tv_nsec).expect("a fraction of a second is not negative");
                seconds * 1_000_000_000 + nanos
            }
            Source::Manual(time) => time.boot_nanos(),
        }
    }

    /// The wall clock in nanoseconds since 1970; zero if it stands before that year.
    pub(super) fn wall_nanos(&self) -> u64 {
        match self {
            Source::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)),
            Source::Manual(time) => time.wall_nanos(),
        }
    }
}
