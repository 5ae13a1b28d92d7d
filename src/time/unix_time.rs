//! An instant that any id can carry.

use std::time::Duration;

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// An instant in whole nanoseconds since 1970-01-01T00:00:00Z, without leap seconds.
///
/// Shape: `i128`, wide enough for every published layout (a SIQ reaches the year 36812, a UUIDv1 begins in 1582).
///
/// ```
/// use idmint::time::UnixTime;
/// let epoch: UnixTime = "2015-01-01T00:00:00Z".parse()?;
/// assert_eq!(epoch.nanos(), 1_420_070_400_000_000_000);
/// assert_eq!(epoch.to_text(3).as_deref(), Some("2015-01-01T00:00:00.000Z"));
/// # Ok::<(), idmint::time::UnixTimeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(i128);

impl UnixTime {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: UnixTime = UnixTime(0);

    /// The instant `nanos` nanoseconds after 1970, or before it when negative.
    pub const fn from_nanos(nanos: i128) -> UnixTime {
        UnixTime(nanos)
    }

    /// Nanoseconds since 1970, negative before.
    pub const fn nanos(self) -> i128 {
        self.0
    }

    /// The instant that much later, or the last there is.
    #[must_use]
    pub fn after(self, duration: Duration) -> UnixTime {
        UnixTime(
            self.0
                .saturating_add(i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)),
        )
    }

    /// Whole seconds since 1970, rounded down.
    pub fn seconds(self) -> i128 {
        self.seconds_and_nanos().0
    }

    /// Whole seconds since 1970, rounded down, and the nanoseconds since then.
    pub(super) fn seconds_and_nanos(self) -> (i128, u32) {
        // Most instants are near enough for a division of 64 bits, which is many times as fast.
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
