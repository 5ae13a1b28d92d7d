//! Where time comes from: the operating system, or a test's hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The two clocks of a machine: the time since it started, which nobody can set, and the wall clock, which an operator or a
/// time server can.
#[derive(Debug, Clone)]
pub(super) enum Source {
    System,
    Manual(Arc<ManualTime>),
}

/// The time since boot of this machine, which nobody can set, and which passes while it sleeps.
pub fn since_boot() -> Duration {
    Duration::from_nanos(Source::System.boot_nanos())
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
                let nanos =
                    u64::try_from(time.tv_nsec).expect("a fraction of a second is not negative");
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
                .map_or(0, |since| {
                    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
                }),
            Source::Manual(time) => time.wall_nanos(),
        }
    }

    /// How long before 1970 the wall clock stands; `None` from that year on.
    pub(super) fn wall_before_1970(&self) -> Option<Duration> {
        match self {
            Source::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .err()
                .map(|before| before.duration()),
            // Cannot be set to such a time.
            Source::Manual(_) => None,
        }
    }
}

/// The two readings of a machine that stands still until somebody moves them: a test, or a service that callers test against.
#[derive(Debug)]
pub(super) struct ManualTime {
    /// Written and read by any thread. Ordering: `SeqCst`, the simplest to reason about; only tests pay for it.
    boot_nanos: AtomicU64,
    /// As above.
    wall_nanos: AtomicU64,
}

impl ManualTime {
    pub(super) fn new(boot_nanos: u64, wall_nanos: u64) -> ManualTime {
        ManualTime {
            boot_nanos: AtomicU64::new(boot_nanos),
            wall_nanos: AtomicU64::new(wall_nanos),
        }
    }

    pub(super) fn boot_nanos(&self) -> u64 {
        self.boot_nanos.load(Ordering::SeqCst)
    }

    pub(super) fn wall_nanos(&self) -> u64 {
        self.wall_nanos.load(Ordering::SeqCst)
    }

    pub(super) fn advance(&self, nanos: u64) {
        self.boot_nanos.fetch_add(nanos, Ordering::SeqCst);
        self.wall_nanos.fetch_add(nanos, Ordering::SeqCst);
    }

    pub(super) fn set_wall(&self, nanos: u64) {
        self.wall_nanos.store(nanos, Ordering::SeqCst);
    }
}
