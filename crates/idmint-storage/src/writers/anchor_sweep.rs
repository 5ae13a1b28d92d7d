//! The sweep that removes old anchors, the first reports of conjunctions. The sweep runs once a day
//! while the writer thread is idle, and checks up to 2 000 anchors at a time. If the thread is not
//! idle for a day, the sweep runs between its requests.
//!
//! The age of an anchor is judged by times that nodes have written. The anchor's time of closest
//! approach (TCA) alone is not enough, because any caller can choose it. A single clock is not
//! enough either, because it may be wrong. So the sweep uses these rules:
//!
//! ```text
//! reference time   the earlier of   the clock, or in a fleet the median of its nodes' clocks;
//!                                   the third-last day on which a request with a key was recorded
//!                                   or a report was counted
//! old anchor       its TCA and last report are both before the reference time minus the retention
//! ```
//!
//! An anchor without a report count does not show when it was last reported. Either the node was
//! killed before it counted the report, or the anchor was recovered from a journal. If the TCA of
//! such an anchor is old, the sweep stores a count of zero reports for it. Later sweeps judge the
//! anchor by that count.

use std::time::Duration;

use crate::failure::StoreError;
use crate::records::{AnchorKey, CountedAnchor, LastDays, RecordStore, WrittenDay};
use idmint_core::time::{Clock, UnixNanos, UnixTime};
use idmint_records::conjunction::{ReportCount, Seen, Tca};

/// The pause between two sweeps that remove old anchors.
const PAUSE: Duration = Duration::from_hours(24);

/// The maximum number of anchors per step of the sweep for old ones. A step takes some
/// milliseconds, or up to some hundred round trips to the etcd of a fleet.
const STEP_LEN: usize = 2_000;

/// The minimum time between two steps of an overdue sweep. The sweep is overdue if the thread has
/// been busy for a day. Between two steps, the thread writes the records of queued requests.
const STEP_PAUSE: Duration = Duration::from_secs(1);

/// The state of the sweep, which removes anchors that are older than the configured retention.
#[derive(Debug)]
pub(super) struct AnchorSweep {
    retention: Duration,
    /// The last anchor that the previous step checked, or `None` at the start of a pass over all
    /// anchors.
    after: Option<AnchorKey>,
    /// The latest three days on which records were written, among the records read so far. The age
    /// of anchors is measured from the first of these days, or from the clock if it is earlier.
    days: LastDays,
    /// The value of [`Clock::runs_for`] at which the next removal of old anchors is due.
    due: Duration,
    /// The earliest time for a step of an overdue sweep between two requests, counted like `due`.
    paused_until: Duration,
}

impl AnchorSweep {
    /// Creates a sweep that is due at once.
    pub(super) fn new(retention: Duration) -> AnchorSweep {
        AnchorSweep {
            retention,
            after: None,
            days: LastDays::default(),
            due: Duration::ZERO,
            paused_until: Duration::ZERO,
        }
    }

    /// `true` if the next step of the sweep is due.
    pub(super) fn is_due(&self, clock: &Clock) -> bool {
        clock.runs_for() >= self.due
    }

    /// `true` if the next step of the removal of old anchors has been due for a day, because the
    /// writer thread was never idle. The step then runs between two requests.
    pub(super) fn is_overdue(&self, clock: &Clock) -> bool {
        clock.runs_for() >= self.paused_until.max(self.due + PAUSE)
    }

    /// Checks at most 2 000 further anchors, and removes the old ones among them.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store failed. The next call repeats the step.
    pub(super) fn step(
        &mut self,
        records: &dyn RecordStore,
        clock: &Clock,
    ) -> Result<(), StoreError> {
        self.paused_until = clock.runs_for() + STEP_PAUSE;
        let Some(now) = records.judging_time(clock.now())? else {
            return Ok(());
        };
        if self.after.is_none() {
            records
                .request_days()?
                .into_iter()
                .for_each(|day| self.days.add(day));
        }
        let anchors = records.anchors(self.after.as_ref(), STEP_LEN)?;
        for report_count in anchors
            .iter()
            .filter_map(|anchor| anchor.report_count)
            .filter(|report_count| report_count.count > 0)
        {
            [report_count.first.at, report_count.last.at]
                .into_iter()
                .for_each(|at| self.days.add(WrittenDay::of_clock(at)));
        }
        if let Some(before) = self.old_before(now) {
            let is_past = |anchor: &&CountedAnchor| anchor.key.tca < Tca::at(before);
            let found = anchors
                .iter()
                .filter(is_past)
                .filter(|anchor| anchor.report_count.is_none());
            let found: Vec<(AnchorKey, ReportCount)> = found
                .map(|CountedAnchor { key, .. }| {
                    (
                        key.clone(),
                        ReportCount::found(Seen {
                            at: now,
                            tca: key.tca,
                        }),
                    )
                })
                .collect();
            if !found.is_empty() {
                records.add_reports(&found)?;
            }
            let old: Vec<CountedAnchor> = anchors
                .iter()
                .filter(is_past)
                .filter(|anchor| was_reported_before(anchor, before))
                .cloned()
                .collect();
            if !old.is_empty() {
                records.forget_anchors(&old)?;
            }
        }
        let has_more = anchors.len() == STEP_LEN;
        self.after = anchors
            .into_iter()
            .next_back()
            .map(|last| last.key)
            .filter(|_| has_more);
        if !has_more {
            self.due = clock.runs_for() + PAUSE;
        }
        Ok(())
    }

    /// Returns the time before which anchors are removed as old, or `None` if records of fewer than
    /// three days were found. A single day may come from a wrong clock.
    fn old_before(&self, now: UnixNanos) -> Option<UnixTime> {
        let judging_time = self.days.third_last()?.begins().min(now);
        let retention =
            i128::try_from(self.retention.as_nanos()).expect("a configured duration is short");
        Some(UnixTime::from_nanos(
            UnixTime::from(judging_time).nanos() - retention,
        ))
    }
}

/// `true` if the anchor has a report count, and its last report arrived before the time `before`.
fn was_reported_before(anchor: &CountedAnchor, before: UnixTime) -> bool {
    anchor
        .report_count
        .is_some_and(|report_count| UnixTime::from(report_count.last.at) < before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::RecordTables;
    use crate::records::{ConjunctionStore, RecordPlan};
    use idmint_core::time::ManualClock;
    use idmint_records::conjunction::{Anchor, AnchorPlan, Pair};

    const DAY: Duration = Duration::from_hours(24);

    fn at(day: u32) -> UnixNanos {
        WrittenDay::numbered(day).begins()
    }

    fn tca(day: u32) -> Tca {
        Tca(i64::from(day) * 86_400_000_000)
    }

    /// Returns records with one anchor on each of these days, each for a different pair of objects.
    /// Their report counts say that an earlier sweep found them on day 0.
    fn anchors_of(days: std::ops::RangeInclusive<u32>) -> RecordTables {
        let records = uncounted_anchors_of(days.clone());
        let found = |day| {
            (
                key_of(day),
                ReportCount::found(Seen {
                    at: at(0),
                    tca: tca(day),
                }),
            )
        };
        records
            .add_reports(&days.map(found).collect::<Vec<_>>())
            .expect("memory");
        records
    }

    /// Returns records with one anchor on each of these days, without report counts.
    fn uncounted_anchors_of(days: std::ops::RangeInclusive<u32>) -> RecordTables {
        let records = crate::samples::memory_tables().expect("memory suffices");
        let plan = |day: u32| {
            let pair = Pair {
                primary: u64::from(day),
                secondary: 99_999,
            };
            RecordPlan::Anchor(AnchorPlan::of_report(
                "conjunction",
                pair,
                Anchor {
                    tca: tca(day),
                    rank: 0,
                },
            ))
        };
        records
            .write(&days.map(plan).collect::<Vec<_>>())
            .expect("they are of different pairs");
        records
    }

    /// Counts a report that arrives on day `on`, and whose conjunction has its anchor on day `of`.
    fn report(records: &RecordTables, on: u32, of: u32) {
        records
            .add_reports(&[(
                key_of(of),
                ReportCount::of(Seen {
                    at: at(on),
                    tca: tca(of),
                }),
            )])
            .expect("memory");
    }

    fn key_of(day: u32) -> AnchorKey {
        let pair = Pair {
            primary: u64::from(day),
            secondary: 99_999,
        };
        AnchorKey {
            format: "conjunction".to_owned(),
            pair,
            tca: tca(day),
        }
    }

    fn left(records: &RecordTables) -> Vec<i64> {
        let anchors = records.anchors(None, usize::MAX).expect("memory");
        anchors
            .iter()
            .rev()
            .map(|anchor| anchor.key.tca.0 / 86_400_000_000)
            .collect()
    }

    #[test]
    fn anchors_are_forgotten_when_their_time_is_past_by_more_than_the_retention() {
        let records = anchors_of(1..=40);
        [28, 29, 30]
            .into_iter()
            .for_each(|day| report(&records, day, 40));
        let hand = ManualClock::at(at(30));
        let (clock, mut sweep) = (hand.clock(), AnchorSweep::new(10 * DAY));
        sweep.step(&records, &clock).expect("memory");
        // A report count stores only the days of the first and the last report, here 28 and 30. So
        // the sweep knows only two days. After a report of another anchor on day 29, day 28 is the
        // third-last day, from which the sweep then measures the age of all anchors.
        assert_eq!(
            left(&records),
            (1..=40).collect::<Vec<_>>(),
            "two days are known"
        );
        report(&records, 29, 39);
        assert!(!sweep.is_due(&clock), "it rests for a day");
        hand.advance(DAY);
        assert!(sweep.is_due(&clock));
        sweep.step(&records, &clock).expect("memory");
        assert_eq!(left(&records), (18..=40).collect::<Vec<_>>(), "by day 28");
        report(&records, 33, 18);
        hand.advance(DAY);
        sweep.step(&records, &clock).expect("memory");
        assert_eq!(
            left(&records),
            [vec![18], (19..=40).collect::<Vec<_>>()].concat(),
            "by day 29; 18 was reported"
        );
        report(&records, 34, 38);
        hand.advance(DAY);
        sweep.step(&records, &clock).expect("memory");
        assert_eq!(
            left(&records),
            [vec![18], (20..=40).collect::<Vec<_>>()].concat(),
            "by day 30"
        );
        report(&records, 400, 37);
        report(&records, 401, 36);
        hand.advance(DAY * 2);
        sweep.step(&records, &clock).expect("memory");
        assert_eq!(
            left(&records),
            [vec![18], (24..=40).collect::<Vec<_>>()].concat(),
            "by day 34"
        );
        report(&records, 402, 35);
        hand.advance(DAY);
        sweep.step(&records, &clock).expect("memory");
        assert_eq!(
            left(&records),
            [vec![18], (26..=40).collect::<Vec<_>>()].concat(),
            "by the clock, which shows day 36"
        );
    }

    #[test]
    fn an_anchor_that_nobody_has_counted_is_kept_as_long_as_one_that_was_reported_when_it_was_found()
     {
        let records = uncounted_anchors_of(1..=40);
        [28, 29, 30]
            .into_iter()
            .for_each(|day| report(&records, day, day));
        let hand = ManualClock::at(at(30));
        let (clock, mut sweep) = (hand.clock(), AnchorSweep::new(10 * DAY));
        let mut sweep_after = |days: u32| {
            hand.advance(DAY * days);
            sweep.step(&records, &clock).expect("memory");
        };
        sweep_after(1);
        assert_eq!(left(&records), (1..=40).collect::<Vec<_>>());
        let report_counts = || {
            records
                .anchors(None, usize::MAX)
                .expect("memory")
                .into_iter()
                .filter_map(|one| one.report_count)
        };
        // Reports on days 28 to 30 make the sweep measure ages from day 28, not the clock's day 31.
        // With ten days of retention, anchors of days 1 to 17 are old and get a count of zero.
        assert_eq!(
            report_counts()
                .filter(|report_count| report_count.count == 0)
                .count(),
            17
        );
        report(&records, 30, 5);
        assert!(report_counts().any(|report_count| report_count.count == 1
            && report_count.first.at == at(30)
            && report_count.first.tca == tca(5)));
        [39, 40, 41]
            .into_iter()
            .for_each(|day| report(&records, day, day - 1));
        sweep_after(12);
        let all_but_one: Vec<i64> = (1..=40).filter(|day| *day != 28).collect();
        assert_eq!(
            left(&records),
            all_but_one,
            "by day 39 one was reported long ago, and the others were found too late"
        );
        [42, 43, 44]
            .into_iter()
            .for_each(|day| report(&records, day, day - 7));
        sweep_after(3);
        assert!(
            left(&records)[..2].iter().all(|day| *day > 17),
            "{:?}",
            left(&records)
        );
    }

    #[test]
    fn a_report_that_was_counted_while_the_clock_was_set_back_ages_no_anchor() {
        let records = anchors_of(1..=5);
        [28, 29, 30]
            .into_iter()
            .for_each(|day| report(&records, day, day - 26));
        report(&records, 30, 5);
        report(&records, 2, 5);
        let clock = ManualClock::at(at(30)).clock();
        let mut sweep = AnchorSweep::new(10 * DAY);
        sweep.step(&records, &clock).expect("memory");
        assert_eq!(
            left(&records),
            [2, 3, 4, 5],
            "anchor 1 was never reported; anchor 5 was reported on day 30"
        );
    }

    #[test]
    fn a_sweep_goes_on_where_it_was() {
        let count = u32::try_from(STEP_LEN).expect("small") + 5;
        let records = anchors_of(1..=count);
        let days = [20_001, 20_002, 20_003];
        days.into_iter()
            .for_each(|day| report(&records, day, day - 18_000));
        let hand = ManualClock::at(at(20_003));
        let (clock, mut sweep) = (hand.clock(), AnchorSweep::new(19_000 * DAY));
        hand.advance(2 * DAY);
        assert!(sweep.is_overdue(&clock));
        sweep.step(&records, &clock).expect("memory");
        assert_eq!(
            left(&records)[..6],
            [1, 2, 3, 4, 5, 1001],
            "the earliest were not looked at yet"
        );
        assert!(sweep.is_due(&clock));
        assert!(!sweep.is_overdue(&clock), "requests have their turn");
        hand.advance(STEP_PAUSE);
        assert!(sweep.is_overdue(&clock));
        sweep.step(&records, &clock).expect("memory");
        assert_eq!(left(&records)[..2], [1001, 1002]);
        assert!(!sweep.is_due(&clock));
    }
}
