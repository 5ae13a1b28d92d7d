//! Old anchors are forgotten: once a day, a few at a time, while nobody waits.

use std::time::Duration;

use crate::conjunction::Tca;
use crate::storage::failure::StoreError;
use crate::storage::records::{AnchorKey, RecordStore};
use crate::time::{UnixNanos, UnixTime};

/// How long one sweep rests before the next.
const PAUSE: Duration = Duration::from_hours(24);

/// Anchors looked at in one step, which takes some milliseconds.
const STEP_LEN: usize = 10_000;

/// Goes through all anchors, and forgets those whose time is past by more than the retention.
#[derive(Debug)]
pub(super) struct Sweep {
    retention: Duration,
    /// Where the next step begins; `None` at the beginning.
    next: Option<AnchorKey>,
    /// When the next step may be done.
    due: UnixNanos,
}

impl Sweep {
    /// A sweep that is due at once.
    pub(super) fn new(retention: Duration) -> Sweep {
        Sweep { retention, next: None, due: UnixNanos::default() }
    }

    /// Looks at the next few anchors, if it is time.
    ///
    /// # Errors
    /// [`StoreError`]; the step is then done again.
    pub(super) fn step(&mut self, records: &dyn RecordStore, now: UnixNanos) -> Result<(), StoreError> {
        // A clock that is waited for may be set back: the pause is never longer than it was meant to be.
        if now < self.due && self.due.since(now) <= PAUSE {
            return Ok(());
        }
        let retention = i128::try_from(self.retention.as_nanos()).expect("a configured duration is short");
        let before = Tca::at(UnixTime::from_nanos(UnixTime::from(now).nanos() - retention));
        self.next = records.forget_anchors(self.next.as_ref(), before, STEP_LEN)?;
        if self.next.is_none() {
            self.due = now.after(PAUSE);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conjunction::{Anchor, AnchorPlan, Pair};
    use crate::storage::memory::MemoryRecords;
    use crate::storage::records::RecordPlan;

    const DAY: Duration = Duration::from_hours(24);

    #[test]
    fn anchors_are_forgotten_when_their_time_is_past_by_more_than_the_retention() {
        let records = MemoryRecords::default();
        let pair = |primary| Pair { primary, secondary: 9 };
        let times: Vec<(Pair, Tca)> =
            (1..=40_u32).map(|day| (pair(u64::from(day % 7 + 1)), Tca(i64::from(day) * 86_400_000_000))).collect();
        let plan = |(pair, tca): &(Pair, Tca)| {
            RecordPlan::Anchor(AnchorPlan::of_report("conjunction", *pair, Anchor { tca: *tca, rank: 0 }))
        };
        records.write(&times.iter().map(plan).collect::<Vec<_>>()).expect("they are days apart");
        let left = || {
            let found = records.neighbours("conjunction", &mut times.iter().copied()).expect("readable");
            found
                .iter()
                .zip(&times)
                .filter(|(anchors, _)| !anchors.is_empty())
                .map(|(_, (_, tca))| tca.0 / 86_400_000_000)
                .collect::<Vec<_>>()
        };

        let mut sweep = Sweep::new(10 * DAY);
        let day = |day: u32| UnixNanos::from_seconds(u64::from(day) * 86_400);
        sweep.step(&records, day(30)).expect("writable");
        assert_eq!(left(), (20..=40).collect::<Vec<_>>());
        sweep.step(&records, UnixNanos::new(day(31).get() - 1)).expect("writable");
        assert_eq!(left().len(), 21, "it rests for a day");
        sweep.step(&records, day(31)).expect("writable");
        assert_eq!(left(), (21..=40).collect::<Vec<_>>());
    }

    #[test]
    fn a_sweep_goes_on_where_it_was() {
        let records = MemoryRecords::default();
        let plan = |primary| {
            let pair = Pair { primary, secondary: 9 };
            RecordPlan::Anchor(AnchorPlan::of_report("conjunction", pair, Anchor { tca: Tca(0), rank: 0 }))
        };
        records.write(&(1..=25).map(plan).collect::<Vec<_>>()).expect("they are of different pairs");
        let mut next = None;
        for left in [15, 5] {
            next = records.forget_anchors(next.as_ref(), Tca(1), 10).expect("writable");
            assert!(next.is_some());
            let kept = records
                .neighbours("conjunction", &mut (1..=25).map(|primary| (Pair { primary, secondary: 9 }, Tca(0))));
            assert_eq!(kept.expect("readable").iter().filter(|anchors| !anchors.is_empty()).count(), left);
        }
        assert_eq!(records.forget_anchors(next.as_ref(), Tca(1), 10).expect("writable"), None);
    }
}
