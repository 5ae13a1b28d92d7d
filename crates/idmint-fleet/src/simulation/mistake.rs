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
    /// A slot renewal does not compare the revision of the stored horizon (end of the reserved
    /// time), so it may overwrite a horizon that another node wrote.
    RenewsWithoutComparing,
    /// A node that takes a slot mints from the time of its own clock on, and ignores the slot's
    /// horizon (time up to which others may have minted).
    StartsAtOwnClock,
    /// A node that releases a slot lowers the slot's horizon (end of the reserved time) to the time
    /// of its own clock, so that the unused time is not wasted.
    LowersHorizonAtShutdown,
    /// A refused slot renewal counts as done if the stored horizon has another revision than the
    /// one that the renewal compared, no matter who wrote it.
    BelievesARead,
    /// A refused slot renewal counts as done if the same process wrote the stored horizon, even
    /// with an earlier request.
    AdoptsByInstance,
    /// A node remembers no high water, the highest values that the coordinator has acknowledged. So
    /// it does not detect a restore from a backup.
    ForgetsHighWater,
    /// When a fleet adopts a single node, only slot 0 starts above that node's ids, so other slots
    /// may mint them again.
    FloorsSlotZeroAlone,
    /// The record store of a node ignores the revision of responses, so only the renewals of slots
    /// detect a restored coordinator.
    LooksAtNoRevision,
    /// Writes of records do not compare the horizon of their node's slot, so they do not notice
    /// that the store has lost the latest renewal.
    ComparesNoOwnKey,
    /// After the store was wiped, a node founds a new fleet as if no other node could still be
    /// minting.
    FoundsAsIfNobodyMinted,
    /// A fleet that was founded after the store was wiped counts as the old fleet after a fence, if
    /// its floor (time below which no id is minted) is high enough.
    TakesAFounderForAFence,
    /// After a restore, a fence makes all slots wait until the highest horizon (end of the reserved
    /// time), even if a wrong clock has set that horizon far ahead.
    FencesAboveEveryHorizon,
    /// A node counts every horizon record whose writer holds any slot as a separate clock, even if
    /// one process wrote several of these records.
    CountsEveryHorizonOfAProcess,
    /// A node without a slot writes records without comparing the key that it regularly rewrites.
    ComparesNoWaitingKey,
    /// The era of a fleet (time from one `fence-restore` command to the next) with the higher floor
    /// counts as the later one, instead of the era with more fences. But a fence may lower the
    /// floor.
    OrdersErasByFloor,
    /// A node removes all request keys that are expired by its own clock, even if that clock is
    /// wrong.
    SweepsByItsOwnClock,
}

/// The properties of a node on which its mistake depends.
pub(super) struct Maker<'a> {
    pub(super) keys: &'a FleetKeys,
    pub(super) instance: Nonce,
    pub(super) now: UnixNanos,
}

impl Mistake {
    /// Returns the transaction to commit instead of `raised`, the correct transaction that raises
    /// the floor of a fleet when it adopts a node. That node has minted up to `horizon`.
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

/// Returns one holder record for each horizon record whose writer holds any slot. The holder
/// records have different node names, so each horizon counts as a separate clock.
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

/// `true` if the transaction renews a held slot, which means that it writes a horizon but no
/// holder.
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
