//! The 64-bit type for instants, which the clock and the minters use.

use std::fmt;
use std::time::Duration;

use super::unix_time::UnixTime;

/// An instant in whole nanoseconds since 1970, up to the year 2554. The clock and the minters use
/// this type.
///
/// Arithmetic saturates at both ends of the range, where no id can be minted anyway.
///
/// ```
/// use std::time::Duration;
/// use idmint_core::time::UnixNanos;
///
/// let start = UnixNanos::from_seconds(1_800_000_000);
/// let later = start.after(Duration::from_millis(1));
/// assert_eq!(later.since(start), Duration::from_millis(1));
/// assert_eq!(start.since(later), Duration::ZERO);
/// assert_eq!(later.ceil_to_second(), UnixNanos::from_seconds(1_800_000_001));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixNanos(u64);

impl UnixNanos {
    /// Creates the instant that is `nanos` nanoseconds after the beginning of 1970.
    pub const fn new(nanos: u64) -> UnixNanos {
        UnixNanos(nanos)
    }

    /// Creates the instant that is `seconds` seconds after the beginning of 1970.
    pub const fn from_seconds(seconds: u64) -> UnixNanos {
        UnixNanos(seconds.saturating_mul(1_000_000_000))
    }

    /// Returns the number of nanoseconds since 1970.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the instant that is `duration` later. If that instant does not fit, returns the last
    /// possible instant.
    #[must_use]
    pub fn after(self, duration: Duration) -> UnixNanos {
        UnixNanos(self.0.saturating_add(saturating_nanos(duration)))
    }

    /// Returns the instant that is `duration` earlier. If that instant is before 1970, returns the
    /// beginning of 1970.
    #[must_use]
    pub fn before(self, duration: Duration) -> UnixNanos {
        UnixNanos(self.0.saturating_sub(saturating_nanos(duration)))
    }

    /// Returns the time from `earlier` to this instant, or zero if `earlier` is later.
    pub const fn since(self, earlier: UnixNanos) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Rounds this instant up to a whole second.
    #[must_use]
    pub const fn ceil_to_second(self) -> UnixNanos {
        UnixNanos::from_seconds(self.0.div_ceil(1_000_000_000))
    }
}

impl From<UnixNanos> for UnixTime {
    fn from(instant: UnixNanos) -> UnixTime {
        UnixTime::from_nanos(i128::from(instant.0))
    }
}

impl fmt::Display for UnixNanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        UnixTime::from(*self).fmt(f)
    }
}

fn saturating_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
