//! The fence: the command that an operator runs after the coordinator was restored from a backup.
//! After the fence, the fleet mints only above all earlier ids.
//!
//! A restore loses all writes since the backup. So it is unknown which slots were used since then,
//! and up to which time. All slots therefore begin anew above two bounds. The first bound is the
//! highest known horizon. The second bound is the latest time that a node with an unknown horizon
//! can have reserved. It follows from the configuration, because a node reserves at most one window
//! of time ahead of its clock.
//!
//! ```text
//! operator's clock        floor of all slots                                        horizon of slot 3 alone
//!        |--- window, ahead_max ---|                                                        |
//!        |   horizons of slots   x |                                                      x |    a clock 400 days ahead
//! ```
//!
//! A horizon far above those bounds comes from a wrong clock. Only a slot with such a horizon has
//! to wait until the horizon has passed.
//!
//! The fence gives the fleet a new name, by which nodes notice the fence. A node that has minted
//! above the new floor does not join the fleet if the stored horizon of its slot is too low. It
//! reports an error instead.
//!
//! If the operator's clock is behind, the floor is too low. So the fence compares that clock with
//! every clock reading in the store, in the journals and in the nodes' high waters.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use crate::agreement::compare_share;
use crate::fleet_keys::FleetKeys;
use crate::high_water::{HighWater, WRITE_EVERY};
use crate::nonce::{Entropy, Nonce};
use crate::records::hold_numbers;
use crate::slot_lease::UnseenNodes;
use crate::stored::{FleetMeta, HOLD_ROW, HorizonRecord, SlotRecord, ValueError, ceil_to_millis};
use crate::{
    Compare, Coordinator, CoordinatorError, JournalledFleet, KeyValue, Outcome, Range, Revision,
    Snapshot, Transaction, Write,
};
use idmint_core::time::UnixNanos;
use idmint_storage::{FailureKind, FormatsError, KeptFormat, SlotShare};

/// The maximum number of attempts. It limits how often a transaction without a response is sent
/// again, and how often the fence is planned again because another process wrote first.
const SENT_MAX: u32 = 10;

/// The maximum number of rows that one transaction of the fence writes. etcd accepts 128.
const WRITES_MAX: usize = 100;

/// A horizon comes from a wrong clock if it is at least this far above the latest time that a
/// correct clock can explain.
pub(super) const FAR: Duration = Duration::from_hours(1);

/// The configuration that a fence needs.
#[derive(Debug, Clone)]
pub struct FenceRule {
    /// The slots of the fleet.
    pub share: SlotShare,
    /// The limits on how far ahead of this machine's clock a node can have reserved time, if the
    /// store has lost the reservation.
    pub unseen: UnseenNodes,
    /// The facts about the fleet from the given journals.
    pub journals: JournalledFleet,
    /// The configured formats. If the store no longer has the fleet, its new agreement contains
    /// those that nodes mint.
    pub formats: Vec<KeptFormat>,
    /// `true` if the store may have lost issued numbers. All series then stop until an operator
    /// resumes them. `false` ends an earlier stop, unless this fence finds that records are missing
    /// ([`RestoreFence::lacks_records`]).
    pub holds_numbers: bool,
    /// `true` if the operator has confirmed that this machine's clock is right. The command then
    /// runs even if the store or a node's file has a later clock reading.
    pub is_clock_trusted: bool,
}

/// The result of a fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreFence {
    /// The fleet's name before the fence, or `None` if the store no longer had a fleet.
    pub former: Option<Nonce>,
    /// The new name of the fleet.
    pub fleet: Nonce,
    /// The new floor. Ids are minted from this instant on.
    pub floor: UnixNanos,
    /// The number of slots with a stored horizon.
    pub horizons: usize,
    /// The highest stored horizon of any slot, or `None` if no slot has one.
    pub highest: Option<UnixNanos>,
    /// The slots whose horizons are far ahead because of wrong clocks, each with the instant from
    /// which the slot can be used again.
    pub far: Vec<(u32, UnixNanos)>,
    /// `true` if records are missing. Nodes then neither read nor write records until the next
    /// fence.
    pub lacks_records: bool,
    /// The ids of the adoptions that the store has lost, as in the adoption notes of the folders.
    pub lost_adoptions: BTreeSet<String>,
    /// `true` if the fleet has only some records of an adopted data folder. Nodes then read and
    /// write no records until the adoption is complete.
    pub is_adopting: bool,
    /// `true` if the previous fence found that records are missing, and this fence gives them up. A
    /// fence without journals gives them up.
    pub gives_up: bool,
}

/// The reason why a fence failed. If the store did not respond, the fleet may have been fenced
/// nevertheless.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// The coordinator cannot be read or written.
    #[error(transparent)]
    Coordinator(#[from] CoordinatorError),
    /// A stored value is damaged, or a later version of this program has written it.
    #[error("{key} cannot be read: {why}")]
    Unreadable {
        /// Says whether the value is damaged or of a later version.
        kind: FailureKind,
        /// The key of the value.
        key: String,
        /// The reason why the value cannot be read.
        why: String,
    },
    /// The horizons of several slots are far ahead of this machine's clock, so this machine's clock
    /// is probably wrong.
    #[error(
        "slots were used far ahead of this machine's clock, which shows {now}:{}; correct this clock, and try again. \
         If this clock is right, several nodes had wrong clocks: add --trust-this-clock. Each of these slots then stays \
         unused until its time",
        list(slots)
    )]
    FarAhead {
        /// This machine's clock reading.
        now: UnixNanos,
        /// The slots, each with its horizon.
        slots: BTreeMap<u32, UnixNanos>,
    },
    /// This machine's clock is behind a clock reading in the store, in a journal or in a high-water
    /// file.
    #[error(
        "the clock of this machine shows {now}, and {source_of} shows {newest}: set the clock right, and try again. If it is \
         right, and the other one was wrong, add --trust-this-clock"
    )]
    ClockBehind {
        /// This machine's clock reading.
        now: UnixNanos,
        /// The latest other reading.
        newest: UnixNanos,
        /// A description of the value that contains the latest reading.
        source_of: String,
    },
    /// The configured slots differ from the slots of the fleet.
    #[error("this is not the configuration of the fleet: {0}")]
    OtherSlots(FormatsError),
    /// Some nodes with slots run a version that does not know the stop of all series. They would
    /// ignore the stop, and would issue numbers a second time.
    #[error(
        "numbers may be missing after this fence, and these nodes run an earlier version, which would give numbers \
         nevertheless (it ignores the row number-hold): {}. Stop these nodes, or start this version there, and try \
         again when their slots are free, after 60 s at the latest. Or fence with the journals of all \
         nodes", .nodes.join(", ")
    )]
    OlderNodes {
        /// The names and addresses of the nodes.
        nodes: Vec<String>,
    },
    /// Each attempt to write the new settings failed, because another process changed them first.
    #[error(
        "the fleet was not fenced, because other processes keep changing its settings in etcd; stop the nodes that are \
         starting, and try again"
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

/// Returns all names that the fleet in a restored store has had, the oldest first. Returns an empty
/// list if the store no longer has a fleet.
///
/// # Errors
/// Returns [`FenceError`] if the store cannot be read.
pub fn names_of_restored(
    coordinator: &dyn Coordinator,
    keys: &FleetKeys,
) -> Result<Vec<Nonce>, FenceError> {
    let snapshot = coordinator.read(&[Range::one(keys.meta())])?;
    let Some(entry) = snapshot.ranges.first().and_then(|meta| meta.first()) else {
        return Ok(Vec::new());
    };
    let meta = FleetMeta::from_bytes(&entry.value).map_err(unreadable(entry))?;
    Ok([meta.former, vec![meta.fleet]].concat())
}

/// Raises the floor in a restored store above all minted ids. Call this function before anything
/// else is written to the store.
///
/// A node without a slot detects the restore only by the store's revision, which is lower than one
/// that the node has seen. Each later write raises the revision, until the node can no longer
/// detect the restore. So this function always writes `meta`, even if the floor is already high
/// enough. The new revision of `meta` distinguishes the restored store from one that has lost no
/// data.
///
/// Returns the new revision of `meta`, or [`Revision::ABSENT`] if the store no longer has a fleet.
/// In that case nodes detect the loss because the fleet is missing.
///
/// # Errors
/// Returns [`FenceError`] if the floor cannot be raised.
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
        meta.end_comparison();
        if let Some(written) = commit(coordinator, &to_write(keys, &meta, modified))? {
            return Ok(written);
        }
    }
    Err(FenceError::Contended)
}

/// Fences the fleet after a restore. From then on, its nodes mint only ids that are later than all
/// ids that they minted before.
///
/// `high_waters` should come from as many nodes as possible, and date from before the coordinator
/// lost data. It does no harm to fence twice.
///
/// # Errors
/// Returns [`FenceError`] if the fleet cannot be fenced.
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
        let (fence, mut meta) = plan(found, rule, entropy.nonce());
        let holds_numbers = rule.holds_numbers || fence.lacks_records;
        if holds_numbers {
            check_known_rows(coordinator, keys)?;
        }
        meta.may_hold_numbers = holds_numbers;
        let mut transaction = to_write(keys, &meta, modified);
        transaction
            .write
            .push(hold_numbers(keys.number_hold(), fence.floor, holds_numbers));
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
        // One transaction may not have room for all far horizons. Raise the others first. This is
        // safe even if the fence then fails, because a horizon may be raised at any time.
        let kept = transaction.write.len().min(WRITES_MAX);
        let compare = transaction.compare.split_off(kept - 1);
        let write = transaction.write.split_off(kept);
        let mut is_current = true;
        for (compare, write) in compare.chunks(WRITES_MAX).zip(write.chunks(WRITES_MAX)) {
            let horizons = Transaction {
                compare: compare.to_vec(),
                write: write.to_vec(),
                otherwise: vec![Range::one(compare[0].key().clone())],
                ..Transaction::default()
            };
            is_current = is_current && commit(coordinator, &horizons)?.is_some();
        }
        if is_current && commit(coordinator, &transaction)?.is_some() {
            return Ok(fence);
        }
    }
    Err(FenceError::Contended)
}

/// The fleet's state according to the restored store and the nodes' high-water files.
struct Found {
    meta: Option<FleetMeta>,
    /// The store revision of `meta`.
    modified: Revision,
    /// The stored horizons of all slots.
    horizons: Vec<UnixNanos>,
    /// The lowest floor that this fence may set, in whole milliseconds. It is above all ids that
    /// nodes can have minted, except in the slots in `far`.
    floor: UnixNanos,
    /// Only a wrong clock can explain a horizon or a floor at or above this instant.
    far_from: UnixNanos,
    /// The slots with a horizon at or above `far_from`. There is at most one, unless the operator
    /// has confirmed that this machine's clock is right.
    far: BTreeMap<u32, Far>,
    /// The names of the fleet in the nodes' high-water files.
    known_as: Vec<Nonce>,
    /// The highest number of fences in the store, a journal or a high-water file.
    fences: u32,
    /// `true` if records are missing from the store, and the operator does not give them up. Either
    /// a high-water file shows that an adoption was lost, or a journal lacks earlier records.
    lacks_records: bool,
    /// The ids of the adoptions that the store has lost, unless the operator gives them up.
    lost_adoptions: BTreeSet<String>,
    /// `true` if the operator gives up records that the former `fence-restore` found missing.
    gives_up: bool,
}

/// The horizon of a slot that a node with a clock far ahead has used.
#[derive(Debug, Clone, Copy)]
struct Far {
    horizon: UnixNanos,
    /// The revision of the slot's stored horizon. The stored horizon may be lower than `horizon`,
    /// which may come from a high-water file.
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
        let [meta, horizons, ..] = snapshot.ranges.as_slice() else {
            panic!("all slots are three ranges")
        };
        let (meta, modified) = match meta.first() {
            None => (None, Revision::ABSENT),
            Some(entry) => (
                Some(FleetMeta::from_bytes(&entry.value).map_err(unreadable(entry))?),
                entry.modified,
            ),
        };
        if let Some(meta) = &meta {
            compare_share(rule.share, meta).map_err(FenceError::OtherSlots)?;
        }
        let mut stored: BTreeMap<u32, Far> = BTreeMap::new();
        let mut readings: Vec<(UnixNanos, String)> = Vec::new();
        for entry in horizons {
            let record = HorizonRecord::from_bytes(&entry.value).map_err(unreadable(entry))?;
            let slot = keys
                .slot_of_horizon(&entry.key)
                .ok_or_else(|| FenceError::Unreadable {
                    kind: FailureKind::Damaged,
                    key: entry.key.clone(),
                    why: "the key does not end in a slot number".to_owned(),
                })?;
            readings.push((record.clock, format!("the last renewal of slot {slot}")));
            stored.insert(
                slot,
                Far {
                    horizon: record.horizon,
                    revision: entry.modified,
                },
            );
        }
        let horizons: Vec<UnixNanos> = stored.values().map(|stored| stored.horizon).collect();
        let bound = rule.unseen.bound(now);
        let far_from = bound.after(WRITE_EVERY).after(FAR);
        let used = stored
            .iter()
            .map(|(slot, stored)| (*slot, stored.horizon))
            .chain(high_waters.iter().flat_map(|high_water| {
                let since = renewed_since_written(high_water, rule);
                high_water.slots().map(move |(slot, horizon)| match since {
                    // The node may have renewed its slot after it last wrote its high-water file,
                    // so this horizon may be too low. Raise it if it is far ahead. Other horizons
                    // need no correction, because the floor covers such renewals.
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
        if far.len() > 1 && !rule.is_clock_trusted {
            let slots = far.iter().map(|(slot, far)| (*slot, far.horizon)).collect();
            return Err(FenceError::FarAhead { now, slots });
        }
        let of_files = high_waters.iter().filter_map(HighWater::at);
        readings.extend(of_files.map(|at| (at, "a high-water file".to_owned())));
        let newest = rule.journals.newest;
        readings.extend(newest.map(|newest| (newest, "a record in a journal".to_owned())));
        let of_fence = meta.as_ref().and_then(|meta| fenced_at(meta, rule));
        readings.extend(of_fence.map(|at| (at, "the floor of the fleet".to_owned())));
        if let Some((newest, source_of)) = readings.iter().max()
            && *newest > now.after(rule.unseen.ahead_max)
            && !rule.is_clock_trusted
        {
            return Err(FenceError::ClockBehind {
                now,
                newest: *newest,
                source_of: source_of.clone(),
            });
        }
        let since = high_waters
            .iter()
            .filter_map(|high_water| renewed_since_written(high_water, rule))
            .chain(readings.iter().map(|(at, _)| rule.unseen.bound(*at)));
        let floors = high_waters.iter().filter_map(HighWater::floor);
        let floor = since
            .chain(floors)
            .filter(|instant| *instant < far_from)
            .fold(floor, UnixNanos::max);
        let known_as = high_waters
            .iter()
            .flat_map(|known| [known.origin(), known.fleet()])
            .flatten();
        let known_as = rule
            .journals
            .names
            .iter()
            .copied()
            .chain(known_as)
            .collect();
        let fences = high_waters
            .iter()
            .map(HighWater::fences)
            .chain(meta.as_ref().map(|meta| meta.fences))
            .fold(rule.journals.fences, u32::max);
        let least = meta.as_ref().and_then(|meta| meta.least);
        let mut lost_adoptions: BTreeSet<String> = high_waters
            .iter()
            .flat_map(HighWater::adoptions)
            .cloned()
            .collect();
        if let Some(meta) = &meta {
            lost_adoptions = &(&lost_adoptions | &meta.lost_adoptions) - &meta.adoptions;
        }
        // Files of earlier versions of this program contain no ids of adoptions.
        let has_lost_adoption =
            !lost_adoptions.is_empty() || high_waters.iter().any(|known| known.least() > least);
        // If the last `fence-restore` found that records are missing, an operator accepts their
        // loss by running the command again without journals.
        let gives_up = rule.journals == JournalledFleet::default()
            && meta.as_ref().is_some_and(|meta| meta.lacks_records);
        // Give up only the adoptions that the last `fence-restore` has reported.
        if let Some(meta) = meta.as_ref().filter(|_| gives_up) {
            lost_adoptions = &lost_adoptions - &meta.lost_adoptions;
        }
        let has_loss = has_lost_adoption || rule.journals.has_gap;
        Ok(Found {
            lacks_records: !lost_adoptions.is_empty() || (has_loss && !gives_up),
            gives_up,
            lost_adoptions,
            fences,
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

/// Returns the latest time that a node may have reserved, judging by its high-water file. The node
/// may have run on for [`WRITE_EVERY`] after it last wrote the file. Returns `None` if the file has
/// no values.
fn renewed_since_written(high_water: &HighWater, rule: &FenceRule) -> Option<UnixNanos> {
    high_water
        .at()
        .map(|at| rule.unseen.bound(at.after(WRITE_EVERY)))
}

/// Returns the earliest clock reading that can explain the fleet's floor. It is the floor minus the
/// greatest margin that a fence or a founder adds. Returns `None` if the floor may come from an
/// adopted data folder.
fn fenced_at(meta: &FleetMeta, rule: &FenceRule) -> Option<UnixNanos> {
    let UnseenNodes { window, ahead_max } = rule.unseen;
    let is_of_clock = meta.least.is_none_or(|least| least.0 < meta.floor);
    is_of_clock.then(|| meta.floor.before(window + ahead_max + WRITE_EVERY))
}

/// Returns the result of the fence, and the fleet's new agreement.
fn plan(found: Found, rule: &FenceRule, fleet: Nonce) -> (RestoreFence, FleetMeta) {
    let Found {
        meta,
        horizons,
        floor,
        far_from,
        far,
        known_as,
        fences,
        lacks_records,
        lost_adoptions,
        gives_up,
        ..
    } = found;
    let former = meta.as_ref().map(|meta| meta.fleet);
    // The new floor must be strictly above the former one, so that nodes recognize a later fence. A
    // former floor that was set with a wrong clock does not count.
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
    let origin = known_as.first().copied().unwrap_or(fleet);
    let mut meta = meta.unwrap_or_else(|| founded_by(rule, origin, floor));
    meta.fence(fleet, floor, &known_as);
    meta.fences = fences.saturating_add(1);
    meta.lacks_records = lacks_records;
    meta.lost_adoptions.clone_from(&lost_adoptions);
    meta.end_comparison();
    let is_adopting = meta.adopting.is_some();
    let highest = horizons.iter().copied().max();
    let far = far.into_iter().map(|(slot, far)| (slot, far.horizon));
    (
        RestoreFence {
            former,
            fleet,
            floor,
            horizons: horizons.len(),
            highest,
            far: far.collect(),
            lacks_records,
            lost_adoptions,
            is_adopting,
            gives_up,
        },
        meta,
    )
}

/// Returns a new agreement for a fleet whose store was wiped. It contains the configured formats
/// that nodes mint.
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

/// Commits a transaction that writes `meta` or horizons of slots. Returns the revision of the
/// write, or `None` if another write came first.
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
            // Send the same bytes again. At most one copy can commit, because each copy compares
            // the same revisions.
            Err(error @ (CoordinatorError::NoAnswer(_) | CoordinatorError::NotSent(_))) => {
                failed = Some(error)
            }
            Err(error) => return Err(error),
        }
    }
    Err(failed.expect("it was sent at least once"))
}

/// Checks that every node with a slot runs a version that knows the row which stops all series.
/// Nodes without a slot need no check. If their version does not know the row, they refuse the new
/// agreement as well.
fn check_known_rows(coordinator: &dyn Coordinator, keys: &FleetKeys) -> Result<(), FenceError> {
    let ranges = [
        Range::prefix(keys.slots()),
        Range::prefix(keys.all_known_rows()),
    ];
    let snapshot = coordinator.read(&ranges)?;
    let [holders, announced] = snapshot.ranges.as_slice() else {
        panic!("two ranges were asked for")
    };
    let mut nodes = Vec::new();
    for entry in holders {
        let holder = SlotRecord::from_bytes(&entry.value).map_err(unreadable(entry))?;
        let prefix = keys.known_rows_of(holder.instance);
        let knows = |known: &KeyValue| {
            let mut rows = known.value.split(|byte| *byte == b' ');
            known.key.starts_with(&prefix) && rows.any(|row| row == HOLD_ROW.as_bytes())
        };
        if !announced.iter().any(knows) {
            nodes.push(format!("{} at {}", holder.node, holder.addr));
        }
    }
    match nodes.is_empty() {
        true => Ok(()),
        false => Err(FenceError::OlderNodes { nodes }),
    }
}

fn unreadable(entry: &KeyValue) -> impl FnOnce(ValueError) -> FenceError {
    let key = entry.key.clone();
    move |error| FenceError::Unreadable {
        kind: error.failure_kind(),
        key,
        why: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::high_water::Regression;
    use crate::operation::samples::{NOON, after, keys, put};
    use crate::records::SharedRecords;
    use crate::stored::{StoredInstant, value};
    use crate::{FleetEra, MemoryCoordinator};
    use idmint_storage::SlotRange;

    fn rule() -> FenceRule {
        let unseen = UnseenNodes {
            window: Duration::from_secs(60),
            ahead_max: Duration::from_secs(5),
        };
        FenceRule {
            share: share(4),
            unseen,
            journals: JournalledFleet::default(),
            formats: Vec::new(),
            holds_numbers: false,
            is_clock_trusted: true,
        }
    }

    /// Fences the fleet by this rule, without high-water files.
    fn fence_by(store: &MemoryCoordinator, rule: &FenceRule) -> Result<RestoreFence, FenceError> {
        let mut entropy = Entropy::new(|| 77);
        fence_restored(store, &keys(), rule, &[], NOON, &mut entropy)
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
        known.meet(
            Nonce::new(1),
            FleetEra::first(Nonce::new(1), NOON),
            Revision(1),
            NOON,
        );
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
    fn numbers_are_held_only_if_every_node_with_a_slot_can_read_the_hold() {
        let store = MemoryCoordinator::default();
        found(&store, NOON);
        for (slot, instance) in [(0, 5), (1, 6)] {
            let node = format!("node-{slot}");
            let holder = SlotRecord::new(Nonce::new(instance), &node, "127.0.0.1:1", NOON);
            put(&store, keys().slot(slot), holder.to_bytes());
        }
        let announce = |instance, rows: &str| {
            let key = keys().known_rows(Nonce::new(instance), crate::Lease(3));
            put(&store, key, rows.into());
        };
        announce(5, "another-row number-hold");
        let before = stored(&store);
        let rule = FenceRule {
            holds_numbers: true,
            ..rule()
        };
        for rows in ["", "another-row"] {
            announce(6, rows);
            let refused = fence_by(&store, &rule).expect_err("node-1 would ignore the hold");
            assert!(
                matches!(&refused, FenceError::OlderNodes { nodes } if *nodes == ["node-1 at 127.0.0.1:1"]),
                "{refused}"
            );
            assert!(refused.to_string().contains("number-hold"), "{refused}");
            assert_eq!(stored(&store), before, "nothing was written");
        }
        fence(&store, &[]);
        let held = || {
            let ranges = [keys().meta(), keys().number_hold()].map(Range::one);
            let found = store.read(&ranges).expect("memory answers").ranges;
            let is_readable_before = value::read::<FleetMeta>(&found[0][0].value).is_ok();
            (found[1].len(), is_readable_before)
        };
        assert_eq!(held(), (0, true), "a fence without a hold needs no check");
        announce(6, "number-hold");
        fence_by(&store, &rule).expect("every node can read the hold");
        assert_eq!(held(), (1, false), "earlier versions refuse the fleet");
        fence(&store, &[]);
        assert_eq!(held(), (0, true), "they may come back");
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
            expected.fences = 1;
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

    /// Adds a clock reading to one of the sources that a fence checks: the store, the journals
    /// (first result), or a node's high-water file (second result).
    type Shown = fn(&MemoryCoordinator, UnixNanos) -> (Option<UnixNanos>, Option<HighWater>);

    #[test]
    fn a_clock_that_is_behind_anything_given_is_refused_unless_it_is_trusted() {
        let sources: [Shown; 4] = [
            |store, later| {
                let record = HorizonRecord::new(NOON, Nonce::new(1), Nonce::new(2), later);
                put(store, keys().horizon(2), record.to_bytes());
                (None, None)
            },
            |_, later| (Some(later), None),
            |_, later| (None, Some(known_up_to(NOON, later))),
            |store, later| {
                found(store, later.after(Duration::from_secs(65 + 30)));
                (None, None)
            },
        ];
        let far = Duration::from_hours(24 * 400);
        for (ahead, source) in [Duration::from_secs(100), far]
            .into_iter()
            .flat_map(|ahead| sources.map(|source| (ahead, source)))
        {
            let later = NOON.after(ahead);
            for (now, is_clock_trusted) in [(NOON, false), (NOON, true), (later, false)] {
                let store = MemoryCoordinator::default();
                found(&store, NOON);
                let (newest, known) = source(&store, later);
                let rule = FenceRule {
                    journals: JournalledFleet {
                        newest,
                        ..JournalledFleet::default()
                    },
                    is_clock_trusted,
                    ..rule()
                };
                let (known, mut entropy) = (Vec::from_iter(known), Entropy::new(|| 77));
                let fenced = fence_restored(&store, &keys(), &rule, &known, now, &mut entropy);
                match fenced {
                    Ok(fence) => {
                        assert!(is_clock_trusted || now == later, "{fence:?}");
                        assert!(fence.floor > later || ahead == far, "{fence:?}");
                    }
                    Err(FenceError::ClockBehind { newest, .. }) => {
                        assert_eq!((newest, now, is_clock_trusted), (later, NOON, false));
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }

    #[test]
    fn a_fence_with_the_configuration_of_another_region_is_refused() {
        let range = SlotRange::parse("0-1").expect("a range");
        let part = SlotShare::part(share(4).slots(), range).expect("within");
        for (configured, refusal) in [
            (share(4), None),
            (share(8), Some("worker.slots = 4")),
            (part, Some("cluster.slots = \"0-3\"")),
        ] {
            let store = MemoryCoordinator::default();
            let meta = found(&store, NOON);
            let rule = FenceRule {
                share: configured,
                ..rule()
            };
            let mut entropy = Entropy::new(|| 77);
            let fenced = fence_restored(&store, &keys(), &rule, &[], NOON, &mut entropy);
            let error = fenced.err().map(|error| error.to_string());
            assert_eq!(error.is_some(), refusal.is_some(), "{error:?}");
            assert!(
                error
                    .unwrap_or_default()
                    .contains(refusal.unwrap_or_default())
            );
            assert_eq!(stored(&store) == meta, refusal.is_some());
        }
    }

    #[test]
    fn records_are_refused_while_an_adoption_or_what_stands_before_a_record_is_missing() {
        let adopted = StoredInstant(after(20));
        for (of_meta, of_file, has_gap, lacks_records) in [
            (None, Some(adopted), false, true),
            (Some(adopted), Some(adopted), true, true),
            (Some(adopted), Some(adopted), false, false),
            (None, None, false, false),
        ] {
            let store = MemoryCoordinator::default();
            let mut meta = found(&store, NOON);
            meta.least = of_meta;
            put(&store, keys().meta(), meta.to_bytes());
            let mut known = known_up_to(NOON, NOON);
            known.adopted(of_file, &BTreeSet::new(), SharedRecords::Complete);
            let of_journals = FenceRule {
                journals: JournalledFleet {
                    has_gap,
                    ..JournalledFleet::default()
                },
                ..rule()
            };
            let known = [known];
            let fence = |rule: &FenceRule| {
                let mut entropy = Entropy::new(|| 77);
                fence_restored(&store, &keys(), rule, &known, NOON, &mut entropy)
                    .expect("memory answers")
                    .lacks_records
            };
            assert_eq!(fence(&of_journals), lacks_records);
            assert_eq!(stored(&store).lacks_records, lacks_records);
            assert!(
                !lacks_records || !fence(&rule()),
                "the records are given up"
            );
        }
    }

    #[test]
    fn an_adoption_stays_missing_in_further_fences_with_journals_until_it_is_repeated_or_given_up()
    {
        let adopted = Some(StoredInstant(after(20)));
        let with_journals = FenceRule {
            journals: JournalledFleet {
                names: vec![Nonce::new(1)],
                ..JournalledFleet::default()
            },
            ..rule()
        };
        let store = MemoryCoordinator::default();
        found(&store, NOON);
        let mut known = known_up_to(NOON, NOON);
        known.adopted(adopted, &BTreeSet::new(), SharedRecords::Complete);
        let mut name = 70;
        // Fences the fleet by `rule`. Then the node joins the fleet and updates `known`, the
        // highest values that it has seen.
        let mut fence = |rule: &FenceRule, known: &mut HighWater| {
            name += 1;
            let nonce = name;
            let (files, mut entropy) = ([known.clone()], Entropy::new(move || nonce));
            let fenced = fence_restored(&store, &keys(), rule, &files, NOON, &mut entropy);
            let meta = stored(&store);
            known.meet(meta.fleet, era_of(&meta), store.revision(), NOON);
            known.adopted(meta.least, &meta.known_adoptions(), meta.records());
            fenced.expect("memory answers").lacks_records
        };
        for _ in 0..3 {
            assert!(fence(&with_journals, &mut known));
        }
        let mut given_up = known.clone();
        let before = store.copy();
        assert!(!fence(&rule(), &mut given_up), "the records are given up");
        assert!(!fence(&with_journals, &mut given_up));
        assert_eq!(given_up.least(), None);

        store.restore(&before);
        let mut meta = stored(&store);
        meta.least = adopted;
        put(&store, keys().meta(), meta.to_bytes());
        assert!(
            !fence(&with_journals, &mut known),
            "the adoption is repeated"
        );
        assert_eq!(known.least(), adopted);
    }

    #[test]
    fn only_lost_adoptions_that_were_reported_are_given_up() {
        let ids = |ids: &[&str]| {
            ids.iter()
                .map(|id| (*id).to_owned())
                .collect::<BTreeSet<_>>()
        };
        let store = MemoryCoordinator::default();
        found(&store, NOON);
        let fence = |name, of_file: &[&str]| {
            let mut known = known_up_to(NOON, NOON);
            known.adopted(None, &ids(of_file), SharedRecords::Complete);
            let mut entropy = Entropy::new(move || name);
            fence_restored(&store, &keys(), &rule(), &[known], NOON, &mut entropy)
                .expect("memory answers")
        };
        let reported = fence(70, &["a"]);
        assert_eq!(reported.lost_adoptions, ids(&["a"]));
        let given_up = fence(71, &["a", "b"]);
        assert_eq!(given_up.lost_adoptions, ids(&["b"]));
        assert!(given_up.gives_up && given_up.lacks_records);
        let given_up = fence(72, &["b"]);
        assert!(given_up.gives_up && !given_up.lacks_records, "{given_up:?}");
    }

    #[test]
    fn a_backup_from_a_fence_with_a_floor_far_ahead_is_older_than_the_next_fence() {
        let store = MemoryCoordinator::default();
        found(&store, NOON);
        let fence_at = |now, name| {
            let mut entropy = Entropy::new(move || name);
            fence_restored(&store, &keys(), &rule(), &[], now, &mut entropy)
                .expect("memory answers");
            let (meta, mut known) = (stored(&store), HighWater::default());
            known.meet(meta.fleet, era_of(&meta), store.revision(), NOON);
            known
        };
        let first = known_up_to(NOON, NOON);
        let far = fence_at(after(365 * 86_400), 70);
        let backup = store.copy();
        let right = fence_at(NOON, 71);
        assert!(right.floor() < far.floor());
        let check = |known: &HighWater, store: &MemoryCoordinator| {
            let snapshot = store.read(&keys().all_slots()).expect("memory answers");
            known.check_all(&keys(), &snapshot)
        };
        for known in [&first, &far, &right] {
            assert_eq!(check(known, &store), Ok(()), "{known:?}");
        }
        assert_eq!(check(&first, &backup), Ok(()));
        assert_eq!(check(&far, &backup), Ok(()));
        let refused = check(&right, &backup);
        assert!(
            matches!(refused, Err(Regression::OtherFleet { .. })),
            "{refused:?}"
        );
    }

    fn era_of(meta: &FleetMeta) -> FleetEra {
        FleetEra {
            fences: meta.fences,
            floor: meta.floor,
            origin: meta.origin().bits(),
        }
    }

    #[test]
    fn a_wiped_store_keeps_the_first_name_of_the_fleet_that_a_node_knew() {
        let store = MemoryCoordinator::default();
        let mut known = HighWater::default();
        let era = FleetEra {
            fences: 1,
            ..FleetEra::first(Nonce::new(1), NOON)
        };
        known.meet(Nonce::new(5), era, Revision(1), NOON);
        fence(&store, &[known]);
        let names = names_of_restored(&store, &keys()).expect("memory answers");
        assert_eq!(names, [1, 5, 77].map(Nonce::new));
    }

    #[test]
    fn each_fence_is_counted_above_all_that_are_known() {
        for (of_meta, of_journals, of_file, count) in [
            (0, 0, 0, 1),
            (3, 0, 0, 4),
            (0, 3, 0, 4),
            (0, 0, 3, 4),
            (2, 5, 3, 6),
        ] {
            let store = MemoryCoordinator::default();
            let mut meta = found(&store, NOON);
            meta.fences = of_meta;
            put(&store, keys().meta(), meta.to_bytes());
            let mut known = HighWater::default();
            let era = FleetEra {
                fences: of_file,
                ..FleetEra::first(Nonce::new(1), NOON)
            };
            known.meet(Nonce::new(1), era, Revision(1), NOON);
            let rule = FenceRule {
                journals: JournalledFleet {
                    fences: of_journals,
                    ..JournalledFleet::default()
                },
                ..rule()
            };
            let mut entropy = Entropy::new(|| 77);
            fence_restored(&store, &keys(), &rule, &[known], NOON, &mut entropy)
                .expect("memory answers");
            assert_eq!(stored(&store).fences, count);
        }
    }

    #[test]
    fn a_clock_that_was_far_ahead_is_waited_for_by_its_slot_alone() {
        let year = 365 * 86_400;
        // A horizon one year ahead is in the store, in the high-water file of a node that may have
        // renewed its slot since, or in both. In the last row, an earlier fence has also set the
        // floor one year ahead.
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
            assert_eq!(fenced.far, [(3, far)]);
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
    fn where_several_slots_are_far_ahead_the_clock_is_doubted_unless_it_is_trusted() {
        let store = MemoryCoordinator::default();
        let meta = found(&store, NOON);
        let month = 30 * 86_400;
        reserve(&store, 1, after(month));
        reserve(&store, 2, after(month + 1));
        let doubting = FenceRule {
            is_clock_trusted: false,
            ..rule()
        };
        let text = fence_by(&store, &doubting)
            .expect_err("two of them")
            .to_string();
        assert!(
            text.contains("slot 1 up to") && text.contains("slot 2 up to"),
            "{text}"
        );
        assert!(text.contains("--trust-this-clock"), "{text}");
        assert_eq!(stored(&store), meta, "nothing is written");

        let fenced = fence_by(&store, &rule()).expect("the clock is right");
        assert_eq!(fenced.far, [(1, after(month)), (2, after(month + 1))]);
        assert!(fenced.floor < after(3_600), "other slots do not wait");
        assert_eq!(horizon_of(&store, 1), after(month));
        assert_eq!(horizon_of(&store, 2), after(month + 1));
    }

    #[test]
    fn more_far_slots_than_one_transaction_can_write_are_all_raised() {
        let store = MemoryCoordinator::default();
        found(&store, NOON);
        let mut known = known_up_to(after(86_400), NOON);
        for slot in 0..250 {
            let far = after(86_400 + 60 * u64::from(slot));
            known.acknowledge(slot, far, Revision(2), NOON);
        }
        let fenced = fence(&store, &[known]);
        assert_eq!(fenced.far.len(), 250);
        for (slot, horizon) in fenced.far {
            assert_eq!(horizon_of(&store, slot), horizon);
        }
        assert_eq!(stored(&store).fleet, fenced.fleet);
    }

    #[test]
    fn before_anything_else_is_written_the_floor_is_above_what_was_minted_and_the_fleet_the_same() {
        let store = MemoryCoordinator::default();
        assert_eq!(
            names_of_restored(&store, &keys()).expect("memory answers"),
            []
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
        // Further fences keep the fleet's first name in the list.
        for _ in 0..2 {
            fence(&store, &[]);
            let names = names_of_restored(&store, &keys()).expect("memory answers");
            assert_eq!(names[0], Nonce::new(1));
        }
    }

    #[test]
    fn a_store_that_was_wiped_is_of_the_fleet_that_it_is_said_to_be() {
        let (store, rule) = (
            MemoryCoordinator::default(),
            FenceRule {
                journals: JournalledFleet {
                    names: vec![Nonce::new(9)],
                    ..JournalledFleet::default()
                },
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
        // A fleet that still exists keeps its formats.
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
        // Second case: before the fence, a new node founded another fleet in the wiped store.
        let store = MemoryCoordinator::default();
        found(&store, after(3_600));
        let known = {
            let mut known = HighWater::default();
            known.meet(
                Nonce::new(9),
                FleetEra::first(Nonce::new(9), NOON),
                Revision(1),
                NOON,
            );
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
