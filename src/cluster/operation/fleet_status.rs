//! How a fleet is: who holds which slot up to when, how right the clocks are, and what is wrong.

use super::fleet_problems::{FleetProblem, may_be_behind, problem_of, problem_of_all};
use super::fleet_slots::{AgreedFleet, Holder, Slot, SlotState};
use super::renewals::{ClockBounds, Renewals};
use crate::cluster::fleet_keys::FleetKeys;
use crate::cluster::high_water::HighWater;
use crate::cluster::stored::{FleetMeta, HorizonRecord, SlotRecord};
use crate::storage::{KeptFormat, KeyValue, Snapshot};
use crate::time::UnixNanos;

/// How a fleet is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetStatus {
    /// What the fleet has agreed on; `None` where there is no fleet.
    pub fleet: Option<AgreedFleet>,
    /// Each slot, from 0 on.
    pub slots: Vec<Slot>,
    /// What is wrong, and what to do about it.
    pub problems: Vec<FleetProblem>,
}

/// What was seen of a fleet in the course of some seconds: how it is now, and which clock showed what when its node renewed.
#[derive(Debug, Clone, Default)]
pub struct FleetWatch {
    renewals: Renewals,
    last: Option<Snapshot>,
}

/// What is still to be seen of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseen {
    /// Nodes that hold a slot have not renewed it since the first look.
    Renewals,
    /// All have, and one of these renewals came so late that the next one is to tell whether its clock is behind.
    NextRenewals,
}

impl FleetWatch {
    /// Takes in what was asked for at one instant and answered at the next; it answers [`FleetKeys::all_slots`].
    pub fn see(&mut self, keys: &FleetKeys, snapshot: Snapshot, times: (UnixNanos, UnixNanos)) {
        let records = numbered(horizons(&snapshot), keys).filter_map(|(slot, entry)| {
            HorizonRecord::from_bytes(&entry.value)
                .ok()
                .map(|record| (slot, entry.modified, record))
        });
        self.renewals.look(times, records);
        self.last = Some(snapshot);
    }

    /// What is still to be seen, if anything.
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

    /// How the fleet is at `now`, as far as it was seen. `known` is what this machine knows of the coordinator.
    ///
    /// # Panics
    /// When nothing was seen.
    pub fn status(&self, keys: &FleetKeys, known: &HighWater, now: UnixNanos) -> FleetStatus {
        let snapshot = self.last.as_ref().expect("it was looked at");
        let mut problems = Vec::new();
        let loss = known.check_all(keys, snapshot).err();
        if let Some(loss) = &loss {
            problems.push(FleetProblem::new(
                format!("etcd has lost what it had acknowledged: {loss}"),
                "if it was restored from a backup, or wiped: idmint fleet fence-restore; if it is another one, mend etcd.endpoints",
            ));
        }
        let fleet = match snapshot.ranges[0]
            .first()
            .map(|entry| (entry, FleetMeta::from_bytes(&entry.value)))
        {
            None => {
                problems.push(FleetProblem::new(
                    "there is no fleet in this namespace",
                    "if there was one, etcd was wiped or is another one: start no node, but idmint fleet fence-restore, or mend \
                     etcd.endpoints; else start a node, which founds it",
                ));
                None
            }
            Some((entry, Err(error))) => {
                problems.push(FleetProblem::new(
                    format!("{} cannot be read: {error}", entry.key),
                    "a newer idmint may have written it: use that one; else restore etcd, then idmint fleet fence-restore",
                ));
                None
            }
            Some((_, Ok(meta))) => Some(AgreedFleet {
                fleet: meta.fleet,
                floor: meta.floor,
                share: meta.share(),
                formats: meta
                    .formats
                    .into_keys()
                    .filter(|name| KeptFormat::is_name_of_format(name))
                    .collect(),
            }),
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
        if loss.is_none() && !begins_later {
            problems.extend(problem_of_all(&slots));
        }
        problems.extend(
            slots
                .iter()
                .filter_map(|slot| problem_of(slot, loss.is_some())),
        );
        if !slots.is_empty() && slots.iter().all(|slot| slot.state != SlotState::Free) {
            problems.push(FleetProblem::new(
                "no slot is free: a node that starts has to wait",
                "end nodes that are not needed, or wait until slots have rested; for good: a fleet with more slots (docs/FLEET.md)",
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

fn horizons(snapshot: &Snapshot) -> &[KeyValue] {
    snapshot.ranges.get(1).map_or(&[], Vec::as_slice)
}

fn holders(snapshot: &Snapshot) -> &[KeyValue] {
    snapshot.ranges.get(2).map_or(&[], Vec::as_slice)
}

/// Entries with the number that ends their key.
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
    use crate::cluster::nonce::Nonce;
    use crate::cluster::operation::samples::{NOON, after, keys, put};
    use crate::cluster::slot_share::{SlotRange, SlotShare};
    use crate::storage::{Coordinator, MemoryCoordinator, Revision};

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

    /// A fleet of four slots in which nobody holds one.
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
        // What was seen first counts: only then did the clock show that.
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
        // How late three renewals are, each seen in the second in which it comes, and what is said of it.
        for (late, said) in [
            ([0, 0, 0], None),
            // On the way for longer than a clock may be wrong; the next one is not.
            ([4, 4, 0], None),
            // Late each time, whatever the reason.
            (
                [4, 4, 4],
                Some(
                    "what node at 127.0.0.1:1 renews is 4.0 s old when it is in etcd, or its clock is behind",
                ),
            ),
            // Later than the renewal before it was seen.
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
        // A slow look at a right clock: asked for before the renewal, and answered long after.
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
                hold(&store, slot, "node");
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
                .filter(|one| one.advice.contains("look whether it runs"))
                .count();
            assert_eq!(looks, silent as usize, "{:?}", status.problems);
        }
        // A minute later the leases have ended.
        let store = fleet();
        reserve(&store, 0, NOON, NOON);
        let status = status_of(&store);
        assert!(says_restore(&status), "{:?}", status.problems);
        assert_eq!(
            whats(&status),
            ["no node has a slot, so no id is minted by number"]
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
                "no node has a slot, so no id is minted by number",
                "what is stored about slot 2 cannot be read, so it is not used",
            ]
        );
        for slot in [1, 3] {
            reserve(&store, slot, after(60), NOON);
        }
        assert!(
            whats(&status_of(&store)).contains(&"no slot is free: a node that starts has to wait")
        );
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
        known.meet(Nonce::new(7), NOON, Revision(99), NOON);
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
