//! The status of a fleet: its slots and their holders, errors of clocks, and problems with advice
//! for the operator.

use super::fleet_problems::{FleetProblem, may_be_behind, problem_of, problem_of_all};
use super::fleet_slots::{AgreedFleet, Holder, Slot, SlotState};
use super::renewals::{ClockBounds, Renewals};
use crate::fleet_keys::FleetKeys;
use crate::high_water::HighWater;
use crate::records::SharedRecords;
use crate::stored::{FleetMeta, HorizonRecord, SlotRecord};
use crate::{KeyValue, Snapshot};
use idmint_core::time::UnixNanos;
use idmint_storage::KeptFormat;

/// The status of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetStatus {
    /// The settings that the fleet's nodes share, or `None` if no fleet exists or its settings
    /// cannot be read.
    pub fleet: Option<AgreedFleet>,
    /// All slots, in ascending order of their numbers.
    pub slots: Vec<Slot>,
    /// The problems that were found, each with advice for the operator.
    pub problems: Vec<FleetProblem>,
}

/// Observations of a fleet over some seconds: its latest state, and the clock readings that nodes
/// wrote when they renewed their slots.
#[derive(Debug, Clone, Default)]
pub struct FleetWatch {
    renewals: Renewals,
    last: Option<Snapshot>,
}

/// The observation that is still missing before the clocks of all nodes can be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseen {
    /// Some nodes have not renewed their slots since the observation began. Their clocks are
    /// unknown.
    Renewals,
    /// All nodes have renewed their slots, but the clock reading in at least one renewal looks
    /// late. Only that node's next renewal can show whether its clock is behind or the renewal was
    /// slow.
    NextRenewals,
}

impl FleetWatch {
    /// Records a read of the fleet's settings and slots. `snapshot` has the key ranges
    /// [`FleetKeys::all_slots`]. `times` are the times of the request and of the response.
    pub fn see(&mut self, keys: &FleetKeys, snapshot: Snapshot, times: (UnixNanos, UnixNanos)) {
        let records = numbered(horizons(&snapshot), keys).filter_map(|(slot, entry)| {
            HorizonRecord::from_bytes(&entry.value)
                .ok()
                .map(|record| (slot, entry.modified, record))
        });
        self.renewals.look(times, records);
        self.last = Some(snapshot);
    }

    /// Returns the renewals that must still be observed before all nodes' clocks can be judged, or
    /// `None` if none are missing.
    pub fn unseen(&self, keys: &FleetKeys) -> Option<Unseen> {
        let Some(snapshot) = &self.last else {
            return Some(Unseen::Renewals);
        };
        let clocks: Option<Vec<ClockBounds>> = numbered(holders(snapshot), keys)
            .map(|(slot, _)| self.renewals.clock_of(slot))
            .collect();
        match clocks {
            None => Some(Unseen::Renewals),
            Some(clocks) => {
                let is_open =
                    |clock: &ClockBounds| clock.most_nanos.is_none() && may_be_behind(*clock);
                clocks.iter().any(is_open).then_some(Unseen::NextRenewals)
            }
        }
    }

    /// Returns the status of the fleet at `now`, according to the observations so far. `known` is
    /// the high water of this machine, the highest values that a node here has seen from etcd.
    ///
    /// # Panics
    /// Panics if no read was recorded.
    pub fn status(&self, keys: &FleetKeys, known: &HighWater, now: UnixNanos) -> FleetStatus {
        let snapshot = self.last.as_ref().expect("it was looked at");
        let mut problems = Vec::new();
        let loss = known.check_all(keys, snapshot).err();
        if let Some(loss) = &loss {
            problems.push(FleetProblem::new(
                format!("etcd has lost acknowledged writes: {loss}"),
                "check first that etcd.endpoints names the members of one etcd, and none of another region; if that etcd was \
                 restored or wiped, run idmint fleet fence-restore",
            ));
        }
        let fleet = match snapshot.ranges[0]
            .first()
            .map(|entry| (entry, FleetMeta::from_bytes(&entry.value)))
        {
            None => {
                problems.push(FleetProblem::new(
                    "there is no fleet in this namespace",
                    "if the namespace had a fleet, etcd was wiped or is the wrong one: start no node, and run idmint \
                     fleet fence-restore or correct etcd.endpoints; else start a node, which founds a fleet",
                ));
                None
            }
            Some((entry, Err(error))) => {
                problems.push(FleetProblem::new(
                    format!("{} cannot be read: {error}", entry.key),
                    "a newer idmint may have written it: use that one; else restore etcd, then run idmint fleet fence-restore",
                ));
                None
            }
            Some((_, Ok(meta))) => {
                problems.extend(problem_of_records(meta.records()));
                Some(agreed_of(meta))
            }
        };
        if let Some(agreed) = fleet.as_ref().filter(|agreed| agreed.floor > now) {
            let wait = agreed.floor.since(now).as_secs() + 1;
            let what = format!(
                "the fleet was founded or fenced a moment ago and begins at {}",
                agreed.floor
            );
            problems.push(FleetProblem::new(
                what,
                format!("wait {wait} s; no node mints before"),
            ));
        }
        let numbers = fleet.iter().flat_map(|agreed| agreed.share.iter());
        let slots: Vec<Slot> = numbers
            .map(|slot| self.slot(slot, keys, snapshot, now))
            .collect();
        let begins_later = fleet.as_ref().is_some_and(|agreed| agreed.floor > now);
        let judged: Vec<&Slot> = slots
            .iter()
            .filter(|slot| !is_left_over(slot, &slots))
            .collect();
        if loss.is_none() && !begins_later {
            problems.extend(problem_of_all(&judged));
        }
        problems.extend(
            judged
                .iter()
                .filter_map(|slot| problem_of(slot, loss.is_some())),
        );
        if !slots.is_empty() && slots.iter().all(|slot| slot.state != SlotState::Free) {
            problems.push(FleetProblem::new(
                "no slot is free: a new node has to wait",
                "stop spare nodes, or wait until unused slots are free again; for a lasting fix, set up a \
                 fleet with more slots (docs/FLEET.md)",
            ));
        }
        FleetStatus {
            fleet,
            slots,
            problems,
        }
    }

    fn slot(&self, slot: u32, keys: &FleetKeys, snapshot: &Snapshot, now: UnixNanos) -> Slot {
        let find = |entries: &[KeyValue], key: String| {
            entries.iter().find(|entry| entry.key == key).cloned()
        };
        let record = find(horizons(snapshot), keys.horizon(slot))
            .map(|entry| HorizonRecord::from_bytes(&entry.value));
        let holder = find(holders(snapshot), keys.slot(slot))
            .map(|entry| SlotRecord::from_bytes(&entry.value));
        let (horizon, state) = match (record, holder) {
            (Some(Err(_)), _) | (_, Some(Err(_))) => (None, SlotState::Unreadable),
            (
                record,
                Some(Ok(SlotRecord {
                    node, addr, since, ..
                })),
            ) => {
                let record = record.and_then(Result::ok);
                let renewed_at = record.as_ref().map(|record| record.clock);
                let holder = Holder {
                    node,
                    addr,
                    since,
                    renewed_at,
                    clock: self.renewals.clock_of(slot),
                };
                (record.map(|record| record.horizon), SlotState::Held(holder))
            }
            (Some(Ok(record)), None) if record.horizon > now => {
                (Some(record.horizon), SlotState::Resting)
            }
            (record, None) => (
                record.and_then(Result::ok).map(|record| record.horizon),
                SlotState::Free,
            ),
        };
        Slot {
            slot,
            horizon,
            state,
        }
    }
}

/// `true` if an earlier process of a restarted node holds `slot`, and the node now renews another
/// slot. This is not a problem, because the lease of `slot` will expire.
fn is_left_over(slot: &Slot, slots: &[Slot]) -> bool {
    let SlotState::Held(holder) = &slot.state else {
        return false;
    };
    let is_renewed_by_same = |other: &Slot| match &other.state {
        SlotState::Held(other) => {
            other.clock.is_some() && (&other.node, &other.addr) == (&holder.node, &holder.addr)
        }
        _ => false,
    };
    holder.clock.is_none() && slots.iter().any(is_renewed_by_same)
}

/// Returns a problem with advice if nodes may not use records at the moment.
fn problem_of_records(records: SharedRecords) -> Option<FleetProblem> {
    let (what, advice) = match records {
        SharedRecords::Complete => return None,
        SharedRecords::Missing => (
            "records are refused, because the last fence found that records are missing",
            "stop the nodes; run idmint fleet adopt again for any node that was adopted after the backup; then idmint \
             fleet fence-restore with all journals, or without any to give the missing records up",
        ),
        SharedRecords::Adopting => (
            "records are refused, because the fleet has not adopted all records of a single node yet",
            "wait for idmint fleet adopt to end, or run it again on the same folder; if the folder is lost, run idmint \
             fleet fence-restore, and if that says that records are missing, restore etcd to a time before the adoption",
        ),
    };
    Some(FleetProblem::new(what, advice))
}

fn agreed_of(meta: FleetMeta) -> AgreedFleet {
    AgreedFleet {
        fleet: meta.fleet,
        floor: meta.floor,
        share: meta.share(),
        formats: meta
            .formats
            .into_keys()
            .filter(|name| KeptFormat::is_name_of_format(name))
            .collect(),
    }
}

fn horizons(snapshot: &Snapshot) -> &[KeyValue] {
    snapshot.ranges.get(1).map_or(&[], Vec::as_slice)
}

fn holders(snapshot: &Snapshot) -> &[KeyValue] {
    snapshot.ranges.get(2).map_or(&[], Vec::as_slice)
}

/// Returns the horizons or holders in `entries`, each with its slot number.
fn numbered<'a>(
    entries: &'a [KeyValue],
    keys: &'a FleetKeys,
) -> impl Iterator<Item = (u32, &'a KeyValue)> {
    entries.iter().filter_map(|entry| {
        let slot = entry.key.rsplit('/').next()?.parse().ok()?;
        [keys.horizon(slot), keys.slot(slot)]
            .contains(&entry.key)
            .then_some((slot, entry))
    })
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::nonce::Nonce;
    use crate::operation::samples::{NOON, after, keys, put};
    use crate::{Coordinator, FleetEra, MemoryCoordinator, Revision};
    use idmint_storage::{SlotRange, SlotShare};

    fn reserve(store: &MemoryCoordinator, slot: u32, horizon: UnixNanos, clock: UnixNanos) {
        let record = HorizonRecord::new(horizon, Nonce::new(1), Nonce::new(2), clock);
        put(store, keys().horizon(slot), record.to_bytes());
    }

    fn hold(store: &MemoryCoordinator, slot: u32, node: &str) {
        put(
            store,
            keys().slot(slot),
            SlotRecord::new(Nonce::new(1), node, "127.0.0.1:1", NOON).to_bytes(),
        );
    }

    fn share(slots: u32, range: &str) -> SlotShare {
        let slots = NonZeroU32::new(slots).expect("not zero");
        SlotShare::part(slots, SlotRange::parse(range).expect("a range")).expect("within")
    }

    /// Returns a fleet of four slots that no node holds.
    fn fleet() -> MemoryCoordinator {
        let store = MemoryCoordinator::default();
        let meta = FleetMeta::new(Nonce::new(7), share(4, "0-3"), NOON);
        put(&store, keys().meta(), meta.to_bytes());
        store
    }

    fn see(watch: &mut FleetWatch, store: &MemoryCoordinator, now: UnixNanos) {
        watch.see(
            &keys(),
            store.read(&keys().all_slots()).expect("memory answers"),
            (now, now),
        );
    }

    fn status_of(store: &MemoryCoordinator) -> FleetStatus {
        let mut watch = FleetWatch::default();
        see(&mut watch, store, after(1));
        watch.status(&keys(), &HighWater::default(), after(1))
    }

    fn whats(status: &FleetStatus) -> Vec<&str> {
        status
            .problems
            .iter()
            .map(|problem| problem.what.as_str())
            .collect()
    }

    #[test]
    fn a_slot_that_an_earlier_process_of_a_renewing_node_holds_is_no_problem() {
        for (is_renewing, problems) in [(true, 0), (false, 1)] {
            let store = fleet();
            for slot in [0, 1] {
                hold(&store, slot, "restarted");
                reserve(&store, slot, after(60), NOON);
            }
            let mut watch = FleetWatch::default();
            see(&mut watch, &store, after(1));
            if is_renewing {
                reserve(&store, 1, after(62), after(2));
                see(&mut watch, &store, after(2));
            }
            let status = watch.status(&keys(), &HighWater::default(), after(2));
            let silent = whats(&status)
                .iter()
                .filter(|what| what.contains("slot 0 and does not renew it"))
                .count();
            assert_eq!(silent, problems, "{:?}", status.problems);
        }
    }

    #[test]
    fn clocks_are_compared_when_nodes_renew() {
        let store = fleet();
        for (slot, node) in [(0, "right"), (1, "ahead"), (2, "gone")] {
            hold(&store, slot, node);
            reserve(&store, slot, after(60), NOON);
        }
        let mut watch = FleetWatch::default();
        see(&mut watch, &store, after(1));
        assert_eq!(
            watch.unseen(&keys()),
            Some(Unseen::Renewals),
            "nobody has renewed yet"
        );
        reserve(&store, 0, after(62), after(2));
        reserve(&store, 1, after(65), after(5));
        see(&mut watch, &store, after(2));
        // A second read of the same record proves nothing more about the node's clock, because it
        // does not show how long ago the record was written.
        see(&mut watch, &store, after(4));
        assert_eq!(watch.unseen(&keys()), Some(Unseen::Renewals), "one has not");
        let status = watch.status(&keys(), &HighWater::default(), after(4));
        let least = |slot: usize| match &status.slots[slot].state {
            SlotState::Held(holder) => holder.clock.map(|clock| clock.least_nanos),
            other => panic!("{other:?}"),
        };
        assert_eq!([0, 1, 2].map(least), [Some(0), Some(3_000_000_000), None]);
        assert_eq!(status.slots[0].horizon, Some(after(62)));
        assert_eq!(
            whats(&status),
            [
                "the clock of ahead at 127.0.0.1:1 is at least 3.0 s ahead of this machine's",
                &format!(
                    "gone at 127.0.0.1:1 holds slot 2 and does not renew it, since {NOON} by its clock"
                ),
            ]
        );
        reserve(&store, 2, after(64), after(4));
        see(&mut watch, &store, after(4));
        assert_eq!(watch.unseen(&keys()), None);
    }

    #[test]
    fn a_renewal_that_comes_late_is_no_clock_that_is_behind() {
        // In each case, a node writes its clock reading to etcd three times. The numbers are the
        // ages of the readings in seconds when they arrive. The text is the expected problem.
        for (late, said) in [
            ([0, 0, 0], None),
            // The third reading arrives at once, so the clock is right. Only the first two writes
            // were slow.
            ([4, 4, 0], None),
            // All three renewals look equally late. The clock may be behind, or the connection may
            // be slow.
            (
                [4, 4, 4],
                Some(
                    "renewals of node at 127.0.0.1:1 reach etcd 4.0 s late, or its clock is behind",
                ),
            ),
            // A node reads its clock only after its previous write was stored, and writes arrive
            // every 5 s. So a right clock's reading cannot be 20 s old when it arrives.
            (
                [20, 20, 20],
                Some("the clock of node at 127.0.0.1:1 is at least 14.0 s behind this machine's"),
            ),
        ] {
            let store = fleet();
            hold(&store, 0, "node");
            let mut watch = FleetWatch::default();
            for (turn, late) in (20..).step_by(5).zip(late) {
                see(&mut watch, &store, after(turn - 1));
                reserve(&store, 0, after(90), after(turn - late));
                see(&mut watch, &store, after(turn));
            }
            let status = watch.status(&keys(), &HighWater::default(), after(30));
            assert_eq!(
                whats(&status),
                said.into_iter().collect::<Vec<_>>(),
                "{late:?}"
            );
        }
        // The read is slow: it is sent at 4 s, the node writes its clock reading at 5 s, and the
        // response arrives at 7 s. The correct clock must not look wrong.
        let store = fleet();
        hold(&store, 0, "node");
        let mut watch = FleetWatch::default();
        reserve(&store, 0, after(60), NOON);
        see(&mut watch, &store, after(1));
        reserve(&store, 0, after(65), after(5));
        watch.see(
            &keys(),
            store.read(&keys().all_slots()).expect("memory answers"),
            (after(4), after(7)),
        );
        assert_eq!(watch.unseen(&keys()), Some(Unseen::NextRenewals));
        assert!(
            watch
                .status(&keys(), &HighWater::default(), after(7))
                .problems
                .is_empty()
        );
    }

    #[test]
    fn nodes_that_are_silent_all_at_once_are_as_after_a_restore() {
        let says_restore = |status: &FleetStatus| {
            status
                .problems
                .iter()
                .any(|one| one.advice.contains("fence-restore"))
        };
        for (silent, renewing, is_like_a_restore) in [
            (1, 0, true),
            (2, 0, true),
            (3, 1, true),
            (1, 1, false),
            (0, 2, false),
        ] {
            let store = fleet();
            (0..silent + renewing).for_each(|slot| {
                hold(&store, slot, &format!("node-{slot}"));
                reserve(&store, slot, after(60), NOON);
            });
            let mut watch = FleetWatch::default();
            see(&mut watch, &store, after(1));
            (silent..silent + renewing).for_each(|slot| reserve(&store, slot, after(62), after(2)));
            see(&mut watch, &store, after(2));
            let status = watch.status(&keys(), &HighWater::default(), after(2));
            assert_eq!(
                says_restore(&status),
                is_like_a_restore,
                "{silent} {renewing}: {:?}",
                status.problems
            );
            let looks = status
                .problems
                .iter()
                .filter(|one| one.advice.contains("check that the node runs"))
                .count();
            assert_eq!(looks, silent as usize, "{:?}", status.problems);
        }
        // A minute later, the leases have expired.
        let store = fleet();
        reserve(&store, 0, NOON, NOON);
        let status = status_of(&store);
        assert!(says_restore(&status), "{:?}", status.problems);
        assert_eq!(
            whats(&status),
            ["no node has a slot, so no sequenced id is minted"]
        );
    }

    #[test]
    fn slots_are_free_resting_or_not_to_be_read() {
        let store = fleet();
        assert!(
            status_of(&store).problems.is_empty(),
            "a fleet without nodes is well"
        );
        reserve(&store, 0, after(60), NOON);
        reserve(&store, 1, NOON, NOON);
        put(&store, keys().horizon(2), b"{\"v\":2}".to_vec());
        let status = status_of(&store);
        let states: Vec<SlotState> = status.slots.iter().map(|slot| slot.state.clone()).collect();
        assert_eq!(
            states,
            [
                SlotState::Resting,
                SlotState::Free,
                SlotState::Unreadable,
                SlotState::Free
            ]
        );
        assert_eq!(
            whats(&status),
            [
                "no node has a slot, so no sequenced id is minted",
                "the entry of slot 2 cannot be read, so the slot is not used",
            ]
        );
        for slot in [1, 3] {
            reserve(&store, slot, after(60), NOON);
        }
        assert!(whats(&status_of(&store)).contains(&"no slot is free: a new node has to wait"));
    }

    #[test]
    fn a_fleet_that_is_missing_unreadable_new_or_lost_is_said() {
        let none = MemoryCoordinator::default();
        assert_eq!(
            whats(&status_of(&none)),
            ["there is no fleet in this namespace"]
        );
        put(&none, keys().meta(), b"{\"v\":2}".to_vec());
        assert!(whats(&status_of(&none))[0].contains("meta cannot be read"));
        let begins = fleet();
        let meta = FleetMeta::new(Nonce::new(7), share(1, "0-0"), after(100));
        put(&begins, keys().meta(), meta.to_bytes());
        assert!(whats(&status_of(&begins))[0].contains("begins at"));

        let mut known = HighWater::default();
        known.meet(
            Nonce::new(7),
            FleetEra::first(Nonce::new(7), NOON),
            Revision(99),
            NOON,
        );
        let mut watch = FleetWatch::default();
        see(&mut watch, &fleet(), after(1));
        let status = watch.status(&keys(), &known, after(1));
        assert!(
            status.problems[0].advice.contains("fence-restore"),
            "{:?}",
            status.problems
        );
    }
}
