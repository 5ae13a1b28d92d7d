//! A clock for tests, which advances only when the test advances it.

use std::sync::Arc;
use std::time::Duration;

use super::clock::Clock;
use super::source::{ManualTime, Source};
use super::unix_nanos::UnixNanos;

/// A handle that controls a [`Clock`] in a test. The handle can let time pass and set the wall
/// clock, independently of each other.
///
/// ```
/// use std::time::Duration;
/// use idmint_core::time::{ManualClock, UnixNanos};
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
    /// Creates the clocks of a simulated machine that booted an hour ago and whose wall clock shows
    /// `now`.
    pub fn at(now: UnixNanos) -> ManualClock {
        ManualClock {
            time: Arc::new(ManualTime::new(3_600_000_000_000, now.get())),
        }
    }

    /// Returns a [`Clock`] that reads the clocks of this machine. Its estimate starts at the
    /// current time of the wall clock.
    pub fn clock(&self) -> Clock {
        Clock::on(Source::Manual(Arc::clone(&self.time)))
    }

    /// Advances both the time since boot and the wall clock by the duration `by`.
    pub fn advance(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).expect("a test waits less than 500 years");
        self.time.advance(nanos);
    }

    /// Sets the wall clock to `to`, as an operator or a time server would. The time since boot does
    /// not change.
    pub fn set_wall(&self, to: UnixNanos) {
        self.time.set_wall(to.get());
    }

    /// Returns the time that the wall clock shows.
    pub fn wall(&self) -> UnixNanos {
        UnixNanos::new(self.time.wall_nanos())
    }
}
