//! An instant that the clock reads: the narrow one of the mint path.

use std::fmt;
use std::time::Duration;

use super::unix_time::UnixTime;

/// What the clock reads: whole nanoseconds since 1970, from that year to 2554.
///
/// The narrow instant of the mint path; arithmetic saturates at both ends, where no id can be minted anyway.
///
/// ```
/// use std::time::Duration;
/// use idmint::time::UnixNanos;
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
    /// The instant `nanos` nanoseconds after 1970.
    pub const fn new(nanos: u64) -> UnixNanos {
        UnixNanos(nanos)
    }

    /// The instant `seconds` seconds after 1970.
    pub const fn from_seconds(seconds: u64) -> UnixNanos {
        UnixNanos(seconds.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since 1970.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The instant that much later.
    #[must_use]
    pub fn after(self, duration: Duration) -> UnixNanos {
        UnixNanos(self.0.saturating_add(saturating_nanos(duration)))
    }

    /// The instant that much earlier.
    #[must_use]
    pub fn before(self, duration: Duration) -> UnixNanos {
        UnixNanos(self.0.saturating_sub(saturating_nanos(duration)))
    }

    /// How long after `earlier` this is; zero if it is not later.
    pub const fn since(self, earlier: UnixNanos) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The first whole second at or after this instant.
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
