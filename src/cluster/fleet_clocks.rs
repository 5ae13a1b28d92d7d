//! The clocks of the other nodes, as far as their records tell them: whether this node's own may be believed.
//!
//! Each horizon that a node writes says what its clock showed. How old such a record is nobody knows exactly: it may have been on
//! its way for long. But it was made by somebody who had seen the record before it, so it is younger than the last look that
//! did not show that one yet:
//!
//! ```text
//! look at   5 s   10 s   15 s   20 s
//! shown     -     A      A      B = 18.0 s     made after 5 s, so its clock shows 18.0 s to 33.0 s now
//! ```
//!
//! So every clock is known to lie between two instants, and this node's either differs from their median for certain or may be
//! right. One bad clock of three is outvoted and cannot stop the others; below three there is no median to go by.

use std::collections::BTreeMap;
use std::time::Duration;

use super::nonce::Nonce;
use super::slot_lease::{NodeName, RENEW_EVERY};
use super::stored::{HorizonRecord, SlotRecord};
use crate::storage::{Key, KeyValue, Revision};
use crate::time::UnixNanos;

/// Clocks that make a majority, however wrong one of them is.
const CLOCKS_MIN: usize = 3;

/// After so long a node that has written nothing new since it was first seen counts no more: it may have ended before.
const SILENT_AFTER: Duration = RENEW_EVERY.saturating_mul(2);

/// How far a clock is from the median of the fleet's clocks, for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Skew {
    /// Not at all, as far as can be known.
    #[default]
    None,
    /// Ahead by at least this.
    Ahead(Duration),
    /// Behind by at least this.
    Behind(Duration),
}

impl Skew {
    /// Whether it is more than `most`, either way.
    pub(super) fn exceeds(self, most: Duration) -> bool {
        match self {
            Skew::None => false,
            Skew::Ahead(by) | Skew::Behind(by) => by > most,
        }
    }

    /// In seconds; negative if the clock is behind.
    pub(super) fn seconds(self) -> f64 {
        match self {
            Skew::None => 0.0,
            Skew::Ahead(by) => by.as_secs_f64(),
            Skew::Behind(by) => -by.as_secs_f64(),
        }
    }
}

/// What was seen of the clocks of all other nodes. Instants are those of this node's own clock.
#[derive(Debug, Clone, Default)]
pub(super) struct FleetClocks {
    seen: BTreeMap<Key, Seen>,
    last_look: Option<UnixNanos>,
}

/// One record.
#[derive(Debug, Clone, Copy)]
struct Seen {
    revision: Revision,
    /// What the clock of its writer showed.
    clock: UnixNanos,
    /// When it was first shown.
    at: UnixNanos,
    /// When it was not yet there; `None` if it was there at the first look.
    missing_at: Option<UnixNanos>,
    /// After this it was made; `None` if that is not known.
    made_after: Option<UnixNanos>,
    /// Whether its writer has its slot.
    is_held: bool,
}

impl FleetClocks {
    /// Takes in a look that was asked for at one instant and answered at the next: all horizons, all holders.
    pub(super) fn look(
        &mut self,
        (asked_at, now): (UnixNanos, UnixNanos),
        horizons: &[KeyValue],
        holders: &[KeyValue],
        node: &NodeName,
    ) {
        let others = instances_of_others(holders, node);
        for entry in horizons {
            let Ok(record) = HorizonRecord::from_bytes(&entry.value) else {
                continue;
            };
            let is_held = others.contains(&record.instance);
            let seen = match self.seen.get(&entry.key).copied() {
                // A read may be older than one before it.
                Some(known) if entry.modified <= known.revision => Seen { is_held, ..known },
                known => Seen {
                    revision: entry.modified,
                    clock: record.clock,
                    at: now,
                    missing_at: self.last_look,
                    made_after: known.and_then(|known| known.missing_at),
                    is_held,
                },
            };
            self.seen.insert(entry.key.clone(), seen);
        }
        self.last_look = Some(asked_at);
    }

    /// How far a clock that shows `clock` is from the median of it and of those of the nodes that hold a slot; `None` if these
    /// are fewer than three.
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
        // Of an even number there are two in the middle: who is between them has not got the majority against him.
        let (least, most) = (least[(least.len() - 1) / 2], most[most.len() / 2]);
        Some(match (clock.since(most), least.since(clock)) {
            (Duration::ZERO, Duration::ZERO) => Skew::None,
            (ahead, Duration::ZERO) => Skew::Ahead(ahead),
            (_, behind) => Skew::Behind(behind),
        })
    }
}

impl Seen {
    /// Between which instants the clock of its writer is now; `None` if there may be nobody whose clock it is.
    fn bounds(&self, now: UnixNanos) -> Option<(UnixNanos, UnixNanos)> {
        let since_shown = now.since(self.at);
        let age_max = match self.made_after {
            Some(made_after) => self.at.since(made_after),
            // As old as a record of a node that renews its slot gets. If it is older, nobody renews it.
            None if since_shown < SILENT_AFTER => RENEW_EVERY,
            None => return None,
        };
        let least = self.clock.after(since_shown);
        self.is_held.then_some((least, least.after(age_max)))
    }
}

/// The processes that hold slots, but for this one and an earlier one in its place.
fn instances_of_others(holders: &[KeyValue], node: &NodeName) -> Vec<Nonce> {
    let holders = holders
        .iter()
        .filter_map(|holder| SlotRecord::from_bytes(&holder.value).ok());
    let others = holders.filter(|holder| {
        holder.instance != node.instance && (holder.node != node.node || holder.addr != node.addr)
    });
    others.map(|holder| holder.instance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// The node whose clocks are tried: process 9 in place 9.
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

    /// What one of the others has written by this revision, when its clock showed this.
    fn horizon(process: u64, revision: u64, clock: UnixNanos) -> KeyValue {
        let record = HorizonRecord::new(NOON, Nonce::new(process.into()), Nonce::new(0), clock);
        entry(format!("hz/{process}"), revision, record.to_bytes())
    }

    fn holder(process: u64, place: u64) -> KeyValue {
        let record = SlotRecord::new(
            Nonce::new(process.into()),
            &format!("node-{place}"),
            "",
            NOON,
        );
        entry(format!("slot/{process}"), 1, record.to_bytes())
    }

    /// Shows records to the node, of processes that hold a slot each in a place of the same number.
    fn show(clocks: &mut FleetClocks, now: UnixNanos, horizons: &[KeyValue]) {
        let holders: Vec<KeyValue> = (0..8).map(|process| holder(process, process)).collect();
        clocks.look((now, now), horizons, &holders, &node());
    }

    /// Clocks of peers that show these seconds after noon, seen at noon for the first time.
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
        // Made after the look at 5 s, so at most 10 s before it was shown.
        assert_eq!(
            clocks.skew_of(at(15), at(15)),
            Some(Skew::Ahead(seconds(10)))
        );
        // Nobody was answered for half a minute. These were on their way for all of it.
        show(
            &mut clocks,
            at(45),
            &[horizon(0, 10, at(17)), horizon(1, 11, at(17))],
        );
        assert_eq!(clocks.skew_of(at(45), at(45)), Some(Skew::None));
        // A read that is older than the last one changes nothing.
        show(
            &mut clocks,
            at(46),
            &[horizon(0, 6, at(-3600)), horizon(1, 7, at(-3600))],
        );
        assert_eq!(clocks.skew_of(at(46), at(46)), Some(Skew::None));
    }
}
