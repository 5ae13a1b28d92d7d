//! Mistakes that are easy to make in an implementation of the fleet's protocols. The simulation
//! injects them between a node and the network.

use crate::fleet_keys::FleetKeys;
use crate::nonce::Nonce;
use crate::slot_lease::{Reply, Request};
use crate::stored::{FleetMeta, HorizonRecord, SlotRecord, ceil_to_millis};
use crate::{
    Compare, Coordinator, KeyValue, Outcome, Range, Revision, Snapshot, Transaction, Write,
};
use idmint_core::time::UnixNanos;

/// A deliberate mistake of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mistake {
    None,
    /// Simulated bug: a renewal of a slot does not check whether another node has changed the
    /// slot's horizon.
    RenewsWithoutComparing,
    /// Simulated bug: a node that takes a slot begins to mint at its own clock's time, although an
    /// earlier holder of the slot may have minted beyond that time.
    StartsAtOwnClock,
    /// Simulated bug: a node that releases a slot lowers the slot's horizon to its own clock's
    /// time, to save the unused time.
    LowersHorizonAtShutdown,
    /// Simulated bug: a node takes a refused renewal for committed if the stored horizon has
    /// changed. But another node may have changed it.
    BelievesARead,
    /// Simulated bug: a node takes a refused renewal for committed if its own process wrote the
    /// stored horizon. But an earlier request of the process may have written it.
    AdoptsByInstance,
    /// Simulated bug: a node keeps no record of the highest values that the coordinator has
    /// acknowledged, such as revisions. So it does not detect a restore from a backup.
    ForgetsHighWater,
    /// Simulated bug: after an adoption, only slot 0 avoids the ids of the adopted node.
    FloorsSlotZeroAlone,
    /// Simulated bug: a node that reads or writes records ignores the revisions of responses. So it
    /// does not notice a restore, which lowers the revision.
    LooksAtNoRevision,
    /// Simulated bug: a write of records does not compare the horizon of the node's slot. So the
    /// write succeeds even if a restore has undone a renewal.
    ComparesNoOwnKey,
    /// Simulated bug: after a wipe of the store, a node founds a new fleet as if no other node were
    /// still minting.
    FoundsAsIfNobodyMinted,
    /// Simulated bug: after a wipe of the store, a node joins a new fleet whose floor is high
    /// enough, although no operator has fenced that fleet.
    TakesAFounderForAFence,
    /// Simulated bug: a fence sets the floor above every horizon, even above one that a wrong clock
    /// has set far in the future.
    FencesAboveEveryHorizon,
    /// Simulated bug: in the comparison of clocks, each horizon that a process has written counts
    /// as a separate clock, although a process has only one clock.
    CountsEveryHorizonOfAProcess,
    /// Simulated bug: a node without a slot writes records without comparing the key that it
    /// rewrites regularly. So the write succeeds even if a restore has undone a write of that key.
    ComparesNoWaitingKey,
    /// Simulated bug: the eras in journals are ordered by their floors instead of their numbers of
    /// fences. But a fence may lower the floor.
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
    /// Returns `raised`, the transaction that keeps all slots above the `horizon` of an adopted
    /// node. With [`Mistake::FloorsSlotZeroAlone`], returns a transaction for slot 0 alone.
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

    /// Returns the request that the node sends in place of `request`.
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

    /// Returns the reply that the node receives in place of `reply`.
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

/// Returns an invented slot holder for each horizon whose writer still holds a slot. Each holder
/// has its own node name, so each horizon counts as a separate clock.
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

/// Returns the horizon record that a transaction writes, if any.
pub(super) fn horizon_of(transaction: &Transaction) -> Option<HorizonRecord> {
    transaction.write.iter().find_map(|write| match write {
        Write::Put { value, .. } => HorizonRecord::from_bytes(value).ok(),
        Write::Delete(_) => None,
    })
}

/// `true` if the transaction renews a held slot. Such a transaction writes the slot's horizon, but
/// not the slot's holder.
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
