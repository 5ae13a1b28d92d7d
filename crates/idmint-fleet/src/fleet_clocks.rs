//! Estimates the clocks of the other nodes from their records in the store, and decides whether
//! this node's clock is plausible.
//!
//! Each horizon record contains the clock reading of the node that wrote it. How old the reading is
//! remains unknown, because the write may have been in transit for a long time. But a node writes a
//! record only after the previous record of its slot was stored. In the example below, the read at
//! 5 s did not return record A, so A was stored after 5 s. B was written later than A, and
//! therefore also after 5 s:
//!
//! ```text
//! read at     5 s   10 s   15 s   20 s
//! returned    -     A      A      B = 18.0 s  written 0 to 15 s ago: now the clock shows 18 to 33 s
//! ```
//!
//! A process that loses a slot takes another one, and the lost slot keeps the old clock reading. So
//! each process counts only once. Its reading comes from the record that it wrote last, among the
//! records of slots that it still holds.
//!
//! From these records, a node computes a lower and an upper bound for every other clock. The bounds
//! either prove that the node's own clock differs from the median of all clocks, or leave open that
//! it is right. If one of three clocks is wrong, the other two form the majority, so the wrong
//! clock cannot stop the other nodes. With fewer than three clocks there is no majority, so nothing
//! is proven.

use std::collections::BTreeMap;
use std::time::Duration;

use super::slot_lease::{NodeName, RENEW_EVERY};
use super::stored::{HorizonRecord, SlotRecord};
use crate::{Key, KeyValue, Revision};
use idmint_core::time::UnixNanos;

/// The minimum number of clocks to compare. Of three clocks, two form a majority even if one is
/// wrong.
const CLOCKS_MIN: usize = 3;

/// The time for which a reading of unknown age counts, from the first read that returned it. A
/// running node usually replaces its reading within [`RENEW_EVERY`]. A reading that stays longer
/// may belong to a node that has ended.
const SILENT_AFTER: Duration = RENEW_EVERY.saturating_mul(2);

/// The proven difference between one clock and the median of the fleet's clocks. The actual
/// difference may be larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Skew {
    /// No difference is proven.
    #[default]
    None,
    /// The clock is ahead by at least this much.
    Ahead(Duration),
    /// The clock is behind by at least this much.
    Behind(Duration),
}

impl Skew {
    /// `true` if the clock is proven to be off by more than `most`, in either direction.
    pub(super) fn exceeds(self, most: Duration) -> bool {
        match self {
            Skew::None => false,
            Skew::Ahead(by) | Skew::Behind(by) => by > most,
        }
    }

    /// Returns the skew in seconds, negative if the clock is behind.
    pub(super) fn seconds(self) -> f64 {
        match self {
            Skew::None => 0.0,
            Skew::Ahead(by) => by.as_secs_f64(),
            Skew::Behind(by) => -by.as_secs_f64(),
        }
    }
}

/// The other nodes' clocks, estimated from their records and this node's clock at each read.
#[derive(Debug, Clone, Default)]
pub(super) struct FleetClocks {
    seen: BTreeMap<Key, Seen>,
    last_look: Option<UnixNanos>,
}

/// The clock reading in the latest known horizon record of one slot, and the times of the reads
/// that bound the record's age.
#[derive(Debug, Clone, Copy)]
struct Seen {
    revision: Revision,
    /// The writer's clock reading.
    clock: UnixNanos,
    /// The time of the first read that returned the record.
    at: UnixNanos,
    /// The time at which the last read before `at` was sent, or `None` if there was no earlier
    /// read. That read did not return this record yet.
    missing_at: Option<UnixNanos>,
    /// A time before the record was written, or `None` if no such time is known.
    made_after: Option<UnixNanos>,
    /// `true` if the record's writer still holds the slot, and has written no later record for
    /// another slot that it holds. A process has only one clock, so only its latest record counts.
    is_current: bool,
}

impl FleetClocks {
    /// Updates the estimates of the other nodes' clocks from the horizon records and the holders of
    /// all slots. The read of both was sent at `asked_at` and answered at `now`.
    pub(super) fn look(
        &mut self,
        (asked_at, now): (UnixNanos, UnixNanos),
        horizons: &[KeyValue],
        holders: &[KeyValue],
        node: &NodeName,
    ) {
        let others = holders_except(holders, node);
        let records: Vec<(&KeyValue, HorizonRecord)> = horizons
            .iter()
            .filter_map(|entry| Some((entry, HorizonRecord::from_bytes(&entry.value).ok()?)))
            .collect();
        let mut latest: BTreeMap<(&str, &str), Revision> = BTreeMap::new();
        let holder_of = |entry: &KeyValue, record: &HorizonRecord| {
            let holder = others.get(slot_of(&entry.key))?;
            (holder.instance == record.instance).then_some((&*holder.node, &*holder.addr))
        };
        for (entry, record) in &records {
            if let Some(process) = holder_of(entry, record) {
                let revision = latest.entry(process).or_default();
                *revision = entry.modified.max(*revision);
            }
        }
        for (entry, record) in records {
            let is_current =
                holder_of(entry, &record).is_some_and(|process| latest[&process] == entry.modified);
            let seen = match self.seen.get(&entry.key).copied() {
                // A slow read may return an older record than the previous read did. Keep the newer
                // one.
                Some(known) if entry.modified <= known.revision => Seen {
                    is_current,
                    ..known
                },
                known => Seen {
                    revision: entry.modified,
                    clock: record.clock,
                    at: now,
                    missing_at: self.last_look,
                    made_after: known.and_then(|known| known.missing_at),
                    is_current,
                },
            };
            self.seen.insert(entry.key.clone(), seen);
        }
        self.last_look = Some(asked_at);
    }

    /// Returns the smallest possible difference between a clock that shows `clock` and the median
    /// of the fleet's clocks. The median includes this clock and the clocks of the other nodes that
    /// hold slots. Returns `None` if there are fewer than three clocks.
    pub(super) fn skew_of(&self, clock: UnixNanos, now: UnixNanos) -> Option<Skew> {
        let own = (clock, clock);
        let bounds = self
            .seen
            .values()
            .filter_map(|seen| seen.bounds(now))
            .chain([own]);
        let (mut least, mut most): (Vec<UnixNanos>, Vec<UnixNanos>) = bounds.unzip();
        if least.len() < CLOCKS_MIN {
            return None;
        }
        least.sort_unstable();
        most.sort_unstable();
        // If the number of clocks is even, there are two middle values. Take the lower one of
        // `least` and the higher one of `most`, so that a difference is reported only if it is
        // certain.
        let (least, most) = (least[(least.len() - 1) / 2], most[most.len() / 2]);
        Some(match (clock.since(most), least.since(clock)) {
            (Duration::ZERO, Duration::ZERO) => Skew::None,
            (ahead, Duration::ZERO) => Skew::Ahead(ahead),
            (_, behind) => Skew::Behind(behind),
        })
    }
}

impl Seen {
    /// Returns the earliest and the latest time that the writer's clock can show now. Returns
    /// `None` if the writer may have ended, has lost the slot, or has written a later record
    /// elsewhere.
    fn bounds(&self, now: UnixNanos) -> Option<(UnixNanos, UnixNanos)> {
        let since_shown = now.since(self.at);
        let age_max = match self.made_after {
            Some(made_after) => self.at.since(made_after),
            // A running node replaces its record at this interval. If the record had been older
            // than the interval at the first read, that read would have returned a newer one.
            None if since_shown < SILENT_AFTER => RENEW_EVERY,
            None => return None,
        };
        let least = self.clock.after(since_shown);
        self.is_current.then_some((least, least.after(age_max)))
    }
}

/// Returns the holder of each slot, by slot number. Leaves out this process, and earlier processes
/// with the same node name and address.
fn holders_except<'h>(holders: &'h [KeyValue], node: &NodeName) -> BTreeMap<&'h str, SlotRecord> {
    let holders = holders.iter().filter_map(|entry| {
        let holder = SlotRecord::from_bytes(&entry.value).ok()?;
        Some((slot_of(&entry.key), holder))
    });
    let others = holders.filter(|(_, holder)| {
        holder.instance != node.instance && (holder.node != node.node || holder.addr != node.addr)
    });
    others.collect()
}

/// Returns the slot number, as text, from the key of a slot's horizon or holder.
fn slot_of(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nonce::Nonce;

    const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);
    const MAX: Duration = Duration::from_secs(5);

    fn at(seconds: i64) -> UnixNanos {
        let apart = Duration::from_secs(seconds.unsigned_abs());
        if seconds < 0 {
            NOON.before(apart)
        } else {
            NOON.after(apart)
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// The node under test: process 9 on the machine `node-9`.
    fn node() -> NodeName {
        NodeName {
            instance: Nonce::new(9),
            node: "node-9".to_owned(),
            addr: String::new(),
        }
    }

    fn entry(key: String, revision: u64, value: Vec<u8>) -> KeyValue {
        KeyValue {
            key,
            value,
            created: Revision(1),
            modified: Revision(revision),
        }
    }

    /// Returns a horizon record of slot `process`, written by that process at `revision` with the
    /// clock reading `clock`.
    fn horizon(process: u64, revision: u64, clock: UnixNanos) -> KeyValue {
        horizon_of_slot(process, process, revision, clock)
    }

    fn horizon_of_slot(slot: u64, process: u64, revision: u64, clock: UnixNanos) -> KeyValue {
        let record = HorizonRecord::new(NOON, Nonce::new(process.into()), Nonce::new(0), clock);
        entry(format!("hz/{slot}"), revision, record.to_bytes())
    }

    fn holder(process: u64, place: u64) -> KeyValue {
        holder_of_slot(process, process, place)
    }

    fn holder_of_slot(slot: u64, process: u64, place: u64) -> KeyValue {
        let record = SlotRecord::new(
            Nonce::new(process.into()),
            &format!("node-{place}"),
            "",
            NOON,
        );
        entry(format!("slot/{slot}"), 1, record.to_bytes())
    }

    /// Passes these horizon records to the node, with processes 0 to 7 as the holders of slots 0 to
    /// 7.
    fn show(clocks: &mut FleetClocks, now: UnixNanos, horizons: &[KeyValue]) {
        let holders: Vec<KeyValue> = (0..8).map(|process| holder(process, process)).collect();
        clocks.look((now, now), horizons, &holders, &node());
    }

    /// Returns the estimates after a single read at noon on this node's clock. Each number in
    /// `peers` says how many seconds another node's clock is ahead of noon.
    fn seen(peers: &[i64]) -> FleetClocks {
        let mut clocks = FleetClocks::default();
        let horizons = peers
            .iter()
            .zip(0..)
            .map(|(peer, process)| horizon(process, 2, at(*peer)));
        show(&mut clocks, NOON, &horizons.collect::<Vec<_>>());
        clocks
    }

    #[test]
    fn one_bad_clock_of_three_is_outvoted() {
        let good = seen(&[0, 0]);
        assert_eq!(good.skew_of(NOON, NOON), Some(Skew::None));
        assert_eq!(
            good.skew_of(at(3), NOON),
            Some(Skew::None),
            "the records may be as old as that"
        );
        assert_eq!(good.skew_of(at(30), NOON), Some(Skew::Ahead(seconds(25))));
        assert_eq!(good.skew_of(at(-30), NOON), Some(Skew::Behind(seconds(30))));
        for bad in [-3600, 3600] {
            assert_eq!(
                seen(&[0, bad]).skew_of(NOON, NOON),
                Some(Skew::None),
                "{bad}"
            );
        }
        assert!(Skew::Ahead(seconds(6)).exceeds(MAX) && !Skew::Behind(MAX).exceeds(MAX));
        assert_eq!(
            [Skew::None, Skew::Ahead(MAX), Skew::Behind(MAX)].map(Skew::seconds),
            [0.0, 5.0, -5.0]
        );
    }

    #[test]
    fn without_a_majority_nobody_is_refused() {
        assert_eq!(seen(&[]).skew_of(at(30), NOON), None);
        assert_eq!(seen(&[0]).skew_of(at(30), NOON), None);
        let two_of_four = seen(&[0, 30, 30]);
        assert_eq!(two_of_four.skew_of(NOON, NOON), Some(Skew::None));
        assert_eq!(two_of_four.skew_of(at(30), NOON), Some(Skew::None));
    }

    #[test]
    fn only_nodes_that_hold_a_slot_count_and_none_that_was_here_before() {
        let horizons = [horizon(0, 2, NOON), horizon(1, 2, NOON)];
        let skew_with = |holders: &[KeyValue]| {
            let mut clocks = FleetClocks::default();
            clocks.look((NOON, NOON), &horizons, holders, &node());
            clocks.skew_of(at(30), NOON)
        };
        assert_eq!(
            skew_with(&[holder(0, 0), holder(1, 1)]),
            Some(Skew::Ahead(seconds(25)))
        );
        assert_eq!(
            skew_with(&[holder(0, 0)]),
            None,
            "the slot of the other is free"
        );
        assert_eq!(
            skew_with(&[holder(0, 0), holder(2, 1)]),
            None,
            "another process has taken it"
        );
        assert_eq!(
            skew_with(&[holder(0, 0), holder(1, 9)]),
            None,
            "it ran in this place"
        );
        let damaged = entry("hz/1".to_owned(), 2, b"{}".to_vec());
        let mut clocks = FleetClocks::default();
        show(&mut clocks, NOON, &[horizon(0, 2, NOON), damaged]);
        assert_eq!(clocks.skew_of(at(30), NOON), None);
    }

    /// A process may take several slots one after the other, and leaves a record in each of them.
    /// Only its latest record counts, because the process has only one clock.
    #[test]
    fn a_process_that_has_held_several_slots_counts_once_by_its_latest_horizon() {
        let skew = |horizons: &[KeyValue], holders: &[KeyValue]| {
            let mut clocks = FleetClocks::default();
            clocks.look((NOON, NOON), horizons, holders, &node());
            clocks.skew_of(NOON, NOON)
        };
        let ahead = [
            horizon(1, 2, at(30)),
            horizon_of_slot(2, 1, 3, at(30)),
            horizon_of_slot(3, 1, 4, at(30)),
        ];
        let of_slot = |slot| holder_of_slot(slot, 1, 1);
        assert_eq!(
            skew(&ahead, &[of_slot(3)]),
            None,
            "its former slots are held by nobody"
        );
        assert_eq!(
            skew(&ahead, &[of_slot(1), of_slot(2), of_slot(3)]),
            None,
            "the leases of its former slots last a while"
        );
        let others = [holder_of_slot(1, 2, 2), holder_of_slot(2, 3, 3), of_slot(3)];
        assert_eq!(skew(&ahead, &others), None, "others have them");
        let three = [
            holder(1, 1),
            holder_of_slot(2, 1, 2),
            holder_of_slot(3, 1, 3),
        ];
        assert_eq!(
            skew(&ahead, &three),
            Some(Skew::Behind(seconds(30))),
            "the control is three nodes"
        );
        let corrected = [
            &ahead[..],
            &[horizon_of_slot(4, 1, 5, NOON), horizon(5, 6, NOON)],
        ]
        .concat();
        let held = [of_slot(1), of_slot(2), of_slot(3), of_slot(4), holder(5, 5)];
        assert_eq!(
            skew(&corrected, &held),
            Some(Skew::None),
            "it does not count as what it was before it was set right"
        );
    }

    #[test]
    fn a_clock_runs_on_between_its_records_and_a_silent_one_counts_no_more() {
        let clocks = seen(&[-30, -30]);
        let later = |seconds: i64| clocks.skew_of(at(seconds), at(seconds));
        assert_eq!(later(0), Some(Skew::Ahead(seconds(25))));
        assert_eq!(
            later(9),
            Some(Skew::Ahead(seconds(25))),
            "they may be live, and right"
        );
        assert_eq!(
            later(10),
            None,
            "these ended half a minute ago and only their leases are left"
        );
    }

    #[test]
    fn a_record_is_as_old_as_the_time_since_the_one_before_it_was_not_there() {
        let mut clocks = FleetClocks::default();
        for (revision, now) in [(2, 0), (4, 5), (6, 10), (8, 15)] {
            show(
                &mut clocks,
                at(now),
                &[
                    horizon(0, revision, at(now - 20)),
                    horizon(1, revision + 1, at(now - 20)),
                ],
            );
        }
        // In each slot, the record that was read at 15 s was written after the record that was read
        // at 10 s. The read at 5 s did not return the latter yet. So the newer record was at most
        // 10 s old at 15 s.
        assert_eq!(
            clocks.skew_of(at(15), at(15)),
            Some(Skew::Ahead(seconds(10)))
        );
        // This read at 45 s is the first one since 15 s. So its records may be up to 30 s old.
        show(
            &mut clocks,
            at(45),
            &[horizon(0, 10, at(17)), horizon(1, 11, at(17))],
        );
        assert_eq!(clocks.skew_of(at(45), at(45)), Some(Skew::None));
        // An older record than that of an earlier read does not change the estimates.
        show(
            &mut clocks,
            at(46),
            &[horizon(0, 6, at(-3600)), horizon(1, 7, at(-3600))],
        );
        assert_eq!(clocks.skew_of(at(46), at(46)), Some(Skew::None));
    }
}
