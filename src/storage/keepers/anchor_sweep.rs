//! Old anchors are forgotten: once a day, a few at a time, while nobody waits.
//!
//! Their age is judged by times that nodes wrote, never by a TCA alone, which any caller sets, and never by one clock alone:
//!
//! ```text
//! judged by   the earliest of  the clock; in a fleet, the median of what its clocks have written;
//!                              the third-last day on which a request with a key was recorded or a report counted
//! old is      an anchor whose TCA and whose last report are both before that, by more than the retention
//! ```
//!
//! Of an anchor without a tally nothing tells when it was reported: a node was killed before it counted, or it came back from a
//! journal. A sweep that finds it old by its TCA gives it a tally of no report, by which the next ones judge it.

use std::time::Duration;

use crate::conjunction::{ReportTally, Seen, Tca};
use crate::storage::failure::StoreError;
use crate::storage::records::{AnchorKey, LastDays, RecordStore, TalliedAnchor, WrittenDay};
use crate::time::{Clock, UnixNanos, UnixTime};

/// How long one sweep rests before the next.
const PAUSE: Duration = Duration::from_hours(24);

/// Anchors looked at in one step, which takes some milliseconds.
const STEP_LEN: usize = 10_000;

/// Goes through all anchors, and forgets those whose time is past by more than the retention.
#[derive(Debug)]
pub(super) struct AnchorSweep {
    retention: Duration,
    /// The one behind which the next step begins; `None` at the beginning.
    after: Option<AnchorKey>,
    /// On which days something was written, as far as this sweep and those before it have seen.
    days: LastDays,
    /// When the next step may be done, as the clock runs.
    due: Duration,
}

impl AnchorSweep {
    /// A sweep that is due at once.
    pub(super) fn new(retention: Duration) -> AnchorSweep {
        AnchorSweep {
            retention,
            after: None,
            days: LastDays::default(),
            due: Duration::ZERO,
        }
    }

    /// Whether it is time for the next step.
    pub(super) fn is_due(&self, clock: &Clock) -> bool {
        clock.runs_for() >= self.due
    }

    /// Looks at the next few anchors.
    ///
    /// # Errors
    /// [`StoreError`]; the step is then done again.
    pub(super) fn step(
        &mut self,
        records: &dyn RecordStore,
        clock: &Clock,
    ) -> Result<(), StoreError> {
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
        for tally in anchors
            .iter()
            .filter_map(|anchor| anchor.tally)
            .filter(|tally| tally.count > 0)
        {
            [tally.first.at, tally.last.at]
                .into_iter()
                .for_each(|at| self.days.add(WrittenDay::of_clock(at)));
        }
        if let Some(before) = self.old_before(now) {
            let is_past = |anchor: &&TalliedAnchor| anchor.key.tca < Tca::at(before);
            let found = anchors
                .iter()
                .filter(is_past)
                .filter(|anchor| anchor.tally.is_none());
            let found: Vec<(AnchorKey, ReportTally)> = found
                .map(|TalliedAnchor { key, .. }| {
                    (
                        key.clone(),
                        ReportTally::found(Seen {
                            at: now,
                            tca: key.tca,
                        }),
                    )
                })
                .collect();
            if !found.is_empty() {
                records.add_reports(&found)?;
            }
            let old: Vec<TalliedAnchor> = anchors
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

    /// Before which instant an anchor is old; `None` while that is not known.
    fn old_before(&self, now: UnixNanos) -> Option<UnixTime> {
        let judging_time = self.days.third_last()?.begins().min(now);
        let retention =
            i128::try_from(self.retention.as_nanos()).expect("a configured duration is short");
        Some(UnixTime::from_nanos(
            UnixTime::from(judging_time).nanos() - retention,
        ))
    }
}

/// Whether its last report came before that instant, as far as was counted.
fn was_reported_before(anchor: &TalliedAnchor, before: UnixTime) -> bool {
    anchor
        .tally
        .is_some_and(|tally| UnixTime::from(tally.last.at) < before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conjunction::{Anchor, AnchorPlan, Pair};
    use crate::storage::fleet::FleetRecords;
    use crate::storage::records::RecordPlan;
    use crate::time::ManualClock;

    const DAY: Duration = Duration::from_hours(24);

    fn at(day: u32) -> UnixNanos {
        WrittenDay::numbered(day).begins()
    }

    fn tca(day: u32) -> Tca {
        Tca(i64::from(day) * 86_400_000_000)
    }

    /// Anchors of these days, each of another pair, which sweeps have found long ago.
    fn anchors_of(days: std::ops::RangeInclusive<u32>) -> FleetRecords {
        let records = uncounted_anchors_of(days.clone());
        let found = |day| {
            (
                key_of(day),
                ReportTally::found(Seen {
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

    /// The same, of which nothing was counted.
    fn uncounted_anchors_of(days: std::ops::RangeInclusive<u32>) -> FleetRecords {
        let records = FleetRecords::in_memory();
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

    /// A report that is counted on a day, of the anchor of another.
    fn report(records: &FleetRecords, on: u32, of: u32) {
        records
            .add_reports(&[(
                key_of(of),
                ReportTally::of(Seen {
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

    fn left(records: &FleetRecords) -> Vec<i64> {
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
        // Of several reports the first and the last are known: so by day 28 less 10 days only where others tell of day 29.
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
        let tallies = || {
            records
                .anchors(None, usize::MAX)
                .expect("memory")
                .into_iter()
                .filter_map(|one| one.tally)
        };
        // By day 28 those of 17 days are old, on which a clock showed day 31.
        assert_eq!(tallies().filter(|tally| tally.count == 0).count(), 17);
        report(&records, 30, 5);
        assert!(tallies().any(|tally| tally.count == 1
            && tally.first.at == at(30)
            && tally.first.tca == tca(5)));
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
    fn a_sweep_goes_on_where_it_was() {
        let count = u32::try_from(STEP_LEN).expect("small") + 5;
        let records = anchors_of(1..=count);
        let days = [20_001, 20_002, 20_003];
        days.into_iter()
            .for_each(|day| report(&records, day, day - 10_000));
        let (clock, mut sweep) = (
            ManualClock::at(at(20_003)).clock(),
            AnchorSweep::new(15_000 * DAY),
        );
        sweep.step(&records, &clock).expect("memory");
        assert_eq!(
            left(&records)[..6],
            [1, 2, 3, 4, 5, 5001],
            "the earliest were not looked at yet"
        );
        assert!(sweep.is_due(&clock));
        sweep.step(&records, &clock).expect("memory");
        assert_eq!(left(&records)[..2], [5001, 5002]);
        assert!(!sweep.is_due(&clock));
    }
}
