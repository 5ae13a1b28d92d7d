//! Mistakes that are easy to make when implementing the protocols of a fleet. The simulation
//! injects them between a node and the network.

use crate::fleet_keys::FleetKeys;
use crate::nonce::Nonce;
use crate::slot_lease::{Reply, Request};
use crate::stored::{FleetMeta, HorizonRecord, SlotRecord, ceil_to_millis};
use crate::{
    Compare, Coordinator, KeyValue, Outcome, Range, Revision, Snapshot, Transaction, Write,
};
use idmint_core::time::UnixNanos;

/// A deliberate mistake in the implementation of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mistake {
    None,
    /// Simulated bug: a slot renewal does not check whether another node changed the reserved time.
    RenewsWithoutComparing,
    /// Simulated bug: a node that takes a slot (place in the fleet) starts to mint at its own
    /// clock's time, even if an earlier holder of the slot may have minted beyond that time.
    StartsAtOwnClock,
    /// Simulated bug: a node that releases a slot lowers the slot's horizon (end of the reserved
    /// time) to the time of its own clock, so that the unused time is not wasted.
    LowersHorizonAtShutdown,
    /// Simulated bug: a node takes a refused slot renewal for committed if the stored horizon (end
    /// of the reserved time) has changed. But another node may have changed it.
    BelievesARead,
    /// Simulated bug: a node takes a refused slot renewal for committed if its own process wrote
    /// the stored end of the reserved time. But an earlier request may have written it.
    AdoptsByInstance,
    /// Simulated bug: a node forgets the highest values that the coordinator has acknowledged, such
    /// as the store revision. So it does not detect a restore from a backup.
    ForgetsHighWater,
    /// Simulated bug: after a fleet takes over a node, only slot 0 avoids the ids of that node.
    FloorsSlotZeroAlone,
    /// Simulated bug: a node that reads or writes records ignores the store revision in the
    /// responses. So it misses a sign of a restore from a backup: a lower revision.
    LooksAtNoRevision,
    /// Simulated bug: a write of records does not check whether a restore undid a slot renewal.
    ComparesNoOwnKey,
    /// Simulated bug: after the store was wiped, a node founds a new fleet as if no other node were
    /// still minting.
    FoundsAsIfNobodyMinted,
    /// Simulated bug: after the store was wiped, a node joins a new fleet if its floor (time below
    /// which no id is minted) is high enough, without checking for a `fence-restore` command.
    TakesAFounderForAFence,
    /// Simulated bug: after the operator's command `fence-restore`, no node mints before the latest
    /// end of any slot's reserved time, even if a wrong clock has set that end far in the future.
    FencesAboveEveryHorizon,
    /// Simulated bug: when a node compares clocks, each slot record of a process that holds a slot
    /// counts as a separate clock, even if one process wrote several of them.
    CountsEveryHorizonOfAProcess,
    /// Simulated bug: a node without a slot writes records without checking the key that it
    /// regularly rewrites. The check could detect that a restore has undone writes of the key.
    ComparesNoWaitingKey,
    /// Simulated bug: journals (records of commits) are ordered by floor (minimum time of ids), not
    /// by the number of `fence-restore` commands. But such a command may lower the floor.
    OrdersErasByFloor,
    /// Simulated bug: a node removes all idempotency keys that are expired by its own clock,
    /// although that clock may be wrong.
    SweepsByItsOwnClock,
}

/// The properties of a node on which its mistake depends.
pub(super) struct Maker<'a> {
    pub(super) keys: &'a FleetKeys,
    pub(super) instance: Nonce,
    pub(super) now: UnixNanos,
}

impl Mistake {
    /// Returns `raised`, by which no slot mints below the `horizon` of a node that the fleet takes
    /// over. [`Mistake::FloorsSlotZeroAlone`] replaces it with a transaction for slot 0 alone.
    pub(super) fn of_floor(
        self,
        raised: Transaction,
        horizon: UnixNanos,
        keys: &FleetKeys,
        store: &dyn Coordinator,
    ) -> Transaction {
        if self != Mistake::FloorsSlotZeroAlone {
            return raised;
        }
        let key = keys.horizon(0);
        let found = store
            .read(&[Range::one(key.clone())])
            .expect("memory answers")
            .ranges
            .remove(0);
        let revision = found
            .first()
            .map_or(Revision::ABSENT, |entry| entry.modified);
        let record = HorizonRecord::new(
            ceil_to_millis(horizon),
            Nonce::new(0),
            Nonce::new(0),
            horizon,
        );
        Transaction {
            compare: vec![Compare::Modified(key.clone(), revision)],
            write: vec![Write::put(key, record.to_bytes())],
            ..Transaction::default()
        }
    }

    /// Returns the request that is sent instead of `request`.
    pub(super) fn of_request(self, request: Request, maker: &Maker<'_>) -> Request {
        let Request::Commit(mut transaction) = request else {
            return request;
        };
        match self {
            Mistake::RenewsWithoutComparing if is_renewal(&transaction) => {
                transaction
                    .compare
                    .retain(|compare| *compare.key() == maker.keys.meta());
            }
            Mistake::LowersHorizonAtShutdown => {
                if let Some(Write::Delete(key)) = transaction.write.first() {
                    let slot = (0..16)
                        .find(|slot| maker.keys.slot(*slot) == *key)
                        .expect("a slot is given back");
                    let now = UnixNanos::new(maker.now.get() / 1_000_000 * 1_000_000);
                    let record = HorizonRecord::new(now, maker.instance, Nonce::new(0), now);
                    let (key, value) = (maker.keys.horizon(slot), record.to_bytes());
                    transaction.write.push(Write::put(key, value));
                }
            }
            _ => {}
        }
        Request::Commit(transaction)
    }

    /// Returns the reply that the node acts on instead of `reply`.
    pub(super) fn of_reply(self, request: &Request, reply: Reply, maker: &Maker<'_>) -> Reply {
        match (self, request, reply) {
            (Mistake::StartsAtOwnClock, _, Reply::Read(mut snapshot)) => {
                for entry in snapshot.ranges.iter_mut().skip(1).take(1).flatten() {
                    rewrite(entry, |record| record.horizon = UnixNanos::default());
                }
                Reply::Read(snapshot)
            }
            (Mistake::TakesAFounderForAFence, _, Reply::Read(mut snapshot)) => {
                for entry in snapshot.ranges.iter_mut().take(1).flatten() {
                    let mut meta = FleetMeta::from_bytes(&entry.value).expect("it is whole");
                    if !meta.is_fenced() {
                        meta.fence(meta.fleet, meta.floor, &[]);
                    }
                    entry.value = meta.to_bytes();
                }
                Reply::Read(snapshot)
            }
            (
                Mistake::BelievesARead,
                Request::Commit(transaction),
                Reply::Outcome(Outcome::Refused(snapshot)),
            ) if is_renewal(transaction) => {
                let found = snapshot.ranges.iter().flatten().find(|entry| {
                    HorizonRecord::from_bytes(&entry.value).is_ok()
                        && transaction
                            .compare
                            .iter()
                            .any(|compare| *compare.key() == entry.key)
                });
                match found.filter(|entry| !is_compared_at(transaction, entry.modified)) {
                    Some(entry) => {
                        let written = Snapshot {
                            revision: entry.modified,
                            ranges: vec![Vec::new(); 2],
                            ..snapshot
                        };
                        Reply::Outcome(Outcome::Committed(written))
                    }
                    None => Reply::Outcome(Outcome::Refused(snapshot)),
                }
            }
            (
                Mistake::AdoptsByInstance,
                Request::Commit(transaction),
                Reply::Outcome(Outcome::Refused(mut snapshot)),
            ) => {
                if let Some(sent) = horizon_of(transaction) {
                    for entry in snapshot.ranges.iter_mut().flatten() {
                        rewrite(entry, |record| {
                            if record.instance == maker.instance {
                                (record.attempt, record.horizon) = (sent.attempt, sent.horizon);
                            }
                        });
                    }
                }
                Reply::Outcome(Outcome::Refused(snapshot))
            }
            (
                Mistake::CountsEveryHorizonOfAProcess,
                Request::Commit(_),
                Reply::Outcome(Outcome::Committed(mut written)),
            ) => {
                if let [horizons, holders] = written.ranges.as_mut_slice() {
                    holders.extend(holders_of_horizons(horizons, holders, maker.keys));
                }
                Reply::Outcome(Outcome::Committed(written))
            }
            (_, _, reply) => reply,
        }
    }
}

/// Returns one made-up slot holder for each horizon (a slot's record with a clock reading) whose
/// writer still holds a slot. Each has its own node name, and so counts as a separate clock.
fn holders_of_horizons(
    horizons: &[KeyValue],
    holders: &[KeyValue],
    keys: &FleetKeys,
) -> Vec<KeyValue> {
    let held: Vec<SlotRecord> = holders
        .iter()
        .map(|entry| SlotRecord::from_bytes(&entry.value).expect("it is whole"))
        .collect();
    let holder = |entry: &KeyValue| {
        let record = HorizonRecord::from_bytes(&entry.value).ok()?;
        let holder = held
            .iter()
            .find(|holder| holder.instance == record.instance)?;
        let slot = keys.slot_of_horizon(&entry.key)?;
        let node = format!("{} in slot {slot}", holder.node);
        let value = SlotRecord::new(record.instance, &node, &holder.addr, holder.since).to_bytes();
        let key = keys.slot(slot);
        Some(KeyValue {
            key,
            value,
            ..entry.clone()
        })
    };
    horizons.iter().filter_map(holder).collect()
}

/// Returns the horizon that a transaction writes.
pub(super) fn horizon_of(transaction: &Transaction) -> Option<HorizonRecord> {
    transaction.write.iter().find_map(|write| match write {
        Write::Put { value, .. } => HorizonRecord::from_bytes(value).ok(),
        Write::Delete(_) => None,
    })
}

/// `true` if the transaction renews a held slot: it writes the end of the slot's reserved time, but
/// not which node holds the slot.
pub(super) fn is_renewal(transaction: &Transaction) -> bool {
    transaction.write.len() == 1 && horizon_of(transaction).is_some()
}

fn is_compared_at(transaction: &Transaction, revision: Revision) -> bool {
    transaction
        .compare
        .iter()
        .any(|compare| matches!(compare, Compare::Modified(_, of) if *of == revision))
}

fn rewrite(entry: &mut KeyValue, change: impl FnOnce(&mut HorizonRecord)) {
    if let Ok(mut record) = HorizonRecord::from_bytes(&entry.value) {
        change(&mut record);
        entry.value = record.to_bytes();
    }
}
