//! Time that moves only when a test says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::clock::Clock;
use super::source::Source;
use super::unix_time::UnixNanos;

/// The hand that moves a [`Clock`] in a test: time passes, and the wall clock can be set, as on a real machine.
///
/// ```
/// use std::time::Duration;
/// use idmint::time::{ManualClock, UnixNanos};
/// let hand = ManualClock::at(UnixNanos::from_seconds(1_800_000_000));
/// let clock = hand.clock();
/// hand.advance(Duration::from_millis(5));
/// assert_eq!(clock.now(), UnixNanos::new(1_800_000_000_005_000_000));
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock {
    time: Arc<ManualTime>,
}

#[derive(Debug)]
pub(super) struct ManualTime {
    boot_nanos: AtomicU64,
    wall_nanos: AtomicU64,
}

impl ManualTime {
    pub(super) fn boot_nanos(&self) -> u64 {
        self.boot_nanos.load(Ordering::SeqCst)
    }

    pub(super) fn wall_nanos(&self) -> u64 {
        self.wall_nanos.load(Ordering::SeqCst)
    }
}

impl ManualClock {
    /// A machine whose wall clock shows `now` and that started an hour ago.
    pub fn at(now: UnixNanos) -> ManualClock {
        let time = ManualTime { boot_nanos: AtomicU64::new(3_600_000_000_000), wall_nanos: AtomicU64::new(now.get()) };
        ManualClock { time: Arc::new(time) }
    }

    /// A clock that reads this time, anchored to what the wall clock shows now.
    pub fn clock(&self) -> Clock {
        Clock::on(Source::Manual(Arc::clone(&self.time)))
    }

    /// Lets time pass: the wall clock moves along.
    pub fn advance(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).expect("a test waits less than 500 years");
        self.time.boot_nanos.fetch_add(nanos, Ordering::SeqCst);
        self.time.wall_nanos.fetch_add(nanos, Ordering::SeqCst);
    }

    /// Sets the wall clock, as an operator or a time server does; no time passes.
    pub fn set_wall(&self, to: UnixNanos) {
        self.time.wall_nanos.store(to.get(), Ordering::SeqCst);
    }

    /// What the wall clock shows.
    pub fn wall(&self) -> UnixNanos {
        UnixNanos::new(self.time.wall_nanos())
    }
}
