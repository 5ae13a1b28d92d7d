//! The fence after a restore: a coordinator that has forgotten what it acknowledged is used again, above all of it.
//!
//! Nobody knows which slots were used since the backup, and up to where. So all of them begin anew, above every horizon that
//! is known of and above all that a node can have reserved whose horizon is not: a node reserves at most a window ahead of its
//! clock. By a new name of the fleet each node knows that this was done; one that has minted above the new floor all the same,
//! by a clock that was far ahead, does not join, and says so.

use std::time::Duration;

use crate::cluster::fleet_keys::FleetKeys;
use crate::cluster::high_water::{HighWater, WRITE_EVERY};
use crate::cluster::slot_share::SlotShare;
use crate::cluster::stored::{FleetMeta, HorizonRecord, ceil_to_millis};
use crate::cluster::token::{Entropy, Token};
use crate::storage::{
    Compare, Coordinator, CoordinatorError, Entry, Outcome, Range, Revision, Snapshot, Transaction, Write,
};
use crate::time::UnixNanos;

/// How often the same transaction is sent without an answer before the command gives up.
const SENT_MAX: u32 = 10;

/// How nodes of the fleet are configured.
#[derive(Debug, Clone, Copy)]
pub struct FenceRule {
    /// Which slots the fleet has, where nothing says so any more.
    pub share: SlotShare,
    /// How far ahead a node reserves at most.
    pub window: Duration,
    /// How far clocks may differ.
    pub ahead_max: Duration,
    /// Which fleet it was at first, where nothing says so any more.
    pub origin: Option<Token>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreFence {
    /// The name that the fleet had; `None` where there was none any more.
    pub former: Option<Token>,
    /// The name that it has now.
    pub fleet: Token,
    /// From here on ids are minted.
    pub floor: UnixNanos,
    /// The slots whose horizons were found, and the highest of these.
    pub horizons: usize,
    /// The highest horizon that was found.
    pub highest: Option<UnixNanos>,
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
    /// Others write at the same time.
    #[error("what the fleet has agreed on changes again and again; stop the nodes that start, and try again")]
    Contended,
}

/// Which fleet it was at first whose store was restored; `None` where there is none any more.
///
/// # Errors
/// [`FenceError`].
pub fn origin_of_restored(coordinator: &dyn Coordinator, keys: &FleetKeys) -> Result<Option<Token>, FenceError> {
    let snapshot = coordinator.read(&[Range::one(keys.meta())])?;
    let meta = snapshot.ranges.first().and_then(|meta| meta.first());
    let origin = |entry: &Entry| Ok(FleetMeta::from_bytes(&entry.value).map_err(unreadable(entry))?.origin());
    meta.map(origin).transpose()
}

/// Sees to it that no slot is used below what nodes have minted, before anything else is written to a store that was restored.
/// For each write brings its revision nearer to what nodes have seen, and a node without a slot knows of the restore by that
/// alone. Returns the revision of what the fleet has agreed on, [`Revision::ABSENT`] where there is no fleet any more: then
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
        let snapshot = coordinator.read(&keys.survey())?;
        let Found { meta, modified, floor, .. } = Found::of(&snapshot, rule, high_waters, now)?;
        let Some(mut meta) = meta else { return Ok(Revision::ABSENT) };
        if meta.floor >= floor {
            return Ok(modified);
        }
        meta.floor = floor;
        commit(coordinator, &to_write(keys, &meta, modified))?;
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
        let snapshot = coordinator.read(&keys.survey())?;
        let found = Found::of(&snapshot, rule, high_waters, now)?;
        let modified = found.modified;
        let (fence, meta) = plan(found, rule, entropy.token());
        if commit(coordinator, &to_write(keys, &meta, modified))? {
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
    /// Above all that nodes can have minted; whole milliseconds.
    floor: UnixNanos,
}

impl Found {
    fn of(
        snapshot: &Snapshot,
        rule: &FenceRule,
        high_waters: &[HighWater],
        now: UnixNanos,
    ) -> Result<Found, FenceError> {
        let [meta, horizons, _] = snapshot.ranges.as_slice() else { panic!("a survey has three ranges") };
        let (meta, modified) = match meta.first() {
            None => (None, Revision::ABSENT),
            Some(entry) => (Some(FleetMeta::from_bytes(&entry.value).map_err(unreadable(entry))?), entry.modified),
        };
        let horizon_of = |entry: &Entry| {
            HorizonRecord::from_bytes(&entry.value).map(|record| record.horizon).map_err(unreadable(entry))
        };
        let horizons = horizons.iter().map(horizon_of).collect::<Result<Vec<UnixNanos>, FenceError>>()?;
        let reserved_unheard = now.after(rule.window).after(rule.ahead_max);
        // A file may be so much older than the end of its node, which has renewed its slot since.
        let since_written = |at: UnixNanos| at.after(WRITE_EVERY).after(rule.window).after(rule.ahead_max);
        let reserved_since = high_waters.iter().filter_map(HighWater::at).map(since_written).max();
        let known = high_waters.iter().filter_map(HighWater::highest).max().max(reserved_since);
        let all = horizons.iter().copied().chain(known).fold(reserved_unheard, UnixNanos::max);
        Ok(Found { meta, modified, horizons, floor: above(all) })
    }
}

/// The fence, and what all nodes have to agree on then.
fn plan(found: Found, rule: &FenceRule, fleet: Token) -> (RestoreFence, FleetMeta) {
    let Found { meta, horizons, floor, .. } = found;
    let former = meta.as_ref().map(|meta| meta.fleet);
    // Above and not at: a floor that is no higher than what a node knows is none that was made for it.
    let floor = meta.as_ref().map_or(floor, |meta| floor.max(above(meta.floor)));
    let mut meta = meta.unwrap_or_else(|| FleetMeta::new(fleet, rule.share, floor));
    meta.former.extend(former.or(rule.origin));
    (meta.fleet, meta.floor) = (fleet, floor);
    let highest = horizons.iter().copied().max();
    (RestoreFence { former, fleet, floor, horizons: horizons.len(), highest }, meta)
}

fn above(instant: UnixNanos) -> UnixNanos {
    ceil_to_millis(instant.after(Duration::from_millis(1)))
}

fn to_write(keys: &FleetKeys, meta: &FleetMeta, modified: Revision) -> Transaction {
    Transaction {
        compare: vec![Compare::Modified(keys.meta(), modified)],
        write: vec![Write::Put { key: keys.meta(), value: meta.to_bytes(), lease: None }],
        then_read: Vec::new(),
        otherwise: vec![Range::one(keys.meta())],
    }
}

/// Whether this was written; `false`: something else was, meanwhile.
fn commit(coordinator: &dyn Coordinator, transaction: &Transaction) -> Result<bool, CoordinatorError> {
    let mut failed = None;
    for _ in 0..SENT_MAX {
        match coordinator.commit(transaction) {
            Ok(Outcome::Committed(_)) => return Ok(true),
            Ok(Outcome::Refused(snapshot)) => {
                let there = snapshot.ranges.first().and_then(|meta| meta.first());
                let is_it = |write: &Write| matches!(write, Write::Put { value, .. } if there.is_some_and(|there| there.value == *value));
                return Ok(transaction.write.iter().all(is_it));
            }
            // The same bytes again: of all copies one can be done.
            Err(error @ (CoordinatorError::NoAnswer(_) | CoordinatorError::NotSent(_))) => failed = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(failed.expect("it was sent at least once"))
}

fn unreadable<E: std::fmt::Display>(entry: &Entry) -> impl FnOnce(E) -> FenceError {
    let key = entry.key.clone();
    move |error| FenceError::Unreadable { key, why: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::cluster::operation::samples::{NOON, after, keys, put};
    use crate::storage::MemoryCoordinator;

    fn rule() -> FenceRule {
        let (window, ahead_max) = (Duration::from_secs(60), Duration::from_secs(5));
        FenceRule { share: share(8), window, ahead_max, origin: None }
    }

    fn share(slots: u32) -> SlotShare {
        SlotShare::all(NonZeroU32::new(slots).expect("not zero"))
    }

    fn reserve(store: &MemoryCoordinator, slot: u32, horizon: UnixNanos) {
        put(store, keys().horizon(slot), HorizonRecord::new(horizon, Token::new(1), Token::new(2), NOON).to_bytes());
    }

    fn found(store: &MemoryCoordinator, floor: UnixNanos) -> FleetMeta {
        let mut meta = FleetMeta::new(Token::new(1), share(4), floor);
        meta.formats.insert("snowflake".to_owned(), [("tick".to_owned(), "1ms".to_owned())].into());
        put(store, keys().meta(), meta.to_bytes());
        meta
    }

    fn stored(store: &MemoryCoordinator) -> FleetMeta {
        let snapshot = store.read(&[Range::one(keys().meta())]).expect("memory answers");
        FleetMeta::from_bytes(&snapshot.ranges[0][0].value).expect("a fleet")
    }

    fn known_up_to(horizon: UnixNanos, at: UnixNanos) -> HighWater {
        let mut known = HighWater::default();
        known.meet(Token::new(1), NOON, Revision(1), NOON);
        known.acknowledge(3, horizon, Revision(2), at);
        known
    }

    fn fence(store: &MemoryCoordinator, high_waters: &[HighWater]) -> RestoreFence {
        let fenced = fence_restored(store, &keys(), &rule(), high_waters, NOON, &mut Entropy::new(|| 77));
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
            (after(10), Some((after(60), after(7))), NOON, after(7 + 30 + 65)),
            (after(10), Some((after(500), NOON)), NOON, after(500)),
        ] {
            let store = MemoryCoordinator::default();
            let mut expected = found(&store, former_floor);
            reserve(&store, 2, horizon);
            let fenced =
                fence(&store, &known.map(|(horizon, at)| known_up_to(horizon, at)).into_iter().collect::<Vec<_>>());
            assert_eq!((fenced.former, fenced.fleet), (Some(Token::new(1)), Token::new(77)));
            assert_eq!((fenced.horizons, fenced.highest), (1, Some(horizon)));
            assert_eq!(fenced.floor, floor.after(millisecond));
            (expected.fleet, expected.floor) = (fenced.fleet, fenced.floor);
            expected.former = vec![Token::new(1)];
            assert_eq!(stored(&store), expected, "slots and formats stay");
        }
    }

    #[test]
    fn before_anything_else_is_written_the_floor_is_above_what_was_minted_and_the_fleet_the_same() {
        let store = MemoryCoordinator::default();
        assert_eq!(origin_of_restored(&store, &keys()).expect("memory answers"), None);
        let raise = || raise_restored_floor(&store, &keys(), &rule(), &[known_up_to(after(500), NOON)], NOON);
        assert_eq!(raise().expect("memory answers"), Revision::ABSENT, "no node joins what is wiped");
        let mut expected = found(&store, NOON);
        reserve(&store, 2, after(10));
        let raised = raise().expect("memory answers");
        expected.floor = after(500).after(Duration::from_millis(1));
        assert_eq!(stored(&store), expected);
        assert_eq!((raise().expect("memory answers"), store.revision()), (raised, raised), "once");
        // Whatever name a fence gives it.
        for _ in 0..2 {
            fence(&store, &[]);
            assert_eq!(origin_of_restored(&store, &keys()).expect("memory answers"), Some(Token::new(1)));
        }
    }

    #[test]
    fn a_store_that_was_wiped_is_of_the_fleet_that_it_is_said_to_be() {
        let (store, rule) = (MemoryCoordinator::default(), FenceRule { origin: Some(Token::new(9)), ..rule() });
        fence_restored(&store, &keys(), &rule, &[], NOON, &mut Entropy::new(|| 77)).expect("memory answers");
        assert_eq!(stored(&store).origin(), Token::new(9));
    }

    #[test]
    fn a_store_that_was_wiped_gets_a_fleet_that_nodes_join() {
        let store = MemoryCoordinator::default();
        let known = known_up_to(after(1), NOON);
        let survey = |store: &MemoryCoordinator| store.read(&keys().survey()).expect("memory answers");
        assert!(known.check_all(&keys(), &survey(&store)).is_err());
        let fenced = fence(&store, std::slice::from_ref(&known));
        assert_eq!((fenced.former, fenced.horizons), (None, 0));
        assert_eq!(stored(&store).share(), rule().share);
        assert_eq!(known.check_all(&keys(), &survey(&store)), Ok(()));
    }

    #[test]
    fn what_cannot_be_read_is_not_fenced_over() {
        for key in [keys().meta(), keys().horizon(3)] {
            let store = MemoryCoordinator::default();
            put(&store, key.clone(), b"{\"v\":2}".to_vec());
            let refused = fence_restored(&store, &keys(), &rule(), &[], NOON, &mut Entropy::new(|| 77));
            assert!(matches!(&refused, Err(FenceError::Unreadable { key: at, .. }) if *at == key), "{refused:?}");
        }
    }
}
