//! A clock for tests, whose time moves only when a test says so.

use std::sync::Arc;
use std::time::Duration;

use super::clock::Clock;
use super::source::{ManualTime, Source};
use super::unix_nanos::UnixNanos;

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

impl ManualClock {
    /// A machine whose wall clock shows `now` and that started an hour ago.
    pub fn at(now: UnixNanos) -> ManualClock {
        ManualClock {
            time: Arc::new(ManualTime::new(3_600_000_000_000, now.get())),
        }
    }

    /// A clock that reads this time, anchored to what the wall clock shows now.
    pub fn clock(&self) -> Clock {
        Clock::on(Source::Manual(Arc::clone(&self.time)))
    }

    /// Lets time pass: the wall clock moves along.
    pub fn advance(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).expect("a test waits less than 500 years");
        self.time.advance(nanos);
    }

    /// Sets the wall clock, as an operator or a time server does; no time passes.
    pub fn set_wall(&self, to: UnixNanos) {
        self.time.set_wall(to.get());
    }

    /// What the wall clock shows.
    pub fn wall(&self) -> UnixNanos {
        UnixNanos::new(self.time.wall_nanos())
    }
}
