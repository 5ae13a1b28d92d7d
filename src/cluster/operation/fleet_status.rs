//! How a fleet is: who holds which slot up to when, how right the clocks are, and what is wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cluster::fleet_keys::FleetKeys;
use crate::cluster::high_water::HighWater;
use crate::cluster::slot_share::SlotShare;
use crate::cluster::stored::{FleetMeta, HorizonRecord, SlotRecord};
use crate::cluster::token::Token;
use crate::storage::{Entry, Revision, Snapshot};
use crate::time::UnixNanos;

/// A clock that is further off than this is said to be wrong, long before it stops its node.
const SKEW_MAX: Duration = Duration::from_millis(500);

/// How a fleet is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetStatus {
    /// What the fleet has agreed on; `None` where there is no fleet.
    pub fleet: Option<AgreedFleet>,
    /// Each slot, from 0 on.
    pub slots: Vec<Slot>,
    /// What is wrong, and what to do about it.
    pub problems: Vec<Problem>,
}

/// What all nodes have agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgreedFleet {
    /// Which fleet it is.
    pub fleet: Token,
    /// No slot is used below this instant.
    pub floor: UnixNanos,
    /// The slots that its nodes may take.
    pub share: SlotShare,
    /// The formats that are minted.
    pub formats: Vec<String>,
}

/// One slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Its number.
    pub slot: u32,
    /// Its horizon; `None` if it was never used.
    pub horizon: Option<UnixNanos>,
    /// Who has it.
    pub state: SlotState,
}

/// Who has a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotState {
    /// A node.
    Held(Holder),
    /// Nobody, and its last holder may use it until its horizon has passed.
    Resting,
    /// Nobody.
    Free,
    /// What is stored about it cannot be read, so it is not used.
    Unreadable,
}

/// The node that has a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its machine.
    pub node: String,
    /// Where it listens.
    pub addr: String,
    /// Since when, by its own clock.
    pub since: UnixNanos,
    /// How far its clock is ahead, in nanoseconds; below 0 it is behind. `None`: it has not renewed while it was watched.
    pub ahead_nanos: Option<i64>,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What.
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

impl Problem {
    /// Something that is wrong, and what to do about it.
    pub fn new(what: impl Into<String>, advice: impl Into<String>) -> Problem {
        Problem { what: what.into(), advice: advice.into() }
    }
}

/// What was seen of a fleet in the course of some seconds: how it is now, and which clock showed what when its node renewed.
#[derive(Debug, Clone, Default)]
pub struct FleetWatch {
    first: BTreeMap<u32, Revision>,
    ahead_nanos: BTreeMap<u32, i64>,
    last: Option<Snapshot>,
}

impl FleetWatch {
    /// Takes in what was read at `now`; it answers [`FleetKeys::survey`].
    pub fn see(&mut self, keys: &FleetKeys, snapshot: Snapshot, now: UnixNanos) {
        for (slot, entry) in numbered(horizons(&snapshot), keys) {
            let first = *self.first.entry(slot).or_insert(entry.modified);
            if entry.modified == first || self.ahead_nanos.contains_key(&slot) {
                continue;
            }
            if let Ok(record) = HorizonRecord::from_bytes(&entry.value) {
                self.ahead_nanos.insert(slot, signed_difference(record.clock, now));
            }
        }
        self.last = Some(snapshot);
    }

    /// Whether every node that holds a slot has renewed it since the first look.
    pub fn is_complete(&self, keys: &FleetKeys) -> bool {
        self.last.as_ref().is_some_and(|snapshot| {
            numbered(holders(snapshot), keys).all(|(slot, _)| self.ahead_nanos.contains_key(&slot))
        })
    }

    /// How the fleet is at `now`, as far as it was seen. `known` is what this machine knows of the coordinator.
    ///
    /// # Panics
    /// When nothing was seen.
    pub fn status(&self, keys: &FleetKeys, known: &HighWater, now: UnixNanos) -> FleetStatus {
        let snapshot = self.last.as_ref().expect("it was looked at");
        let mut problems = Vec::new();
        if let Err(loss) = known.check_all(keys, snapshot) {
            problems.push(Problem::new(
                format!("etcd has lost what it had acknowledged: {loss}"),
                "if it was restored from a backup, or wiped: idmint fleet fence-restore; if it is another one, mend etcd.endpoints",
            ));
        }
        let fleet = match snapshot.ranges[0].first().map(|entry| (entry, FleetMeta::from_bytes(&entry.value))) {
            None => {
                problems.push(Problem::new("there is no fleet in this namespace", "start a node, which founds it"));
                None
            }
            Some((entry, Err(error))) => {
                problems.push(Problem::new(
                    format!("{} cannot be read: {error}", entry.key),
                    "a newer idmint may have written it: use that one; else restore etcd, then idmint fleet fence-restore",
                ));
                None
            }
            Some((_, Ok(meta))) => Some(AgreedFleet {
                fleet: meta.fleet,
                floor: meta.floor,
                share: meta.share(),
                formats: meta.formats.into_keys().collect(),
            }),
        };
        if let Some(agreed) = fleet.as_ref().filter(|agreed| agreed.floor > now) {
            let wait = agreed.floor.since(now).as_secs() + 1;
            let what = format!("the fleet was founded or fenced a moment ago and begins at {}", agreed.floor);
            problems.push(Problem::new(what, format!("wait {wait} s; no node mints before")));
        }
        let numbers = fleet.iter().flat_map(|agreed| agreed.share.iter());
        let slots: Vec<Slot> = numbers.map(|slot| self.slot(slot, keys, snapshot, now)).collect();
        problems.extend(slots.iter().filter_map(problem_of));
        if !slots.is_empty() && slots.iter().all(|slot| slot.state != SlotState::Free) {
            problems.push(Problem::new(
                "no slot is free: a node that starts has to wait",
                "end nodes that are not needed, or wait until slots have rested; for good: a fleet with more slots (docs/FLEET.md)",
            ));
        }
        FleetStatus { fleet, slots, problems }
    }

    fn slot(&self, slot: u32, keys: &FleetKeys, snapshot: &Snapshot, now: UnixNanos) -> Slot {
        let find = |entries: &[Entry], key: String| entries.iter().find(|entry| entry.key == key).cloned();
        let record = find(horizons(snapshot), keys.horizon(slot)).map(|entry| HorizonRecord::from_bytes(&entry.value));
        let holder = find(holders(snapshot), keys.slot(slot)).map(|entry| SlotRecord::from_bytes(&entry.value));
        let (horizon, state) = match (record, holder) {
            (Some(Err(_)), _) | (_, Some(Err(_))) => (None, SlotState::Unreadable),
            (record, Some(Ok(SlotRecord { node, addr, since, .. }))) => {
                let ahead_nanos = self.ahead_nanos.get(&slot).copied();
                let holder = Holder { node, addr, since, ahead_nanos };
                (record.and_then(Result::ok).map(|record| record.horizon), SlotState::Held(holder))
            }
            (Some(Ok(record)), None) if record.horizon > now => (Some(record.horizon), SlotState::Resting),
            (record, None) => (record.and_then(Result::ok).map(|record| record.horizon), SlotState::Free),
        };
        Slot { slot, horizon, state }
    }
}

/// Two regions that mint in one namespace from an etcd each, where a slot belongs to both.
pub fn problem_of_shares(here: &AgreedFleet, peer: &str, there: &AgreedFleet) -> Option<Problem> {
    if here.fleet == there.fleet {
        let what = format!("{peer} has the same fleet, {}", here.fleet);
        return Some(Problem::new(what, "name the etcd of another region, or restore none from a copy of this one"));
    }
    let (here, there) = (here.share, there.share);
    if here.slots() != there.slots() {
        let what = format!("this namespace has {} slots here and {} at {peer}", here.slots(), there.slots());
        let advice =
            "stop the nodes of one region at once: worker numbers are dealt out by worker.slots, the same in both";
        return Some(Problem::new(what, advice));
    }
    here.common_with(there).map(|common| {
        let what = format!("slots {common} belong to two regions: {here} here and {there} at {peer}");
        Problem::new(
            what,
            "stop the nodes of one region at once: both mint the same ids; then give each a share of its own",
        )
    })
}

fn problem_of(slot: &Slot) -> Option<Problem> {
    let number = slot.slot;
    match &slot.state {
        SlotState::Unreadable => Some(Problem::new(
            format!("what is stored about slot {number} cannot be read, so it is not used"),
            "a newer idmint may have written it; do not delete it: it is the only record of what was minted in the slot",
        )),
        SlotState::Held(Holder { node, addr, ahead_nanos: None, .. }) => Some(Problem::new(
            format!("{node} at {addr} holds slot {number} and does not renew it"),
            "look whether it runs and reaches etcd; another node can have the slot a minute after its last renewal",
        )),
        SlotState::Held(Holder { node, addr, ahead_nanos: Some(ahead), .. }) => {
            let off = Duration::from_nanos(ahead.unsigned_abs());
            let side = if *ahead < 0 { "behind" } else { "ahead" };
            (off > SKEW_MAX).then(|| {
                let what =
                    format!("the clock of {node} at {addr} is {:.1} s {side} of this machine's", off.as_secs_f64());
                Problem::new(what, "look at both (chronyc tracking) and mend the wrong one")
            })
        }
        SlotState::Resting | SlotState::Free => None,
    }
}

fn horizons(snapshot: &Snapshot) -> &[Entry] {
    snapshot.ranges.get(1).map_or(&[], Vec::as_slice)
}

fn holders(snapshot: &Snapshot) -> &[Entry] {
    snapshot.ranges.get(2).map_or(&[], Vec::as_slice)
}

/// Entries with the number that ends their key.
fn numbered<'a>(entries: &'a [Entry], keys: &'a FleetKeys) -> impl Iterator<Item = (u32, &'a Entry)> {
    entries.iter().filter_map(|entry| {
        let slot = entry.key.rsplit('/').next()?.parse().ok()?;
        [keys.horizon(slot), keys.slot(slot)].contains(&entry.key).then_some((slot, entry))
    })
}

fn signed_difference(shown: UnixNanos, now: UnixNanos) -> i64 {
    let (ahead, behind) = (shown.since(now).as_nanos(), now.since(shown).as_nanos());
    let ahead = i64::try_from(ahead).unwrap_or(i64::MAX);
    let behind = i64::try_from(behind).unwrap_or(i64::MAX);
    ahead.saturating_sub(behind)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::cluster::operation::samples::{NOON, after, keys, put};
    use crate::cluster::slot_share::SlotRange;
    use crate::storage::{Coordinator, MemoryCoordinator};

    fn reserve(store: &MemoryCoordinator, slot: u32, horizon: UnixNanos, clock: UnixNanos) {
        let record = HorizonRecord::new(horizon, Token::new(1), Token::new(2), clock);
        put(store, keys().horizon(slot), record.to_bytes());
    }

    fn hold(store: &MemoryCoordinator, slot: u32, node: &str) {
        put(store, keys().slot(slot), SlotRecord::new(Token::new(1), node, "127.0.0.1:1", NOON).to_bytes());
    }

    fn share(slots: u32, range: &str) -> SlotShare {
        let slots = NonZeroU32::new(slots).expect("not zero");
        SlotShare::part(slots, SlotRange::parse(range).expect("a range")).expect("within")
    }

    /// A fleet of four slots in which nobody holds one.
    fn fleet() -> MemoryCoordinator {
        let store = MemoryCoordinator::default();
        let meta = FleetMeta::new(Token::new(7), share(4, "0-3"), NOON);
        put(&store, keys().meta(), meta.to_bytes());
        store
    }

    fn see(watch: &mut FleetWatch, store: &MemoryCoordinator, now: UnixNanos) {
        watch.see(&keys(), store.read(&keys().survey()).expect("memory answers"), now);
    }

    fn status_of(store: &MemoryCoordinator) -> FleetStatus {
        let mut watch = FleetWatch::default();
        see(&mut watch, store, after(1));
        watch.status(&keys(), &HighWater::default(), after(1))
    }

    fn whats(status: &FleetStatus) -> Vec<&str> {
        status.problems.iter().map(|problem| problem.what.as_str()).collect()
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
        assert!(!watch.is_complete(&keys()), "nobody has renewed yet");
        reserve(&store, 0, after(62), after(2));
        reserve(&store, 1, after(65), after(5));
        see(&mut watch, &store, after(2));
        // What was seen first counts: only then did the clock show that.
        see(&mut watch, &store, after(4));
        assert!(!watch.is_complete(&keys()), "one has not");
        let status = watch.status(&keys(), &HighWater::default(), after(4));
        let ahead = |slot: usize| match &status.slots[slot].state {
            SlotState::Held(holder) => holder.ahead_nanos,
            other => panic!("{other:?}"),
        };
        assert_eq!([0, 1, 2].map(ahead), [Some(0), Some(3_000_000_000), None]);
        assert_eq!(status.slots[0].horizon, Some(after(62)));
        assert_eq!(
            whats(&status),
            [
                "the clock of ahead at 127.0.0.1:1 is 3.0 s ahead of this machine's",
                "gone at 127.0.0.1:1 holds slot 2 and does not renew it",
            ]
        );
        reserve(&store, 2, after(64), after(4));
        see(&mut watch, &store, after(4));
        assert!(watch.is_complete(&keys()));
    }

    #[test]
    fn slots_are_free_resting_or_not_to_be_read() {
        let store = fleet();
        assert!(status_of(&store).problems.is_empty(), "a fleet without nodes is well");
        reserve(&store, 0, after(60), NOON);
        reserve(&store, 1, NOON, NOON);
        put(&store, keys().horizon(2), b"{\"v\":2}".to_vec());
        let status = status_of(&store);
        let states: Vec<SlotState> = status.slots.iter().map(|slot| slot.state.clone()).collect();
        assert_eq!(states, [SlotState::Resting, SlotState::Free, SlotState::Unreadable, SlotState::Free]);
        assert_eq!(whats(&status), ["what is stored about slot 2 cannot be read, so it is not used"]);
        for slot in [1, 3] {
            reserve(&store, slot, after(60), NOON);
        }
        assert!(whats(&status_of(&store)).contains(&"no slot is free: a node that starts has to wait"));
    }

    #[test]
    fn a_fleet_that_is_missing_unreadable_new_or_lost_is_said() {
        let none = MemoryCoordinator::default();
        assert_eq!(whats(&status_of(&none)), ["there is no fleet in this namespace"]);
        put(&none, keys().meta(), b"{\"v\":2}".to_vec());
        assert!(whats(&status_of(&none))[0].contains("meta cannot be read"));
        let begins = fleet();
        let meta = FleetMeta::new(Token::new(7), share(1, "0-0"), after(100));
        put(&begins, keys().meta(), meta.to_bytes());
        assert!(whats(&status_of(&begins))[0].contains("begins at"));

        let mut known = HighWater::default();
        known.meet(Token::new(7), NOON, Revision(99), NOON);
        let mut watch = FleetWatch::default();
        see(&mut watch, &fleet(), after(1));
        let status = watch.status(&keys(), &known, after(1));
        assert!(status.problems[0].advice.contains("fence-restore"), "{:?}", status.problems);
    }

    #[test]
    fn a_slot_that_belongs_to_two_regions_is_found() {
        let region = |fleet, share| AgreedFleet { fleet: Token::new(fleet), floor: NOON, share, formats: Vec::new() };
        let (peer, west) = ("http://west:2379", region(2, share(32, "16-31")));
        assert_eq!(problem_of_shares(&region(1, share(32, "0-15")), peer, &west), None);
        let problem = problem_of_shares(&region(1, share(32, "0-16")), peer, &west).expect("slot 16 is of both");
        assert!(problem.what.contains("slots 16-16 belong") && problem.what.contains(peer), "{problem:?}");
        let smaller = problem_of_shares(&region(1, share(16, "0-15")), peer, &west).expect("other worker numbers");
        assert!(smaller.what.contains("16 slots here and 32"), "{smaller:?}");
        let same = problem_of_shares(&region(1, share(32, "0-15")), peer, &region(1, share(32, "16-31")));
        assert!(same.is_some_and(|problem| problem.what.contains("same fleet")));
    }
}
