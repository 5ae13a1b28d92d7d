//! Parses instants in the text forms that messages between space agencies use. A date contains the
//! day of the month or the day of the year. A time without an offset is in UTC.
//!
//! jiff does the calendar arithmetic, and this module parses the text. jiff's RFC 3339 parser does
//! not accept a day of the year. jiff's `strptime` is too lenient. It accepts numbers that are too
//! short or have a sign, and reads second 60 as 59. It also reads at most nine fraction digits.

use jiff::SignedDuration;
use jiff::civil::Date;

use super::rfc3339_text::split_offset;
use super::unix_time::UnixTime;

/// The maximum number of fraction digits in a text. Digits below a nanosecond are dropped.
const FRACTION_DIGITS_MAX: usize = 16;

/// The error for a text that is neither an instant in RFC 3339 nor in a form that messages between
/// space agencies use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a time such as 2024-02-01T00:00:00.250Z, 2024-02-01T01:00:00+01:00 or 2024-032T00:00:00.250"
)]
pub struct UtcTextError {
    text: String,
}

impl UnixTime {
    /// Parses an instant such as `2024-02-01T00:00:00.250Z`, `2024-02-01T01:00:00+01:00` or
    /// `2024-032T00:00:00.250`. Accepts RFC 3339 and both forms of CCSDS, the standards committee
    /// of space agencies.
    ///
    /// A text without an offset is in UTC, because the CCSDS forms are always in UTC and have no
    /// offset. Up to 16 fraction digits are accepted, and digits below a nanosecond are dropped.
    /// Second 60 is read as the second after 59, because instants do not count leap seconds.
    ///
    /// The year must be 0 to 9999, because [`UnixTime::to_text`] cannot write other years.
    ///
    /// Source: RFC 3339; CCSDS 301.0-B-4, section 3.5, ASCII time codes A and B; CCSDS 508.0-B-1,
    /// section 6.3.2.6, for the number of digits.
    ///
    /// ```
    /// use idmint_core::time::UnixTime;
    /// let of_month = UnixTime::from_utc_text("2024-02-01T00:00:00.250Z")?;
    /// assert_eq!(UnixTime::from_utc_text("2024-032T00:00:00.25")?, of_month);
    /// assert_eq!(of_month.to_text(6).as_deref(), Some("2024-02-01T00:00:00.250000Z"));
    /// # Ok::<(), idmint_core::time::UtcTextError>(())
    /// ```
    ///
    /// # Errors
    /// Returns a [`UtcTextError`] for any other text, such as one with a lower-case letter, a space,
    /// or a day that the year does not have.
    pub fn from_utc_text(text: &str) -> Result<UnixTime, UtcTextError> {
        instant_of(text).ok_or_else(|| UtcTextError {
            text: text.to_owned(),
        })
    }
}

fn instant_of(text: &str) -> Option<UnixTime> {
    let (local, offset) = split_offset(text).unwrap_or((text, 0));
    let (date, time) = local.split_once('T')?;
    let (clock, fraction) = time
        .split_once('.')
        .map_or((time, None), |(clock, fraction)| (clock, Some(fraction)));
    let [hour, minute, second] = parts(clock, ':')?;
    let (hour, minute, second) = (number(hour, 2)?, number(minute, 2)?, number(second, 2)?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let midnight = date_of(date)?.duration_since(Date::constant(1970, 1, 1));
    let time_of_day = SignedDuration::from_secs(
        (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second),
    );
    let nanos = (midnight + time_of_day).as_nanos() + fraction.map_or(Some(0), nanos_of)? - offset;
    Some(UnixTime::from_nanos(nanos)).filter(|instant| instant.to_text(0).is_some())
}

fn date_of(date: &str) -> Option<Date> {
    if let Some([year, month, day]) = parts(date, '-') {
        let month = i8::try_from(number(month, 2)?).ok()?;
        let day = i8::try_from(number(day, 2)?).ok()?;
        return Date::new(number(year, 4)?, month, day).ok();
    }
    let [year, day] = parts(date, '-')?;
    Date::new(number(year, 4)?, 1, 1)
        .ok()?
        .with()
        .day_of_year(number(day, 3)?)
        .build()
        .ok()
}

fn nanos_of(fraction: &str) -> Option<i128> {
    if !(1..=FRACTION_DIGITS_MAX).contains(&fraction.len())
        || !fraction.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    Some(digits.fold(0, |nanos, digit| nanos * 10 + i128::from(digit - b'0')))
}

/// Parses a number that has exactly `digits` decimal digits, at most four.
fn number(text: &str, digits: usize) -> Option<i16> {
    let is_plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

/// Splits a text at the separators, and returns the parts between them. Returns `None` if the text
/// does not have exactly `N` parts.
fn parts<const N: usize>(text: &str, separator: char) -> Option<[&str; N]> {
    let mut rest = text.split(separator);
    let mut found = [""; N];
    for part in &mut found {
        *part = rest.next()?;
    }
    rest.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> UnixTime {
        UnixTime::from_utc_text(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn both_forms_of_a_day_are_read_with_and_without_a_zone() {
        for text in [
            "2024-02-01T00:00:00Z",
            "2024-02-01T00:00:00",
            "2024-032T00:00:00Z",
            "2024-032T00:00:00",
        ] {
            assert_eq!(read(text).nanos(), 1_706_745_600_000_000_000, "{text}");
        }
        assert_eq!(read("2024-366T23:59:59"), read("2024-12-31T23:59:59Z"));
        assert_eq!(read("2023-365T00:00:00"), read("2023-12-31T00:00:00"));
        assert_eq!(read("1969-12-31T23:59:59.999999999").nanos(), -1);
    }

    #[test]
    fn an_offset_from_utc_is_subtracted() {
        for text in [
            "2024-02-01T00:00:00+00:00",
            "2024-02-01T00:00:00-00:00",
            "2024-02-01T05:45:00+05:45",
            "2024-01-31T16:30:00.000-07:30",
            "2024-032T23:59:00+23:59",
        ] {
            assert_eq!(read(text), read("2024-02-01T00:00:00Z"), "{text}");
            if !text.contains("-032T") {
                assert_eq!(text.parse::<UnixTime>().ok(), Some(read(text)), "{text}");
            }
        }
    }

    #[test]
    fn a_fraction_is_cut_to_nanoseconds_and_never_rounded_up() {
        for (fraction, nanos) in [
            ("0", 0),
            ("25", 250_000_000),
            ("000001", 1_000),
            ("999999999", 999_999_999),
            ("9999999999999999", 999_999_999),
        ] {
            let read = read(&format!("2024-02-01T00:00:00.{fraction}Z"));
            assert_eq!(
                read.nanos() - 1_706_745_600_000_000_000,
                nanos,
                "{fraction}"
            );
        }
    }

    #[test]
    fn second_sixty_is_the_next_second() {
        assert_eq!(read("2016-12-31T23:59:60Z"), read("2017-01-01T00:00:00Z"));
        assert_eq!(read("2024-032T11:04:60.5"), read("2024-02-01T11:05:00.5Z"));
    }

    #[test]
    fn what_is_read_can_be_written_again() {
        for text in ["0000-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"] {
            assert_eq!(read(text).to_text(6).as_deref(), Some(text));
        }
        assert!(UnixTime::from_utc_text("9999-12-31T23:59:60Z").is_err());
    }

    #[test]
    fn anything_else_is_refused_with_its_text() {
        for text in [
            "",
            "Z",
            "T",
            "2024-02-01",
            "2024-02-01T",
            "2024-02-01T00:00",
            "2024-02-01T00:00Z",
            "2024-02-01T00:00:00z",
            "2024-02-01t00:00:00Z",
            "2024-02-01 00:00:00Z",
            " 2024-02-01T00:00:00Z",
            "2024-02-01T00:00:00Z ",
            "2024-02-01T00:00:00ZZ",
            "2024-02-01T00:00:00 00:00",
            "2024-02-01T00:00:00+00:00Z",
            "2024-02-01T00:00:00.Z",
            "2024-02-01T00:00:00.12345678901234567Z",
            "2024-02-01T00:00:00,5Z",
            "2024-02-01T00:00:00.5.5Z",
            "2024-02-01T00:00:00.-5Z",
            "2024-02-01T24:00:00Z",
            "2024-02-01T00:60:00Z",
            "2024-02-01T00:00:61Z",
            "2024-02-01T0:00:00Z",
            "2024-02-01T00:00:+0Z",
            "2024-02-30T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-00-01T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-000T00:00:00",
            "2023-366T00:00:00",
            "2024-367T00:00:00",
            "2024-32T00:00:00",
            "24-02-01T00:00:00Z",
            "02024-02-01T00:00:00Z",
            "-2024-02-01T00:00:00Z",
            "+2024-02-01T00:00:00Z",
            "2024-02-01-01T00:00:00Z",
            "2024T00:00:00Z",
            "20240201T000000Z",
            "1706745600",
            "２０２４-02-01T00:00:00Z",
            "now",
        ] {
            let error = UnixTime::from_utc_text(text).expect_err(text);
            assert!(
                error.to_string().starts_with(&format!("`{text}` is not")),
                "{error}"
            );
        }
    }
}
