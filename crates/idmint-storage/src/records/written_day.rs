//! The days on which nodes have written records, according to the times in the records. The age of
//! records is measured from these days.
//!
//! A clock that is wrong at one start may write records on a day far in the future. The age of
//! records is therefore judged by the third-last day, which one wrong day hardly changes:
//!
//! ```text
//! days with records   20781  20782  20783  21183     a clock 400 days ahead wrote the last one
//! third-last day             20782                   no record is judged by a time after its start
//! ```

use std::collections::BTreeSet;

use idmint_core::time::UnixNanos;
use idmint_records::ledger::EventTime;

const DAY_SECONDS: u64 = 24 * 3600;

/// The number of days that [`LastDays`] remembers.
pub(crate) const LAST_DAYS: usize = 3;

/// A day on which a record was written, counted in 24-hour days since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WrittenDay(u32);

impl WrittenDay {
    /// Returns the day that contains `time`.
    pub fn of(time: EventTime) -> WrittenDay {
        let number = time.micros() / (DAY_SECONDS * 1_000_000);
        WrittenDay(u32::try_from(number).expect("2^63 microseconds are fewer days"))
    }

    /// Returns the day that contains the time `shown`, which was read from a clock.
    pub fn of_clock(shown: UnixNanos) -> WrittenDay {
        let number = shown.get() / (DAY_SECONDS * 1_000_000_000);
        WrittenDay(u32::try_from(number).expect("64 bits of nanoseconds are fewer days"))
    }

    /// Returns the day with this number, counted from 1970.
    pub fn numbered(number: u32) -> WrittenDay {
        WrittenDay(number)
    }

    /// Returns the number of days from 1970 to this day.
    pub fn number(self) -> u32 {
        self.0
    }

    /// Returns the first moment of the day. If the day is beyond the range of the clock, returns
    /// the last moment in that range.
    pub fn begins(self) -> UnixNanos {
        UnixNanos::new((u64::from(self.0) * DAY_SECONDS).saturating_mul(1_000_000_000))
    }
}

/// The latest three of the days that were added so far.
#[derive(Debug, Default)]
pub(crate) struct LastDays(BTreeSet<WrittenDay>);

impl LastDays {
    /// Adds a day on which a record was written. Keeps only the latest three of all added days.
    pub(crate) fn add(&mut self, day: WrittenDay) {
        self.0.insert(day);
        if self.0.len() > LAST_DAYS {
            self.0.pop_first();
        }
    }

    /// Returns the earliest of the latest three days, or `None` if fewer than three different days
    /// were added.
    pub(crate) fn third_last(&self) -> Option<WrittenDay> {
        self.0
            .first()
            .copied()
            .filter(|_| self.0.len() == LAST_DAYS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_with_its_first_microsecond() {
        let day = WrittenDay::numbered(20_000);
        let begins = day.begins().get() / 1_000;
        let at = |micros| EventTime::from_micros(micros).expect("in range");
        assert_eq!(
            [begins - 1, begins].map(|micros| WrittenDay::of(at(micros)).number()),
            [19_999, 20_000]
        );
        assert_eq!(
            [day.begins().get() - 1, day.begins().get()]
                .map(|nanos| { WrittenDay::of_clock(UnixNanos::new(nanos)).number() }),
            [19_999, 20_000]
        );
        assert_eq!(
            WrittenDay::numbered(u32::MAX).begins(),
            UnixNanos::new(u64::MAX)
        );
    }

    #[test]
    fn the_third_last_day_is_known_once_there_are_three() {
        let mut days = LastDays::default();
        let third_last = |days: &LastDays| days.third_last().map(WrittenDay::number);
        for (day, expected) in [
            (9, None),
            (9, None),
            (2, None),
            (7, Some(2)),
            (400, Some(7)),
            (1, Some(7)),
        ] {
            days.add(WrittenDay::numbered(day));
            assert_eq!(third_last(&days), expected, "after day {day}");
        }
    }
}
