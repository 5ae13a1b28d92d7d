//! The source of time for a clock: the operating system or a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The two clocks of a machine: the time since boot, which cannot be set, and the wall clock, which
/// an operator or a time server can set.
#[derive(Debug, Clone)]
pub(super) enum Source {
    System,
    Manual(Arc<ManualTime>),
}

/// Returns the time since this machine booted. The result includes the time for which the machine
/// was suspended, and this clock cannot be set.
pub fn since_boot() -> Duration {
    Duration::from_nanos(Source::System.boot_nanos())
}

impl Source {
    /// Returns the nanoseconds since boot, including the time for which the machine was suspended
    /// (`CLOCK_BOOTTIME`). The result never decreases.
    ///
    /// `std::time::Instant` is not suitable, because on Linux it stops while the machine is
    /// suspended.
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

    /// Returns the time of the wall clock in nanoseconds since 1970, or zero if it shows a time
    /// before 1970.
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

    /// Returns how far the wall clock is before 1970, or `None` if it shows 1970 or later.
    pub(super) fn wall_before_1970(&self) -> Option<Duration> {
        match self {
            Source::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .err()
                .map(|before| before.duration()),
            // A manual clock cannot show a time before 1970.
            Source::Manual(_) => None,
        }
    }
}

/// The time since boot and the wall clock of a simulated machine. Both change only on request.
/// Tests use them, and so do test instances of the service.
#[derive(Debug)]
pub(super) struct ManualTime {
    /// The time since boot. Written and read by any thread. Ordering: `SeqCst`, which is the
    /// easiest to reason about. Its cost does not matter in tests.
    boot_nanos: AtomicU64,
    /// The wall clock in nanoseconds since 1970. Its ordering is `SeqCst`, as for `boot_nanos`.
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
