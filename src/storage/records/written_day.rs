//! Days on which nodes wrote something, by the times that they wrote: what is old is judged by these.
//!
//! A clock that is wrong at one start shows any day it likes; what it cannot do is make the days that others wrote before it.
//!
//! ```text
//! written on the days   20781  20782  20783  21183          the last by a clock that was 400 days ahead
//! third-last of them           20782                        nothing is judged by a later time than where that begins
//! ```

use std::collections::BTreeSet;

use crate::ledger::EventTime;
use crate::time::UnixNanos;

const DAY_SECONDS: u64 = 24 * 3600;

/// How many of the last days count.
pub(in crate::storage) const LAST_DAYS: usize = 3;

/// A day on which something was written: days of 24 hours since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WrittenDay(u32);

impl WrittenDay {
    /// The day of that time.
    pub fn of(time: EventTime) -> WrittenDay {
        let number = time.micros() / (DAY_SECONDS * 1_000_000);
        WrittenDay(u32::try_from(number).expect("2^63 microseconds are fewer days"))
    }

    /// The day of what a clock showed.
    pub fn of_clock(shown: UnixNanos) -> WrittenDay {
        let number = shown.get() / (DAY_SECONDS * 1_000_000_000);
        WrittenDay(u32::try_from(number).expect("64 bits of nanoseconds are fewer days"))
    }

    /// The day of that number.
    pub fn numbered(number: u32) -> WrittenDay {
        WrittenDay(number)
    }

    /// Its number, from 0.
    pub fn number(self) -> u32 {
        self.0
    }

    /// Its first moment, or the last that a clock can show.
    pub fn begins(self) -> UnixNanos {
        UnixNanos::new((u64::from(self.0) * DAY_SECONDS).saturating_mul(1_000_000_000))
    }
}

/// The last days on which something was written, as far as they were seen.
#[derive(Debug, Default)]
pub(in crate::storage) struct LastDays(BTreeSet<WrittenDay>);

impl LastDays {
    /// Something was written on that day.
    pub(in crate::storage) fn add(&mut self, day: WrittenDay) {
        self.0.insert(day);
        if self.0.len() > LAST_DAYS {
            self.0.pop_first();
        }
    }

    /// The third-last day; `None` while fewer are known.
    pub(in crate::storage) fn third_last(&self) -> Option<WrittenDay> {
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
