//! The time of an event, in whole microseconds. The id of the event contains the same time.

use std::fmt;

use idmint_core::id::Rejection;
use idmint_core::time::UnixTime;

const NANOS_PER_MICRO: i128 = 1_000;

/// The maximum number of fraction digits of a second in an event's time.
const FRACTION_DIGITS_MAX: usize = 6;

/// The time of an event, in whole microseconds since 1970-01-01T00:00:00Z, without leap seconds.
///
/// The range is 0 to 2^63 - 1, which is in the year 294247. As text, it has six fraction digits.
/// Times after the year 9999 cannot be written in this form, so they are displayed as seconds
/// since 1970.
///
/// ```
/// use idmint_records::ledger::EventTime;
///
/// let time = EventTime::from_text("2021-10-03T16:32:12.81653Z")?;
/// assert_eq!(time.micros(), 1_633_278_732_816_530);
/// assert_eq!(time.to_string(), "2021-10-03T16:32:12.816530Z");
/// # Ok::<(), idmint_core::id::Rejection>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventTime(u64);

impl EventTime {
    /// The last possible time, in microseconds since 1970. An id stores a time in 64 bits, of which
    /// one is the sign.
    const MICROS_MAX: u64 = i64::MAX.unsigned_abs();

    /// The beginning of 1970.
    pub(in crate::ledger) const EPOCH: EventTime = EventTime(0);

    /// Creates the time that is `micros` microseconds after 1970 began. Returns `None` if `micros`
    /// is 2^63 or more.
    pub const fn from_micros(micros: u64) -> Option<EventTime> {
        if micros <= EventTime::MICROS_MAX {
            Some(EventTime(micros))
        } else {
            None
        }
    }

    /// Returns the number of microseconds since 1970.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Parses a time such as `2021-10-03T16:32:12.816530Z`, with at most six fraction digits. Only
    /// the offset `Z` is accepted, as the specification of event ids requires.
    ///
    /// # Errors
    /// Returns [`Rejection::BadTimestamp`] if the text has another form or names a day that does
    /// not exist. Returns [`Rejection::BeforeEpoch`] if the time is before 1970.
    pub fn from_text(text: &str) -> Result<EventTime, Rejection> {
        let fraction = text
            .split_once('.')
            .map_or("", |(_, fraction)| fraction.trim_end_matches('Z'));
        if fraction.len() > FRACTION_DIGITS_MAX || !text.ends_with('Z') {
            return Err(Rejection::BadTimestamp);
        }
        let instant: UnixTime = text.parse().map_err(|_| Rejection::BadTimestamp)?;
        // The division is exact, because the text has at most six fraction digits.
        u64::try_from(instant.nanos() / NANOS_PER_MICRO)
            .map(EventTime)
            .map_err(|_| Rejection::BeforeEpoch)
    }

    /// Returns the time one microsecond later, or `None` if this is the last possible time.
    #[must_use]
    pub const fn next(self) -> Option<EventTime> {
        EventTime::from_micros(self.0 + 1)
    }

    /// Returns the time for the next event of a ledger whose last event has the time `last`. It is
    /// `now`, or one microsecond after `last` if `now` is not later than `last`.
    ///
    /// Returns `None` if `last` is the last possible time.
    #[must_use]
    pub fn after(last: Option<EventTime>, now: EventTime) -> Option<EventTime> {
        match last {
            Some(last) => last.next().map(|next| next.max(now)),
            None => Some(now),
        }
    }
}

impl From<EventTime> for UnixTime {
    fn from(time: EventTime) -> UnixTime {
        UnixTime::from_nanos(i128::from(time.0) * NANOS_PER_MICRO)
    }
}

impl fmt::Display for EventTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UnixTime::from(*self).to_text(6) {
            Some(text) => out.write_str(&text),
            None => write!(
                out,
                "{}.{:06} s since 1970",
                self.0 / 1_000_000,
                self.0 % 1_000_000
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_time_are_written() {
        let shown = |micros| {
            EventTime::from_micros(micros)
                .expect("in range")
                .to_string()
        };
        assert_eq!(shown(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(
            shown(253_402_300_799_999_999),
            "9999-12-31T23:59:59.999999Z"
        );
        assert_eq!(
            shown(253_402_300_800_000_000),
            "253402300800.000000 s since 1970"
        );
        assert_eq!(shown(u64::MAX >> 1), "9223372036854.775807 s since 1970");
        assert_eq!(EventTime::from_micros(1 << 63), None);
    }

    #[test]
    fn a_text_has_at_most_six_digits_of_the_second() {
        let read = |text| EventTime::from_text(text).map(EventTime::micros);
        assert_eq!(read("1970-01-01T00:00:00Z"), Ok(0));
        assert_eq!(read("1970-01-01T00:00:01.5Z"), Ok(1_500_000));
        assert_eq!(read("1970-01-01T00:00:00.000001Z"), Ok(1));
        assert_eq!(
            read("9999-12-31T23:59:59.999999Z"),
            Ok(253_402_300_799_999_999)
        );
        assert_eq!(
            read("1969-12-31T23:59:59.999999Z"),
            Err(Rejection::BeforeEpoch)
        );
        for text in [
            "",
            "1970-01-01",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00.0000001Z",
            "1970-01-01T00:00:00",
            "1970-01-01T00:00:00ZZ",
        ] {
            assert_eq!(read(text), Err(Rejection::BadTimestamp), "{text}");
        }
    }

    #[test]
    fn nothing_comes_after_the_last_time() {
        let last = EventTime::from_micros(u64::MAX >> 1).expect("the last");
        assert_eq!(last.next(), None);
        assert_eq!(EventTime::after(Some(last), last), None);
        assert_eq!(EventTime::after(None, last), Some(last));
    }
}
