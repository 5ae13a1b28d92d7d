//! Instants as RFC 3339 writes them.
//!
//! Written by hand: an answer of many readings has many instants, and a formatter for every calendar there is costs
//! several times as much.

use std::ops::Deref;

use super::unix_time::UnixTime;

/// The longest text, with nine digits of the second.
const LEN_MAX: usize = "0000-00-00T00:00:00.000000000Z".len();

const SECONDS_PER_DAY: i64 = 86_400;

/// Days from 0000-03-01 to 1970-01-01. Years that begin in March have their leap day last.
const DAYS_TO_1970: i64 = 719_468;

const DAYS_PER_400_YEARS: u32 = 146_097;

/// An instant in UTC as text, such as `2015-01-01T00:00:00.000Z`. Takes no memory but its own.
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

impl UnixTime {
    /// RFC 3339 in UTC with `digits` (0 to 9) digits of the second, cut and not rounded; `None` outside the years
    /// 0 to 9999, which that form cannot write.
    pub fn rfc3339(self, digits: u8) -> Option<Rfc3339Text> {
        if !(UnixTime::YEAR_ZERO..UnixTime::YEAR_TEN_THOUSAND).contains(&self) {
            return None;
        }
        let (seconds, nanos) = self.seconds_and_nanos();
        let seconds = i64::try_from(seconds).expect("the years 0 to 9999 have fewer seconds than 2^63");
        let [year, month, day] = date_of(seconds.div_euclid(SECONDS_PER_DAY));
        let second = u32::try_from(seconds.rem_euclid(SECONDS_PER_DAY)).expect("below 86 400");
        let mut bytes = *b"0000-00-00T00:00:00.000000000Z";
        put(&mut bytes[..4], year);
        put(&mut bytes[5..7], month);
        put(&mut bytes[8..10], day);
        put(&mut bytes[11..13], second / 3_600);
        put(&mut bytes[14..16], second / 60 % 60);
        put(&mut bytes[17..19], second % 60);
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
}

impl Deref for Rfc3339Text {
    type Target = str;

    fn deref(&self) -> &str {
        str::from_utf8(&self.bytes[..self.len]).expect("digits and punctuation")
    }
}

/// Year, month and day of the day so many days after 1970-01-01, in the years 0 to 9999.
///
/// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn date_of(days: i64) -> [u32; 3] {
    // 400 years later, since January and February of the year 0 lie before its March.
    let days = u32::try_from(days + DAYS_TO_1970 + i64::from(DAYS_PER_400_YEARS)).expect("from the year 0 on");
    let (era, day) = (days / DAYS_PER_400_YEARS, days % DAYS_PER_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, passed) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    [400 * era + year + passed - 400, month, day]
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
    use jiff::civil::DateTime;

    use super::*;

    const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

    fn assert_text(time: UnixTime) {
        let (seconds, nanos) = time.seconds_and_nanos();
        let since = jiff::SignedDuration::new(i64::try_from(seconds).expect("small"), 0);
        let written_by_jiff = EPOCH.checked_add(since).expect("a year of four digits");
        assert_eq!(time.rfc3339(9).as_deref(), Some(&*format!("{written_by_jiff:.0}.{nanos:09}Z")), "{time:?}");
        let text = time.rfc3339(9).expect("within");
        assert_eq!(time.rfc3339(0).as_deref(), Some(&*format!("{}Z", &text[..19])));
        for digits in 1..9 {
            assert_eq!(time.rfc3339(digits).as_deref(), Some(&*format!("{}Z", &text[..20 + usize::from(digits)])));
        }
    }

    #[test]
    fn every_day_of_ten_thousand_years_is_written_as_jiff_writes_it() {
        let nanos_per_day = i128::from(SECONDS_PER_DAY) * 1_000_000_000;
        let mut day = UnixTime::YEAR_ZERO;
        let mut days = 0;
        while day < UnixTime::YEAR_TEN_THOUSAND {
            assert_text(UnixTime::from_nanos(day.nanos() + nanos_per_day * (days % 1_000) / 1_000));
            day = UnixTime::from_nanos(day.nanos() + nanos_per_day);
            days += 1;
        }
        assert_eq!(days, 25 * i128::from(DAYS_PER_400_YEARS));
        assert_text(UnixTime::YEAR_ZERO);
        assert_text(UnixTime::from_nanos(UnixTime::YEAR_TEN_THOUSAND.nanos() - 1));
        assert!(UnixTime::from_nanos(UnixTime::YEAR_ZERO.nanos() - 1).rfc3339(0).is_none());
        assert!(UnixTime::YEAR_TEN_THOUSAND.rfc3339(0).is_none());
    }
}
