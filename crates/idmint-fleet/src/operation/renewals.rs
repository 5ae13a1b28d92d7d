//! Observes the renewals of slots, and computes bounds on the clocks of the nodes that sent them.
//!
//! A renewal contains the reading of its node's clock at the time when it was written. How long the
//! renewal was in transit is unknown, because etcd or the read that returned it may have been slow.
//! But it was written before it was read, and after the node's previous renewal was stored. In this
//! example, A, B and C are successive renewals of one node:
//!
//! ```text
//! read sent at   0 s   1.0 s   ...   5.0 s   6.0 s   ...   10.0 s   11.0 s, answered at 11.4 s
//! returned       A     A       A     A       B       B     B        C = 08.0 s
//!                                    B was not stored yet, so C was written after 5.0 s
//! ```
//!
//! So the clock showed 08.0 s at some instant between 5.0 s and 11.4 s. The clock is therefore at
//! most 3.0 s ahead and at most 3.4 s behind.

use std::collections::BTreeMap;

use crate::Revision;
use crate::nonce::Nonce;
use crate::stored::HorizonRecord;
use idmint_core::time::UnixNanos;

/// Bounds on how far a node's clock is ahead of this machine's clock, in nanoseconds. Negative
/// values mean that the node's clock is behind. Clock readings in records are rounded up to whole
/// milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockBounds {
    /// The lower bound.
    pub least_nanos: i64,
    /// The upper bound. `None` after only one observed renewal, because the bound depends on when
    /// the previous renewal was stored.
    pub most_nanos: Option<i64>,
}

/// The observed renewals of each slot. All instants are readings of this machine's clock.
#[derive(Debug, Clone, Default)]
pub(super) struct Renewals {
    slots: BTreeMap<u32, Seen>,
    last_asked_at: Option<UnixNanos>,
}

/// The latest horizon record of a slot that was read.
#[derive(Debug, Clone, Copy)]
struct Seen {
    revision: Revision,
    instance: Nonce,
    /// The time at which the last read that did not return this record was sent. The record was
    /// stored after that time. `None` if the very first read returned the record.
    missing_at: Option<UnixNanos>,
    /// The bounds on the clock of the node that renews the slot, or `None` if it has not renewed
    /// the slot since the first read.
    clock: Option<ClockBounds>,
}

impl Renewals {
    /// Records a read of all slots, sent at `asked_at` and answered at `now`. Each item of
    /// `records` has a slot number, and the revision and content of the slot's horizon record. A
    /// node rewrites this record with its clock reading at each renewal.
    pub(super) fn look(
        &mut self,
        (asked_at, now): (UnixNanos, UnixNanos),
        records: impl Iterator<Item = (u32, Revision, HorizonRecord)>,
    ) {
        for (slot, revision, record) in records {
            let before = self.slots.get(&slot).copied();
            // The record was already known, or a slow read has returned an older one.
            if before.is_some_and(|before| revision <= before.revision) {
                continue;
            }
            let clock = self.last_asked_at.is_some().then(|| {
                let bounds = ClockBounds {
                    least_nanos: signed_difference(record.clock, now),
                    most_nanos: before
                        .and_then(|before| before.missing_at)
                        .map(|made_after| signed_difference(record.clock, made_after)),
                };
                let of_same_clock = before.filter(|before| before.instance == record.instance);
                bounds.within(of_same_clock.and_then(|before| before.clock))
            });
            let seen = Seen {
                revision,
                instance: record.instance,
                missing_at: self.last_asked_at,
                clock,
            };
            self.slots.insert(slot, seen);
        }
        self.last_asked_at = Some(asked_at);
    }

    /// Returns the bounds on the clock of the node that renews this slot. Returns `None` if the
    /// node has not renewed the slot since the observation began.
    pub(super) fn clock_of(&self, slot: u32) -> Option<ClockBounds> {
        self.slots.get(&slot).and_then(|seen| seen.clock)
    }
}

impl ClockBounds {
    /// Combines these bounds with the bounds from earlier renewals of the same node, and returns
    /// the narrower bounds.
    fn within(self, earlier: Option<ClockBounds>) -> ClockBounds {
        let Some(earlier) = earlier else { return self };
        let both = ClockBounds {
            least_nanos: self.least_nanos.max(earlier.least_nanos),
            most_nanos: match (self.most_nanos, earlier.most_nanos) {
                (Some(now), Some(before)) => Some(now.min(before)),
                (now, before) => now.or(before),
            },
        };
        // If the bounds contradict each other, the node's clock was set in between. Then only the
        // new bounds are valid.
        if both.most_nanos.is_some_and(|most| most < both.least_nanos) {
            self
        } else {
            both
        }
    }
}

fn signed_difference(shown: UnixNanos, now: UnixNanos) -> i64 {
    let (ahead, behind) = (shown.since(now).as_nanos(), now.since(shown).as_nanos());
    let ahead = i64::try_from(ahead).unwrap_or(i64::MAX);
    let behind = i64::try_from(behind).unwrap_or(i64::MAX);
    ahead.saturating_sub(behind)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::operation::samples::NOON;

    const SECOND: i64 = 1_000_000_000;

    fn at(millis: u64) -> UnixNanos {
        NOON.after(Duration::from_millis(millis))
    }

    /// Records a read of slot 7. `times` are the times of the request and the response. The read
    /// returns a record with this revision, process and clock reading. All times are in
    /// milliseconds.
    fn look(
        renewals: &mut Renewals,
        times: (u64, u64),
        (revision, instance, clock): (u64, u128, u64),
    ) {
        let record = HorizonRecord::new(at(60_000), Nonce::new(instance), Nonce::new(2), at(clock));
        let records = std::iter::once((7, Revision(revision), record));
        renewals.look((at(times.0), at(times.1)), records);
    }

    fn bounds(least_nanos: i64, most_nanos: Option<i64>) -> Option<ClockBounds> {
        Some(ClockBounds {
            least_nanos,
            most_nanos,
        })
    }

    #[test]
    fn what_was_there_at_the_first_look_says_nothing_of_its_clock() {
        let mut renewals = Renewals::default();
        look(&mut renewals, (0, 0), (1, 1, 0));
        look(&mut renewals, (4_000, 4_000), (1, 1, 0));
        assert_eq!(renewals.clock_of(7), None, "it may be as old as it likes");
    }

    #[test]
    fn a_slow_look_at_a_right_clock_leaves_open_that_it_is_right() {
        let mut renewals = Renewals::default();
        look(&mut renewals, (0, 0), (1, 1, 0));
        // The read from 1.5 s to 3.4 s returns revision 2, which process 1 wrote at 2.0 s by its
        // clock.
        look(&mut renewals, (1_500, 3_400), (2, 1, 2_000));
        assert_eq!(
            renewals.clock_of(7),
            bounds(-14 * SECOND / 10, None),
            "at most 1.4 s behind, as far as this can tell"
        );
        look(&mut renewals, (3_400, 7_000), (3, 1, 6_900));
        // The read at 0 s did not return revision 2, so revision 2 was stored after 0 s. Revision 3
        // was written after that, when the clock showed 6.9 s. So the clock is at most 6.9 s ahead.
        assert_eq!(
            renewals.clock_of(7),
            bounds(-SECOND / 10, Some(69 * SECOND / 10)),
            "the next renewal knows better"
        );
    }

    #[test]
    fn a_wrong_clock_is_wrong_for_certain_by_less_than_it_is() {
        for (off, most) in [(3_i64, 9), (-30, -24)] {
            let mut renewals = Renewals::default();
            let base = 100;
            let second = |s: i64| u64::try_from((base + s) * 1_000).expect("after noon");
            look(&mut renewals, (second(0), second(0)), (1, 1, second(off)));
            for (revision, s) in [(1, 4), (2, 5), (2, 9), (3, 10)] {
                let made = if revision == 1 { 0 } else { s / 5 * 5 };
                look(
                    &mut renewals,
                    (second(s), second(s)),
                    (revision, 1, second(made + off)),
                );
            }
            // The read at 4 s did not return revision 2, so revision 2 was stored after 4 s.
            // Revision 3 was written after that, so its clock reading was also taken after 4 s.
            assert_eq!(
                renewals.clock_of(7),
                bounds(off * SECOND, Some(most * SECOND)),
                "{off}"
            );
        }
    }

    #[test]
    fn the_clock_of_another_process_in_the_slot_is_another_clock() {
        let mut renewals = Renewals::default();
        look(&mut renewals, (0, 0), (1, 1, 0));
        look(&mut renewals, (5_000, 5_000), (2, 1, 8_000));
        assert_eq!(renewals.clock_of(7), bounds(3 * SECOND, None));
        look(&mut renewals, (6_000, 6_000), (3, 9, 6_000));
        assert_eq!(renewals.clock_of(7), bounds(0, Some(6 * SECOND)));
        // After a clock was set, only later renewals bound it.
        look(&mut renewals, (7_000, 7_000), (4, 9, 107_000));
        assert_eq!(
            renewals.clock_of(7),
            bounds(100 * SECOND, Some(102 * SECOND))
        );
        // An older record than that of an earlier read does not change the bounds.
        look(&mut renewals, (8_000, 8_000), (3, 9, 6_000));
        assert_eq!(
            renewals.clock_of(7),
            bounds(100 * SECOND, Some(102 * SECOND))
        );
    }
}
