//! The fence after a restore: a coordinator that has forgotten what it acknowledged is used again, above all of it.
//!
//! Nobody knows which slots were used since the backup, and up to where. So all of them begin anew, above every horizon that
//! is known of and above all that a node can have reserved whose horizon is not: a node reserves at most a window ahead of its
//! clock.
//!
//! ```text
//! operator's clock        floor of all slots                                        horizon of slot 3 alone
//!        |--- window, ahead_max ---|                                                        |
//!        |   horizons of slots   x |                                                      x |    a clock 400 days ahead
//! ```
//!
//! A horizon that is far above that is of a clock that was wrong, and stays with its slot: nobody else waits for it. By a new
//! name of the fleet each node knows that this was done; one that has minted above the new floor all the same, in a slot whose
//! horizon does not say so, does not join, and says so.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crate::cluster::fleet_keys::FleetKeys;
use crate::cluster::high_water::{HighWater, WRITE_EVERY};
use crate::cluster::nonce::{Entropy, Nonce};
use crate::cluster::slot_lease::Unheard;
use crate::cluster::slot_share::SlotShare;
use crate::cluster::stored::{FleetMeta, HorizonRecord, ceil_to_millis};
use crate::storage::{
    Compare, Coordinator, CoordinatorError, KeptFormat, KeyValue, Outcome, Range, Revision,
    Snapshot, Transaction, Write,
};
use crate::time::UnixNanos;

/// How often the same transaction is sent without an answer before the command gives up.
const SENT_MAX: u32 = 10;

/// What is further than this above all that nodes with right clocks can have reserved is of a clock that was wrong.
const FAR: Duration = Duration::from_hours(1);

/// How nodes of the fleet are configured.
#[derive(Debug, Clone)]
pub struct FenceRule {
    /// Which slots the fleet has, where nothing says so any more.
    pub share: SlotShare,
    /// How far ahead a node mints at most of whom nothing is known.
    pub unheard: Unheard,
    /// Which fleet it was at first, where nothing says so any more.
    pub origin: Option<Nonce>,
    /// The formats that it mints, where nothing says so any more.
    pub formats: Vec<KeptFormat>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreFence {
    /// The name that the fleet had; `None` where there was none any more.
    pub former: Option<Nonce>,
    /// The name that it has now.
    pub fleet: Nonce,
    /// From here on ids are minted.
    pub floor: UnixNanos,
    /// The slots whose horizons were found, and the highest of these.
    pub horizons: usize,
    /// The highest horizon that was found.
    pub highest: Option<UnixNanos>,
    /// The slot that is used again only from this instant on, for a clock that was far ahead.
    pub far: Option<(u32, UnixNanos)>,
}

/// Why nothing was done, as far as is known.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// The coordinator cannot be read or written.
    #[error(transparent)]
    Coordinator(#[from] CoordinatorError),
    /// What is stored is not what a node writes.
    #[error("{key} cannot be read: {why}")]
    Unreadable {
        /// Where.
        key: String,
        /// Why.
        why: String,
    },
    /// More than one slot was used far above the clock of this machine, so that is the one that is wrong.
    #[error(
        "slots were used far above the clock of this machine, which shows {now}:{}; set it right, and try again. If it is right, \
         several nodes were wrong: move to another etcd.namespace, or wait until the earliest of these has passed",
        list(slots)
    )]
    FarAhead {
        /// What the clock shows.
        now: UnixNanos,
        /// Up to where each of them was used.
        slots: BTreeMap<u32, UnixNanos>,
    },
    /// Others write at the same time.
    #[error(
        "what the fleet has agreed on changes again and again; stop the nodes that start, and try again"
    )]
    Contended,
}

fn list(slots: &BTreeMap<u32, UnixNanos>) -> String {
    slots
        .iter()
        .fold(String::new(), |mut text, (slot, horizon)| {
            let _ = write!(text, " slot {slot} up to {horizon}");
            text
        })
}

/// Which fleet it was at first whose store was restored; `None` where there is none any more.
///
/// # Errors
/// [`FenceError`].
pub fn origin_of_restored(
    coordinator: &dyn Coordinator,
    keys: &FleetKeys,
) -> Result<Option<Nonce>, FenceError> {
    let snapshot = coordinator.read(&[Range::one(keys.meta())])?;
    let meta = snapshot.ranges.first().and_then(|meta| meta.first());
    let origin = |entry: &KeyValue| {
        Ok(FleetMeta::from_bytes(&entry.value)
            .map_err(unreadable(entry))?
            .origin())
    };
    meta.map(origin).transpose()
}

/// Sees to it that no slot is used below what nodes have minted, before anything else is written to a store that was restored.
/// For each write brings its revision nearer to what nodes have seen, and a node without a slot knows of the restore by that
/// alone; so `meta` is written in any case, which tells it from a store that has lost nothing after all. Returns the revision of what the fleet has agreed on, [`Revision::ABSENT`] where there is no fleet any more: then
/// nodes know of it by that.
///
/// # Errors
/// [`FenceError`].
pub fn raise_restored_floor(
    coordinator: &dyn Coordinator,
    keys: &FleetKeys,
    rule: &FenceRule,
    high_waters: &[HighWater],
    now: UnixNanos,
) -> Result<Revision, FenceError> {
    for _ in 0..SENT_MAX {
        let snapshot = coordinator.read(&keys.all_slots())?;
        let Found {
            meta,
            modified,
            floor,
            ..
        } = Found::of(&snapshot, keys, rule, high_waters, now)?;
        let Some(mut meta) = meta else {
            return Ok(Revision::ABSENT);
        };
        meta.floor = meta.floor.max(floor);
        if let Some(written) = commit(coordinator, &to_write(keys, &meta, modified))? {
            return Ok(written);
        }
    }
    Err(FenceError::Contended)
}

/// Begins the fleet anew, above all that nodes have minted in it.
///
/// `high_waters`: what nodes knew of the coordinator before it lost something, of as many as can be had.
///
/// # Errors
/// [`FenceError`]. Doing it twice does no harm.
pub fn fence_restored(
    coordinator: &dyn Coordinator,
    keys: &FleetKeys,
    rule: &FenceRule,
    high_waters: &[HighWater],
    now: UnixNanos,
    entropy: &mut Entropy,
) -> Result<RestoreFence, FenceError> {
    for _ in 0..SENT_MAX {
        let snapshot = coordinator.read(&keys.all_slots())?;
        let found = Found::of(&snapshot, keys, rule, high_waters, now)?;
        let (modified, far) = (found.modified, found.far.clone());
        let (fence, meta) = plan(found, rule, entropy.nonce());
        let mut transaction = to_write(keys, &meta, modified);
        for (slot, Far { horizon, revision }) in far {
            let (key, record) = (
                keys.horizon(slot),
                HorizonRecord::new(horizon, entropy.nonce(), entropy.nonce(), now),
            );
            transaction
                .compare
                .push(Compare::Modified(key.clone(), revision));
            transaction.write.push(Write::put(key, record.to_bytes()));
        }
        if commit(coordinator, &transaction)?.is_some() {
            return Ok(fence);
        }
    }
    Err(FenceError::Contended)
}

/// What a store has of the fleet.
struct Found {
    meta: Option<FleetMeta>,
    /// The revision of that.
    modified: Revision,
    /// The horizons of slots.
    horizons: Vec<UnixNanos>,
    /// Above all that nodes can have minted but in slots that are far ahead; whole milliseconds.
    floor: UnixNanos,
    /// Far above what nodes with right clocks can have reserved; a floor there was made by one that was wrong.
    far_from: UnixNanos,
    /// The slots that are far ahead: one at most.
    far: BTreeMap<u32, Far>,
    /// The fleets that nodes knew of whose high waters there are.
    known_as: Vec<Nonce>,
}

/// Up to where a slot was used by a clock that was far ahead.
#[derive(Debug, Clone, Copy)]
struct Far {
    horizon: UnixNanos,
    /// The revision of its horizon in the store, which may not know of it.
    revision: Revision,
}

impl Found {
    fn of(
        snapshot: &Snapshot,
        keys: &FleetKeys,
        rule: &FenceRule,
        high_waters: &[HighWater],
        now: UnixNanos,
    ) -> Result<Found, FenceError> {
        let [meta, horizons, _] = snapshot.ranges.as_slice() else {
            panic!("all slots are three ranges")
        };
        let (meta, modified) = match meta.first() {
            None => (None, Revision::ABSENT),
            Some(entry) => (
                Some(FleetMeta::from_bytes(&entry.value).map_err(unreadable(entry))?),
                entry.modified,
            ),
        };
        let mut stored: BTreeMap<u32, Far> = BTreeMap::new();
        for entry in horizons {
            let record = HorizonRecord::from_bytes(&entry.value).map_err(unreadable(entry))?;
            let slot = keys
                .slot_of_horizon(&entry.key)
                .ok_or_else(|| unreadable(entry)("it names no slot"))?;
            stored.insert(
                slot,
                Far {
                    horizon: record.horizon,
                    revision: entry.modified,
                },
            );
        }
        let horizons: Vec<UnixNanos> = stored.values().map(|stored| stored.horizon).collect();
        let bound = rule.unheard.bound(now);
        let far_from = bound.after(WRITE_EVERY).after(FAR);
        let used = stored
            .iter()
            .map(|(slot, stored)| (*slot, stored.horizon))
            .chain(high_waters.iter().flat_map(|high_water| {
                let since = renewed_since_written(high_water, rule);
                high_water.slots().map(move |(slot, horizon)| match since {
                    // A clock that is far ahead has renewed no other slot than those it had far ahead.
                    Some(since) if horizon >= far_from => (slot, horizon.max(since)),
                    _ => (slot, horizon),
                })
            }));
        let (mut floor, mut far) = (bound, BTreeMap::<u32, Far>::new());
        for (slot, horizon) in used {
            if horizon < far_from {
                floor = floor.max(horizon);
                continue;
            }
            let revision = stored
                .get(&slot)
                .map_or(Revision::ABSENT, |stored| stored.revision);
            let known = far.entry(slot).or_insert(Far { horizon, revision });
            known.horizon = ceil_to_millis(known.horizon.max(horizon));
        }
        if far.len() > 1 {
            let slots = far.iter().map(|(slot, far)| (*slot, far.horizon)).collect();
            return Err(FenceError::FarAhead { now, slots });
        }
        let since = high_waters
            .iter()
            .filter_map(|high_water| renewed_since_written(high_water, rule));
        let floors = high_waters.iter().filter_map(HighWater::floor);
        let floor = since
            .chain(floors)
            .filter(|instant| *instant < far_from)
            .fold(floor, UnixNanos::max);
        let known_as = high_waters.iter().filter_map(HighWater::fleet).collect();
        Ok(Found {
            meta,
            modified,
            horizons,
            floor: above(floor),
            far_from,
            far,
            known_as,
        })
    }
}

/// Up to where a node may have reserved since it wrote this down: the file may be so much older than its end.
fn renewed_since_written(high_water: &HighWater, rule: &FenceRule) -> Option<UnixNanos> {
    high_water
        .at()
        .map(|at| rule.unheard.bound(at.after(WRITE_EVERY)))
}

/// The fence, and what all nodes have to agree on then.
fn plan(found: Found, rule: &FenceRule, fleet: Nonce) -> (RestoreFence, FleetMeta) {
    let Found {
        meta,
        horizons,
        floor,
        far_from,
        far,
        known_as,
        ..
    } = found;
    let former = meta.as_ref().map(|meta| meta.fleet);
    // Above and not at: a floor that is no higher than what a node knows is none that was made for it.
    let former_floor = meta
        .as_ref()
        .map(|meta| above(meta.floor))
        .filter(|floor| *floor < far_from);
    let least = meta
        .as_ref()
        .and_then(|meta| meta.least)
        .map(|least| least.0);
    let floor = former_floor
        .into_iter()
        .chain(least)
        .fold(floor, UnixNanos::max);
    let mut meta = meta.unwrap_or_else(|| founded_by(rule, rule.origin.unwrap_or(fleet), floor));
    meta.fence(fleet, floor, &known_as);
    let highest = horizons.iter().copied().max();
    let far = far
        .into_iter()
        .next()
        .map(|(slot, far)| (slot, far.horizon));
    (
        RestoreFence {
            former,
            fleet,
            floor,
            horizons: horizons.len(),
            highest,
            far,
        },
        meta,
    )
}

/// What the fleet of a store that was wiped agrees on: what the nodes of this configuration mint.
fn founded_by(rule: &FenceRule, fleet: Nonce, floor: UnixNanos) -> FleetMeta {
    let mut meta = FleetMeta::new(fleet, rule.share, floor);
    let minted = rule.formats.iter().filter(|format| format.is_minted);
    meta.formats = minted
        .map(|format| (format.name.clone(), format.description.clone()))
        .collect();
    meta
}

fn above(instant: UnixNanos) -> UnixNanos {
    ceil_to_millis(instant.after(Duration::from_millis(1)))
}

fn to_write(keys: &FleetKeys, meta: &FleetMeta, modified: Revision) -> Transaction {
    Transaction {
        compare: vec![Compare::Modified(keys.meta(), modified)],
        write: vec![Write::put(keys.meta(), meta.to_bytes())],
        then_read: Vec::new(),
        otherwise: vec![Range::one(keys.meta())],
    }
}

/// The revision of `meta` once this was written; `None`: something else was, meanwhile.
fn commit(
    coordinator: &dyn Coordinator,
    transaction: &Transaction,
) -> Result<Option<Revision>, CoordinatorError> {
    let mut failed = None;
    for _ in 0..SENT_MAX {
        match coordinator.commit(transaction) {
            Ok(Outcome::Committed(snapshot)) => return Ok(Some(snapshot.revision)),
            Ok(Outcome::Refused(snapshot)) => {
                let there = snapshot.ranges.first().and_then(|meta| meta.first());
                let is_it = |there: &&KeyValue| matches!(&transaction.write[0], Write::Put { value, .. } if there.value == *value);
                return Ok(there.filter(is_it).map(|there| there.modified));
            }
            // The same bytes again: of all copies one can be done.
            Err(error @ (CoordinatorError::NoAnswer(_) | CoordinatorError::NotSent(_))) => {
                failed = Some(error)
            }
            Err(error) => return Err(error),
        }
    }
    Err(failed.expect("it was sent at least once"))
}

fn unreadable<E: std::fmt::Display>(entry: &KeyValue) -> impl FnOnce(E) -> FenceError {
    let key = entry.key.clone();
    move |error| FenceError::Unreadable {
        key,
        why: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::cluster::operation::samples::{NOON, after, keys, put};
    use crate::cluster::stored::StoredInstant;
    use crate::storage::MemoryCoordinator;

    fn rule() -> FenceRule {
        let unheard = Unheard {
            window: Duration::from_secs(60),
            ahead_max: Duration::from_secs(5),
        };
        FenceRule {
            share: share(8),
            unheard,
            origin: None,
            formats: Vec::new(),
        }
    }

    fn share(slots: u32) -> SlotShare {
        SlotShare::all(NonZeroU32::new(slots).expect("not zero"))
    }

    fn reserve(store: &MemoryCoordinator, slot: u32, horizon: UnixNanos) {
        put(
            store,
            keys().horizon(slot),
            HorizonRecord::new(horizon, Nonce::new(1), Nonce::new(2), NOON).to_bytes(),
        );
    }

    fn found(store: &MemoryCoordinator, floor: UnixNanos) -> FleetMeta {
        let mut meta = FleetMeta::new(Nonce::new(1), share(4), floor);
        meta.formats.insert(
            "snowflake".to_owned(),
            [("tick".to_owned(), "1ms".to_owned())].into(),
        );
        put(store, keys().meta(), meta.to_bytes());
        meta
    }

    fn stored(store: &MemoryCoordinator) -> FleetMeta {
        let snapshot = store
            .read(&[Range::one(keys().meta())])
            .expect("memory answers");
        FleetMeta::from_bytes(&snapshot.ranges[0][0].value).expect("a fleet")
    }

    fn horizon_of(store: &MemoryCoordinator, slot: u32) -> UnixNanos {
        let snapshot = store
            .read(&[Range::one(keys().horizon(slot))])
            .expect("memory answers");
        HorizonRecord::from_bytes(&snapshot.ranges[0][0].value)
            .expect("a horizon")
            .horizon
    }

    fn known_up_to(horizon: UnixNanos, at: UnixNanos) -> HighWater {
        let mut known = HighWater::default();
        known.meet(Nonce::new(1), NOON, Revision(1), NOON);
        known.acknowledge(3, horizon, Revision(2), at);
        known
    }

    fn fence(store: &MemoryCoordinator, high_waters: &[HighWater]) -> RestoreFence {
        let fenced = fence_restored(
            store,
            &keys(),
            &rule(),
            high_waters,
            NOON,
            &mut Entropy::new(|| 77),
        );
        fenced.expect("memory answers")
    }

    #[test]
    fn it_is_above_every_horizon_every_high_water_and_every_window() {
        let millisecond = Duration::from_millis(1);
        for (horizon, known, former_floor, floor) in [
            (after(10), None, NOON, after(65)),
            (after(100), None, NOON, after(100)),
            (after(10), None, after(200), after(200)),
            (after(10), Some((after(10), NOON)), NOON, after(30 + 65)),
            (
                after(10),
                Some((after(60), after(7))),
                NOON,
                after(7 + 30 + 65),
            ),
            (after(10), Some((after(500), NOON)), NOON, after(500)),
        ] {
            let store = MemoryCoordinator::default();
            let mut expected = found(&store, former_floor);
            reserve(&store, 2, horizon);
            let fenced = fence(
                &store,
                &known
                    .map(|(horizon, at)| known_up_to(horizon, at))
                    .into_iter()
                    .collect::<Vec<_>>(),
            );
            assert_eq!(
                (fenced.former, fenced.fleet),
                (Some(Nonce::new(1)), Nonce::new(77))
            );
            assert_eq!((fenced.horizons, fenced.highest), (1, Some(horizon)));
            assert_eq!(fenced.floor, floor.after(millisecond));
            (expected.fleet, expected.floor) = (fenced.fleet, fenced.floor);
            expected.former = vec![Nonce::new(1)];
            assert_eq!(stored(&store), expected, "slots and formats stay");
        }
    }

    #[test]
    fn what_an_adopted_node_minted_is_above_every_fence_however_far_ahead_it_was() {
        let year = after(365 * 86_400);
        for least in [None, Some(year)] {
            let store = MemoryCoordinator::default();
            let mut meta = found(&store, year);
            meta.least = least.map(StoredInstant);
            put(&store, keys().meta(), meta.to_bytes());
            for _ in 0..2 {
                let floor = fence(&store, &[]).floor;
                assert_eq!(
                    floor >= year,
                    least.is_some(),
                    "the control is the floor of a founder: {floor}"
                );
                assert_eq!(stored(&store).least, meta.least);
            }
        }
    }

    #[test]
    fn a_clock_that_was_far_ahead_is_waited_for_by_its_slot_alone() {
        let year = 365 * 86_400;
        // In the store; in the file of a node alone, which has renewed its slot since; by a fence that went by it.
        for (stored, known, former_floor) in [
            (Some(year), None, NOON),
            (None, Some(year), NOON),
            (Some(year), Some(year), NOON),
            (Some(year), None, after(year)),
        ] {
            let store = MemoryCoordinator::default();
            found(&store, former_floor);
            reserve(&store, 2, after(10));
            if let Some(horizon) = stored {
                reserve(&store, 3, after(horizon));
            }
            let known: Vec<HighWater> = known
                .map(|horizon| known_up_to(after(horizon), after(horizon - 60)))
                .into_iter()
                .collect();
            let fenced = fence(&store, &known);
            assert_eq!(
                fenced.floor,
                after(65).after(Duration::from_millis(1)),
                "nobody else waits"
            );
            let far = if known.is_empty() {
                after(year)
            } else {
                after(year - 60 + 30 + 65)
            };
            assert_eq!(fenced.far, Some((3, far)));
            assert_eq!(horizon_of(&store, 3), far);
            assert_eq!(
                horizon_of(&store, 2),
                after(10),
                "the others are as they were"
            );
            let all_slots = store.read(&keys().all_slots()).expect("memory answers");
            assert!(
                known
                    .iter()
                    .all(|known| known.check_all(&keys(), &all_slots).is_ok()),
                "it joins"
            );
        }
    }

    #[test]
    fn where_several_slots_are_far_ahead_the_clock_of_the_operator_is_doubted() {
        let store = MemoryCoordinator::default();
        let meta = found(&store, NOON);
        let month = 30 * 86_400;
        reserve(&store, 1, after(month));
        reserve(&store, 2, after(month + 1));
        let refused = fence_restored(
            &store,
            &keys(),
            &rule(),
            &[],
            NOON,
            &mut Entropy::new(|| 77),
        );
        let text = refused.expect_err("two of them").to_string();
        assert!(
            text.contains("slot 1 up to") && text.contains("slot 2 up to"),
            "{text}"
        );
        assert_eq!(stored(&store), meta, "nothing is written");
    }

    #[test]
    fn before_anything_else_is_written_the_floor_is_above_what_was_minted_and_the_fleet_the_same() {
        let store = MemoryCoordinator::default();
        assert_eq!(
            origin_of_restored(&store, &keys()).expect("memory answers"),
            None
        );
        let raise = || {
            raise_restored_floor(
                &store,
                &keys(),
                &rule(),
                &[known_up_to(after(500), NOON)],
                NOON,
            )
        };
        assert_eq!(
            raise().expect("memory answers"),
            Revision::ABSENT,
            "no node joins what is wiped"
        );
        let mut expected = found(&store, NOON);
        reserve(&store, 2, after(10));
        let raised = raise().expect("memory answers");
        expected.floor = after(500).after(Duration::from_millis(1));
        assert_eq!(stored(&store), expected);
        let again = raise().expect("memory answers");
        assert!(
            again > raised && store.revision() == again,
            "it is written in any case, so that nodes know of it"
        );
        assert_eq!(stored(&store), expected);
        // Whatever name a fence gives it.
        for _ in 0..2 {
            fence(&store, &[]);
            assert_eq!(
                origin_of_restored(&store, &keys()).expect("memory answers"),
                Some(Nonce::new(1))
            );
        }
    }

    #[test]
    fn a_store_that_was_wiped_is_of_the_fleet_that_it_is_said_to_be() {
        let (store, rule) = (
            MemoryCoordinator::default(),
            FenceRule {
                origin: Some(Nonce::new(9)),
                ..rule()
            },
        );
        fence_restored(&store, &keys(), &rule, &[], NOON, &mut Entropy::new(|| 77))
            .expect("memory answers");
        assert_eq!(stored(&store).origin(), Nonce::new(9));
    }

    #[test]
    fn a_store_that_was_wiped_has_the_formats_that_nodes_mint() {
        let format = |name: &str, is_minted| {
            let description = [("tick".to_owned(), "1s".to_owned())].into();
            KeptFormat {
                name: name.to_owned(),
                description,
                is_minted,
            }
        };
        let rule = FenceRule {
            formats: vec![format("minted", true), format("read", false)],
            ..rule()
        };
        let store = MemoryCoordinator::default();
        fence_restored(&store, &keys(), &rule, &[], NOON, &mut Entropy::new(|| 77))
            .expect("memory answers");
        assert_eq!(
            stored(&store).formats.keys().collect::<Vec<_>>(),
            ["minted"]
        );
        // What is there is not written over.
        let before = found(&store, NOON);
        fence_restored(&store, &keys(), &rule, &[], NOON, &mut Entropy::new(|| 78))
            .expect("memory answers");
        assert_eq!(stored(&store).formats, before.formats);
    }

    #[test]
    fn a_store_that_was_wiped_gets_a_fleet_that_nodes_join() {
        let store = MemoryCoordinator::default();
        let known = known_up_to(after(1), NOON);
        let all_slots =
            |store: &MemoryCoordinator| store.read(&keys().all_slots()).expect("memory answers");
        assert!(known.check_all(&keys(), &all_slots(&store)).is_err());
        let fenced = fence(&store, std::slice::from_ref(&known));
        assert_eq!((fenced.former, fenced.horizons), (None, 0));
        assert_eq!(stored(&store).share(), rule().share);
        assert_eq!(known.check_all(&keys(), &all_slots(&store)), Ok(()));
        // Somebody whom nobody told of it has founded a fleet there first.
        let store = MemoryCoordinator::default();
        found(&store, after(3_600));
        let known = {
            let mut known = HighWater::default();
            known.meet(Nonce::new(9), NOON, Revision(1), NOON);
            known
        };
        assert!(known.check_all(&keys(), &all_slots(&store)).is_err());
        fence(&store, &[]);
        assert_eq!(known.check_all(&keys(), &all_slots(&store)), Ok(()));
    }

    #[test]
    fn what_cannot_be_read_is_not_fenced_over() {
        for key in [keys().meta(), keys().horizon(3)] {
            let store = MemoryCoordinator::default();
            put(&store, key.clone(), b"{\"v\":2}".to_vec());
            let refused = fence_restored(
                &store,
                &keys(),
                &rule(),
                &[],
                NOON,
                &mut Entropy::new(|| 77),
            );
            assert!(
                matches!(&refused, Err(FenceError::Unreadable { key: at, .. }) if *at == key),
                "{refused:?}"
            );
        }
    }
}
