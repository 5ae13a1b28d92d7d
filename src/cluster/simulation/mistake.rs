//! Mistakes that a protocol like this is easily built with, made on the way between a node and the network.

use crate::cluster::fleet_keys::FleetKeys;
use crate::cluster::nonce::Nonce;
use crate::cluster::slot_lease::{Reply, Request};
use crate::cluster::stored::{FleetMeta, HorizonRecord, ceil_to_millis};
use crate::storage::{
    Compare, Coordinator, KeyValue, Outcome, Range, Revision, Snapshot, Transaction, Write,
};
use crate::time::UnixNanos;

/// What a node does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mistake {
    None,
    /// A renewal does not compare the revision of what it renews.
    RenewsWithoutComparing,
    /// Whoever takes a slot begins at its own clock, whatever its horizon is.
    StartsAtOwnClock,
    /// Whoever gives a slot back gives back the time that it did not use, by its clock.
    LowersHorizonAtShutdown,
    /// A renewal without an answer is taken for done if its horizon can be read.
    BelievesARead,
    /// A refused renewal is taken for one's own if one's own process wrote what is there.
    AdoptsByInstance,
    /// What the coordinator has said is not remembered, so nothing shows that it was restored from a backup.
    ForgetsHighWater,
    /// Of a fleet that adopts a single node, only the slot that the node had is kept above its horizon.
    FloorsSlotZeroAlone,
    /// The records do not look at the revision of an answer, so a restored coordinator is noticed by the slots alone.
    LooksAtNoRevision,
    /// The records do not compare the horizon of the own slot.
    ComparesNoOwnHorizon,
    /// A fleet whose store was wiped is founded as if nobody could be minting.
    FoundsAsIfNobodyMinted,
    /// A fleet that somebody has founded who knew of no other is taken for one that was fenced, if it begins late enough.
    TakesAFounderForAFence,
    /// A fence goes above every horizon, however far one of them is ahead.
    FencesAboveEveryHorizon,
    /// A node forgets the keys of requests that its own clock calls old, however wrong that is.
    SweepsByItsOwnClock,
}

/// What a mistake has to know of the node that makes it.
pub(super) struct Maker<'a> {
    pub(super) keys: &'a FleetKeys,
    pub(super) instance: Nonce,
    pub(super) now: UnixNanos,
}

impl Mistake {
    /// What is written instead of the floor of a fleet that adopts a node which minted up to `horizon`.
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

    /// The request as it is sent.
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

    /// The reply as it is understood.
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
            (_, _, reply) => reply,
        }
    }
}

/// The horizon that a transaction writes.
pub(super) fn horizon_of(transaction: &Transaction) -> Option<HorizonRecord> {
    transaction.write.iter().find_map(|write| match write {
        Write::Put { value, .. } => HorizonRecord::from_bytes(value).ok(),
        Write::Delete(_) => None,
    })
}

/// Whether it writes a horizon and no holder: a slot that is held is renewed.
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
