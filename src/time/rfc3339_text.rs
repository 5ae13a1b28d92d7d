//! Instants as RFC 3339 in UTC: written in one form, and read in that form alone.
//!
//! jiff knows the calendar and the digits are put in place here. Written by jiff's printer, an instant takes 812
//! instructions instead of 378, and an answer of decoding has ten of them: 4 340 of 94 900, or 4.6 %.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::unix_time::UnixTime;

/// Texts are read as civil time, since jiff's timestamps end a day before the year 9999 does.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// The first instant of the year 0, the earliest that RFC 3339 can write.
const YEAR_ZERO: UnixTime = UnixTime::from_nanos(-62_167_219_200 * NANOS_PER_SECOND);

/// The first instant that RFC 3339 cannot write any more.
const YEAR_TEN_THOUSAND: UnixTime = UnixTime::from_nanos(253_402_300_800 * NANOS_PER_SECOND);

/// The longest text, with nine digits of the second.
const LEN_MAX: usize = "0000-00-00T00:00:00.000000000Z".len();

/// After so many seconds the Gregorian calendar repeats.
const SECONDS_PER_400_YEARS: i64 = 146_097 * 86_400;

/// An instant in UTC as text, such as `2015-01-01T00:00:00.000Z`, without an allocation.
///
/// Made by [`UnixTime::rfc3339`].
///
/// ```
/// use idmint::time::UnixTime;
/// let text = UnixTime::EPOCH.rfc3339(0).expect("a year of four digits");
/// assert_eq!(&*text, "1970-01-01T00:00:00Z");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Rfc3339Text {
    bytes: [u8; LEN_MAX],
    len: usize,
}

/// A text that is no instant in UTC.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not a UTC instant such as 2025-01-01T00:00:00Z")]
pub struct UnixTimeError {
    text: String,
    #[source]
    cause: Option<jiff::Error>,
}

impl UnixTime {
    /// RFC 3339 in UTC with `digits` (0 to 9) digits of the second, cut and not rounded; `None` outside the years
    /// 0 to 9999, which that form cannot write.
    ///
    /// ```
    /// use idmint::time::UnixTime;
    /// let almost = UnixTime::from_nanos(1_704_067_200_999_999_999);
    /// assert_eq!(almost.rfc3339(3).as_deref(), Some("2024-01-01T00:00:00.999Z"));
    /// assert!(UnixTime::from_nanos(i128::MAX).rfc3339(3).is_none());
    /// ```
    pub fn rfc3339(self, digits: u8) -> Option<Rfc3339Text> {
        if !(YEAR_ZERO..YEAR_TEN_THOUSAND).contains(&self) {
            return None;
        }
        let (seconds, nanos) = self.seconds_and_nanos();
        let seconds =
            i64::try_from(seconds).expect("the years 0 to 9999 have fewer seconds than 2^63");
        // 400 years earlier the calendar is the same, and there jiff's timestamps do not end a day before the year 9999.
        let earlier = Timestamp::from_second(seconds - SECONDS_PER_400_YEARS)
            .expect("the years -400 to 9599");
        let civil = Offset::UTC.to_datetime(earlier);
        let mut bytes = *b"0000-00-00T00:00:00.000000000Z";
        put(&mut bytes[..4], (civil.year() + 400).unsigned_abs().into());
        put(&mut bytes[5..7], civil.month().unsigned_abs().into());
        put(&mut bytes[8..10], civil.day().unsigned_abs().into());
        put(&mut bytes[11..13], civil.hour().unsigned_abs().into());
        put(&mut bytes[14..16], civil.minute().unsigned_abs().into());
        put(&mut bytes[17..19], civil.second().unsigned_abs().into());
        let len = match usize::from(digits.min(9)) {
            0 => 20,
            digits => {
                put(&mut bytes[20..29], nanos);
                21 + digits
            }
        };
        bytes[len - 1] = b'Z';
        Some(Rfc3339Text { bytes, len })
    }

    /// What [`UnixTime::rfc3339`] writes, as a string.
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
            .find_map(|(digits, unit)| (self.nanos().rem_euclid(unit) == 0).then_some(digits));
        self.to_text(digits.unwrap_or(9))
    }
}

impl Deref for Rfc3339Text {
    type Target = str;

    fn deref(&self) -> &str {
        str::from_utf8(&self.bytes[..self.len]).expect("digits and punctuation")
    }
}

/// Reads RFC 3339 in UTC, its letters in upper case, with at most nine digits of the second and no leap second.
impl FromStr for UnixTime {
    type Err = UnixTimeError;

    fn from_str(text: &str) -> Result<UnixTime, UnixTimeError> {
        if !is_utc_date_time(text) {
            return Err(UnixTimeError {
                text: text.to_owned(),
                cause: None,
            });
        }
        match text.trim_end_matches('Z').parse::<DateTime>() {
            Ok(date_time) => Ok(UnixTime::from_nanos(
                date_time.duration_since(EPOCH).as_nanos(),
            )),
            Err(cause) => Err(UnixTimeError {
                text: text.to_owned(),
                cause: Some(cause),
            }),
        }
    }
}

/// Whether this is RFC 3339 in UTC, its letters in upper case, with at most nine digits of the second.
///
/// Asked first, since jiff reads many more forms, and makes 59 of a second 60.
fn is_utc_date_time(text: &str) -> bool {
    const DATE_TIME: &[u8] = b"0000-00-00T00:00:00";
    let Some((date_time, rest)) = text.as_bytes().split_at_checked(DATE_TIME.len()) else {
        return false;
    };
    let mut letters = date_time.iter().zip(DATE_TIME);
    let is_formed = letters.all(|(found, form)| {
        if *form == b'0' {
            found.is_ascii_digit()
        } else {
            found == form
        }
    });
    let is_fraction =
        |digits: &[u8]| (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
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

/// Writes a number over all of `out`, with zeros in front.
fn put(out: &mut [u8], number: u32) {
    let mut rest = number;
    for digit in out.iter_mut().rev() {
        *digit = b"0123456789"[usize::try_from(rest % 10).expect("a digit")];
        rest /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With nine digits of the second, as jiff writes it.
    fn by_jiff(time: UnixTime) -> String {
        let (seconds, nanos) = time.seconds_and_nanos();
        let since = jiff::SignedDuration::new(i64::try_from(seconds).expect("small"), 0);
        let written = EPOCH.checked_add(since).expect("a year of four digits");
        format!("{written:.0}.{nanos:09}Z")
    }

    fn assert_cut(time: UnixTime, digits: u8, whole: &str) {
        let len = if digits == 0 {
            19
        } else {
            20 + usize::from(digits)
        };
        let text = time.rfc3339(digits).expect("within");
        assert_eq!(
            text.split_at(text.len() - 1),
            (&whole[..len], "Z"),
            "{time:?} with {digits} digits"
        );
    }

    /// A thousand times of day come in turns, and with each day one number of digits beside all nine: in 9 000 days each time has
    /// had each.
    #[test]
    fn every_day_of_ten_thousand_years_is_written_as_jiff_writes_it() {
        let nanos_per_day = 86_400 * NANOS_PER_SECOND;
        let parts = (0..1_000).map(|part| nanos_per_day * part / 1_000);
        let times: Vec<_> = parts
            .map(|nanos| (nanos, by_jiff(UnixTime::from_nanos(nanos)).split_off(10)))
            .collect();
        let printer = jiff::fmt::temporal::DateTimePrinter::new();
        let (mut date, mut expected, mut days) =
            (Some(jiff::civil::date(0, 1, 1)), String::new(), 0_u32);
        while let Some(day) = date {
            let (of_day, time_of_day) = &times[usize::try_from(days % 1_000).expect("small")];
            let time =
                UnixTime::from_nanos(YEAR_ZERO.nanos() + nanos_per_day * i128::from(days) + of_day);
            expected.clear();
            printer
                .print_date(&day, &mut expected)
                .expect("a string takes it");
            expected.push_str(time_of_day);
            assert_eq!(time.rfc3339(9).as_deref(), Some(&*expected), "{time:?}");
            assert_cut(time, u8::try_from(days % 9).expect("a digit"), &expected);
            days += 1;
            date = day.tomorrow().ok();
        }
        assert_eq!(days, 25 * 146_097);
        for edge in [
            YEAR_ZERO,
            UnixTime::from_nanos(YEAR_TEN_THOUSAND.nanos() - 1),
        ] {
            assert_eq!(edge.rfc3339(9).as_deref(), Some(&*by_jiff(edge)));
            (0..=9).for_each(|digits| assert_cut(edge, digits, &by_jiff(edge)));
        }
        assert!(
            UnixTime::from_nanos(YEAR_ZERO.nanos() - 1)
                .rfc3339(0)
                .is_none()
        );
        assert!(YEAR_TEN_THOUSAND.rfc3339(0).is_none());
    }

    #[test]
    fn text_is_cut_to_the_digits_asked_for_and_never_rounded_up() {
        let almost = UnixTime::from_nanos(1_704_067_200_999_999_999);
        assert_eq!(almost.to_text(0).as_deref(), Some("2024-01-01T00:00:00Z"));
        assert_eq!(
            almost.to_text(3).as_deref(),
            Some("2024-01-01T00:00:00.999Z")
        );
        assert_eq!(
            almost.to_text(9).as_deref(),
            Some("2024-01-01T00:00:00.999999999Z")
        );
    }

    #[test]
    fn a_time_that_rfc_3339_cannot_write_has_no_text() {
        for text in [
            "0000-01-01T00:00:00.000000000Z",
            "9999-12-31T23:59:59.999999999Z",
        ] {
            let instant: UnixTime = text.parse().expect("the first and the last");
            assert_eq!(instant.to_text(9).as_deref(), Some(text));
            let beyond =
                UnixTime::from_nanos(instant.nanos() + if text.starts_with('0') { -1 } else { 1 });
            assert_eq!(beyond.to_text(9), None);
        }
        assert_eq!(
            UnixTime::from_nanos(300_000_000_000 * NANOS_PER_SECOND).to_text(0),
            None
        );
        assert_eq!(
            UnixTime::from_nanos(-70_000_000_000 * NANOS_PER_SECOND).to_text(0),
            None
        );
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
        for text in [
            "0000-01-01T00:00:00Z",
            "2024-02-29T23:59:59.123456789Z",
            "9999-12-31T23:59:59Z",
        ] {
            assert!(text.parse::<UnixTime>().is_ok(), "{text}");
        }
    }

    #[test]
    fn an_instant_with_an_offset_is_refused() {
        let error = "2025-01-01T00:00:00+01:00"
            .parse::<UnixTime>()
            .expect_err("only UTC");
        assert!(error.to_string().contains("2025-01-01T00:00:00+01:00"));
    }
}
