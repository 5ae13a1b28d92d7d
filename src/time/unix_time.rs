//! Instants: the wide one that any id can carry, and the narrow one that the clock reads.

use std::fmt;
use std::time::Duration;

use jiff::civil::DateTime;

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// Civil time is computed with, since jiff's timestamps end a day before the year 9999 does.
const EPOCH_DATE_TIME: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

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

/// A text that is no instant in UTC.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not a UTC instant such as 2025-01-01T00:00:00Z")]
pub struct UnixTimeError {
    text: String,
    #[source]
    cause: Option<jiff::Error>,
}

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
        UnixTime(self.0.saturating_add(i128::from(saturating_nanos(duration))))
    }

    /// Whole seconds since 1970, rounded down.
    pub fn seconds(self) -> i128 {
        self.seconds_and_nanos().0
    }

    /// The same and the nanoseconds since then.
    pub(super) fn seconds_and_nanos(self) -> (i128, u32) {
        // Most instants are near enough for a division of 64 bits, which is many times as fast.
        let (seconds, nanos) = match i64::try_from(self.0) {
            Ok(nanos) => (nanos.div_euclid(1_000_000_000).into(), nanos.rem_euclid(1_000_000_000).into()),
            Err(_) => (self.0.div_euclid(NANOS_PER_SECOND), self.0.rem_euclid(NANOS_PER_SECOND)),
        };
        (seconds, u32::try_from(nanos).expect("below 10^9"))
    }

    /// What [`UnixTime::rfc3339`] writes.
    pub fn to_text(self, digits: u8) -> Option<String> {
        self.rfc3339(digits).as_deref().map(str::to_owned)
    }

    /// RFC 3339 in UTC with as many digits of the second as it takes to lose nothing; `None` as in [`UnixTime::to_text`].
    ///
    /// ```
    /// use idmint::time::UnixTime;
    /// let instant = UnixTime::from_nanos(1_420_070_400_000_015_259);
    /// assert_eq!(instant.to_exact_text().as_deref(), Some("2015-01-01T00:00:00.000015259Z"));
    /// ```
    pub fn to_exact_text(self) -> Option<String> {
        let digits = [(0, NANOS_PER_SECOND), (3, 1_000_000), (6, 1_000)]
            .into_iter()
            .find_map(|(digits, unit)| (self.0.rem_euclid(unit) == 0).then_some(digits));
        self.to_text(digits.unwrap_or(9))
    }

    /// The first instant of the year 0, the earliest that RFC 3339 can write.
    pub(super) const YEAR_ZERO: UnixTime = UnixTime(-62_167_219_200 * NANOS_PER_SECOND);

    /// The first instant that it cannot write any more.
    pub(super) const YEAR_TEN_THOUSAND: UnixTime = UnixTime(253_402_300_800 * NANOS_PER_SECOND);
}

impl std::str::FromStr for UnixTime {
    type Err = UnixTimeError;

    fn from_str(text: &str) -> Result<UnixTime, UnixTimeError> {
        if !is_utc_date_time(text) {
            return Err(UnixTimeError { text: text.to_owned(), cause: None });
        }
        match text.trim_end_matches('Z').parse::<DateTime>() {
            Ok(date_time) => Ok(UnixTime(date_time.duration_since(EPOCH_DATE_TIME).as_nanos())),
            Err(cause) => Err(UnixTimeError { text: text.to_owned(), cause: Some(cause) }),
        }
    }
}

/// The form of RFC 3339 in UTC, its letters in upper case, with at most nine digits of the second. Without leap seconds, as
/// instants here are: a second 60 would become the one before it.
fn is_utc_date_time(text: &str) -> bool {
    const DATE_TIME: &[u8] = b"0000-00-00T00:00:00";
    let Some((date_time, rest)) = text.as_bytes().split_at_checked(DATE_TIME.len()) else { return false };
    let mut letters = date_time.iter().zip(DATE_TIME);
    let is_formed = letters.all(|(found, form)| if *form == b'0' { found.is_ascii_digit() } else { found == form });
    let is_fraction = |digits: &[u8]| (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let is_ended = match rest {
        [b'Z'] => true,
        [b'.', digits @ .., b'Z'] => is_fraction(digits),
        _ => false,
    };
    is_formed && is_ended && !date_time.ends_with(b"60")
}

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_text(3) {
            Some(text) => f.write_str(&text),
            None => write!(f, "{} s since 1970", self.seconds()),
        }
    }
}

/// What the clock reads: whole nanoseconds since 1970, from that year to 2554.
///
/// The narrow instant of the mint path; arithmetic saturates at both ends, where no id can be minted anyway.
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
        UnixTime(i128::from(instant.0))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_to_the_digits_asked_for_and_never_rounded_up() {
        let almost = UnixTime::from_nanos(1_704_067_200_999_999_999);
        assert_eq!(almost.to_text(0).as_deref(), Some("2024-01-01T00:00:00Z"));
        assert_eq!(almost.to_text(3).as_deref(), Some("2024-01-01T00:00:00.999Z"));
        assert_eq!(almost.to_text(9).as_deref(), Some("2024-01-01T00:00:00.999999999Z"));
    }

    #[test]
    fn a_time_that_rfc_3339_cannot_write_has_no_text() {
        for text in ["0000-01-01T00:00:00.000000000Z", "9999-12-31T23:59:59.999999999Z"] {
            let instant: UnixTime = text.parse().expect("the first and the last");
            assert_eq!(instant.to_text(9).as_deref(), Some(text));
            let beyond = UnixTime::from_nanos(instant.nanos() + if text.starts_with('0') { -1 } else { 1 });
            assert_eq!(beyond.to_text(9), None);
        }
        assert_eq!(UnixTime::from_nanos(300_000_000_000 * NANOS_PER_SECOND).to_text(0), None);
        assert_eq!(UnixTime::from_nanos(-70_000_000_000 * NANOS_PER_SECOND).to_text(0), None);
    }

    #[test]
    fn other_forms_of_an_instant_are_refused() {
        for text in [
            "",
            "Z",
            "2026-01-01",
            "2026-01-01Z",
            "20260101T000000Z",
            "2026-01-01T00Z",
            "2026-01-01T00:00Z",
            "2026-01-01 00:00:00Z",
            "2026-01-01t00:00:00Z",
            "2026-01-01T00:00:00z",
            "2026-01-01T00:00:00,5Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00.1234567891Z",
            "2026-06-30T23:59:60Z",
            "2026-02-29T00:00:00Z",
            "+02026-01-01T00:00:00Z",
            "２026-01-01T00:00:00Z",
        ] {
            assert!(text.parse::<UnixTime>().is_err(), "{text}");
        }
        for text in ["0000-01-01T00:00:00Z", "2024-02-29T23:59:59.123456789Z", "9999-12-31T23:59:59Z"] {
            assert!(text.parse::<UnixTime>().is_ok(), "{text}");
        }
    }

    #[test]
    fn an_instant_with_an_offset_is_refused() {
        let error = "2025-01-01T00:00:00+01:00".parse::<UnixTime>().expect_err("only UTC");
        assert!(error.to_string().contains("2025-01-01T00:00:00+01:00"));
    }
}
