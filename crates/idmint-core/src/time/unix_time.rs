//! The 128-bit type for instants, which can hold the time of any id.

use std::time::Duration;

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// An instant in whole nanoseconds since 1970-01-01T00:00:00Z, without leap seconds.
///
/// An `i128` is wide enough for every published layout. For example, a SIQ id can reach the year
/// 36812, and a UUIDv1 can go back to 1582.
///
/// ```
/// use idmint_core::time::UnixTime;
/// let epoch: UnixTime = "2015-01-01T00:00:00Z".parse()?;
/// assert_eq!(epoch.nanos(), 1_420_070_400_000_000_000);
/// assert_eq!(epoch.to_text(3).as_deref(), Some("2015-01-01T00:00:00.000Z"));
/// # Ok::<(), idmint_core::time::UnixTimeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(i128);

impl UnixTime {
    /// The beginning of 1970, 1970-01-01T00:00:00Z.
    pub const EPOCH: UnixTime = UnixTime(0);

    /// Creates the instant that is `nanos` nanoseconds after the beginning of 1970, or before it if
    /// `nanos` is negative.
    pub const fn from_nanos(nanos: i128) -> UnixTime {
        UnixTime(nanos)
    }

    /// Returns the number of nanoseconds since 1970. It is negative for instants before 1970.
    pub const fn nanos(self) -> i128 {
        self.0
    }

    /// Returns the instant that is `duration` later. If that instant does not fit, returns the last
    /// instant of this type.
    #[must_use]
    pub fn after(self, duration: Duration) -> UnixTime {
        UnixTime(
            self.0
                .saturating_add(i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)),
        )
    }

    /// Returns the number of whole seconds since 1970, rounded down.
    pub fn seconds(self) -> i128 {
        self.seconds_and_nanos().0
    }

    /// Returns the number of whole seconds since 1970, rounded down, and the remaining nanoseconds.
    pub(super) fn seconds_and_nanos(self) -> (i128, u32) {
        // Use a 64-bit division if possible, because it is much faster.
        let (seconds, nanos) = match i64::try_from(self.0) {
            Ok(nanos) => (
                nanos.div_euclid(1_000_000_000).into(),
                nanos.rem_euclid(1_000_000_000).into(),
            ),
            Err(_) => (
                self.0.div_euclid(NANOS_PER_SECOND),
                self.0.rem_euclid(NANOS_PER_SECOND),
            ),
        };
        (seconds, u32::try_from(nanos).expect("below 10^9"))
    }
}
