//! A completed request that has an idempotency key, and the rules that decide how long a store
//! keeps the key.

use super::record_store::RecordPlan;
use super::written_day::{LAST_DAYS, LastDays, WrittenDay};
use idmint_records::ledger::{EventId, EventTime, KeyHash};

const DAY_MICROS: u64 = 24 * 3600 * 1_000_000;

/// The maximum number of days by which a day with stored request keys may be ahead of today, if no
/// other such day is ahead. A day further ahead is ignored, because a wrong clock has probably
/// recorded it.
const LONE_DAY_MAX: u32 = 31;

/// A completed request with an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoneRequest {
    /// The idempotency key of the request.
    pub key: KeyHash,
    /// The time at which the request was recorded.
    pub recorded: EventTime,
    /// The last event that the request appended. The store uses the id of this event to find all
    /// events of the request.
    pub last: EventId,
}

impl DoneRequest {
    /// Returns the append request that is complete once `plan` is stored. Returns `None` if the
    /// request has no idempotency key, or if `plan` appends no events. The keys of requests for
    /// numbers are stored elsewhere, without a time limit.
    pub fn of(plan: &RecordPlan) -> Option<DoneRequest> {
        match plan {
            RecordPlan::Append(plan) => Some(DoneRequest {
                key: plan.mark?.key,
                recorded: plan.recorded,
                last: plan.head().id,
            }),
            RecordPlan::Anchor(_)
            | RecordPlan::Number(_)
            | RecordPlan::Void(_)
            | RecordPlan::Close(_) => None,
        }
    }
}

/// Returns the time that is 24 hours before `now`. All request keys that were recorded since then
/// are certainly still stored.
///
/// An older key remains stored, and is recognized, until [its day is removed](days_to_forget).
pub fn remembered_since(now: EventTime) -> EventTime {
    EventTime::from_micros(now.micros().saturating_sub(DAY_MICROS))
        .expect("earlier than a time there is")
}

/// Returns a time since which all recorded request keys are certainly still stored. The result
/// depends only on `recorded`, the times in stored records, and not on a clock.
///
/// The result is the earlier of two times: 24 hours before the latest recorded time, and the start
/// of the third-last day with a recorded time. For example, for times on the days 10, 11 and 15 of
/// a month, the result is the start of day 10. So a single clock that was ahead does not remove the
/// latest keys that other clocks recorded. If the times fall on fewer than three days, the result
/// is 1970, so all keys are kept.
pub fn remembered_among(recorded: impl IntoIterator<Item = EventTime>) -> EventTime {
    let mut days = LastDays::default();
    let mut newest = EventTime::from_micros(0).expect("the first time there is");
    for time in recorded {
        days.add(WrittenDay::of(time));
        newest = newest.max(time);
    }
    let third_last = days
        .third_last()
        .map_or(0, |day| day.begins().get() / 1_000);
    remembered_since(newest)
        .min(EventTime::from_micros(third_last).expect("earlier than a time there is"))
}

/// Returns the earliest time at which to record a request key if the clock shows `now`. `days` are
/// the days on which keys were recorded earlier, in ascending order.
///
/// If the clock is behind the latest of these days, the result is the start of that day. A key
/// under an earlier day could be [removed](days_to_forget) as soon as the clock is corrected.
///
/// However, a wrong clock may have recorded a day far in the future. So if only one day is after
/// today, and it is more than 31 days ahead, the result is `now`. Otherwise all new keys would be
/// recorded under that day and kept until then.
pub(crate) fn recorded_min(days: &[WrittenDay], now: EventTime) -> EventTime {
    let today = WrittenDay::of(now);
    let later = &days[days.partition_point(|day| *day <= today)..];
    match later {
        [] => now,
        [lone] if lone.number() - today.number() > LONE_DAY_MAX => now,
        [.., latest] => EventTime::from_micros(latest.begins().get() / 1_000)
            .expect("64 bits of nanoseconds are fewer microseconds"),
    }
}

/// Returns the days at the beginning of `days` whose request keys can be removed, because all of
/// them were recorded before `since`. `days` must be sorted.
///
/// The last three days are never returned. Otherwise, a clock that is wrong at one start could make
/// the store remove the keys of recent days.
pub fn days_to_forget(days: &[WrittenDay], since: EventTime) -> &[WrittenDay] {
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
    fn one_clock_that_was_ahead_frees_no_key_of_the_real_last_day() {
        let at = |hours: u64| EventTime::from_micros(hours * DAY_MICROS / 24).expect("in range");
        let days_ago = |days: u64| at(24 * (1_000 - days));
        let real = [days_ago(3), days_ago(2), days_ago(1), days_ago(0)];
        assert_eq!(
            remembered_among(real),
            days_ago(2),
            "the control is in time: the third-last day is earlier than 24 h"
        );
        for ahead in [28, 400 * 24] {
            let since = remembered_among(real.into_iter().chain([at(24 * 1_000 + ahead)]));
            assert_eq!(since, days_ago(1), "{ahead} h");
        }
        assert_eq!(
            remembered_among(real[..2].iter().copied()),
            at(0),
            "fewer days than three: all"
        );
    }

    #[test]
    fn a_clock_that_is_behind_records_keys_on_the_latest_day() {
        let days = |numbers: &[u32]| -> Vec<_> {
            let days = numbers.iter().copied();
            days.map(WrittenDay::numbered).collect()
        };
        let now = EventTime::from_micros(10 * DAY_MICROS + 5).expect("in range");
        let day = |written: &[u32]| WrittenDay::of(recorded_min(&days(written), now)).number();
        for written in [&[][..], &[8, 9], &[9, 10], &[9, 10, 42], &[400]] {
            assert_eq!(recorded_min(&days(written), now), now, "{written:?}");
        }
        assert_eq!((day(&[9, 11]), day(&[10, 41])), (11, 41));
        assert_eq!((day(&[18, 19, 20]), day(&[9, 400, 401])), (20, 401));
    }

    #[test]
    fn the_last_three_days_are_kept_whatever_the_clock_says() {
        let days = |numbers: &[u32]| {
            numbers
                .iter()
                .map(|number| WrittenDay::numbered(*number))
                .collect::<Vec<_>>()
        };
        let since = |day: u64| EventTime::from_micros(day * DAY_MICROS + 5).expect("in range");
        assert_eq!(days_to_forget(&days(&[7, 8, 9, 10]), since(9)), days(&[7]));
        assert_eq!(
            days_to_forget(&days(&[5, 6, 8, 9, 10]), since(6)),
            days(&[5]),
            "the sixth day is still asked for"
        );
        assert_eq!(days_to_forget(&days(&[8, 9, 10]), since(5_000)), []);
        assert_eq!(days_to_forget(&[], since(5_000)), []);
    }
}
