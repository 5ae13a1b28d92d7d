//! A request with a key that was done, and for how long that is remembered.

use super::record_plan::RecordPlan;
use super::written_day::{LAST_DAYS, WrittenDay};
use crate::ledger::{EventId, EventTime, KeyHash};

const DAY_MICROS: u64 = 24 * 3600 * 1_000_000;

/// A request with a key that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoneRequest {
    /// The key it came with.
    pub key: KeyHash,
    /// When it was recorded.
    pub recorded: EventTime,
    /// The last event it appended, which names its append.
    pub last: EventId,
}

impl DoneRequest {
    /// What a plan does, if a key came with it.
    pub(in crate::storage) fn of(plan: &RecordPlan) -> Option<DoneRequest> {
        match plan {
            RecordPlan::Append(plan) => {
                Some(DoneRequest { key: plan.mark?.key, recorded: plan.recorded, last: plan.head().id })
            }
            RecordPlan::Anchor(_) => None,
        }
    }
}

/// The earliest time of a request whose key is certainly kept: 24 hours before. Longer than that a key is kept until
/// [its day is forgotten](days_to_forget), and known as long as it is kept.
pub(in crate::storage) fn remembered_since(now: EventTime) -> EventTime {
    EventTime::from_micros(now.micros().saturating_sub(DAY_MICROS)).expect("earlier than a time there is")
}

/// Which of these days, in their order, hold no request since that time. The last three are none of them whatever the time:
/// a clock that is wrong at one start must not have the keys of real days forgotten.
pub(in crate::storage) fn days_to_forget(days: &[WrittenDay], since: EventTime) -> &[WrittenDay] {
    let older = &days[..days.len().saturating_sub(LAST_DAYS)];
    &older[..older.partition_point(|day| *day < WrittenDay::of(since))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_certainly_kept_for_a_day() {
        let at = |micros| EventTime::from_micros(micros).expect("in range");
        assert_eq!(remembered_since(at(DAY_MICROS + 7)), at(7));
        assert_eq!(remembered_since(at(5)), at(0));
    }

    #[test]
    fn the_last_three_days_are_kept_whatever_the_clock_says() {
        let days = |numbers: &[u32]| numbers.iter().map(|number| WrittenDay::numbered(*number)).collect::<Vec<_>>();
        let since = |day: u64| EventTime::from_micros(day * DAY_MICROS + 5).expect("in range");
        assert_eq!(days_to_forget(&days(&[7, 8, 9, 10]), since(9)), days(&[7]));
        assert_eq!(days_to_forget(&days(&[5, 6, 8, 9, 10]), since(6)), days(&[5]), "the sixth day is still asked for");
        assert_eq!(days_to_forget(&days(&[8, 9, 10]), since(5_000)), []);
        assert_eq!(days_to_forget(&[], since(5_000)), []);
    }
}
