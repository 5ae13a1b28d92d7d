//! A slot that is held: renewed while it is, taken back when only its lease was lost, given up when another node has it.

use std::time::Duration;

use super::exchange::{Reply, Request, Want};
use super::reservation::{LEASE, Pending, Reserved, assert_guarded};
use super::rule::LeaseRule;
use crate::cluster::agreement::{Agreed, Agreement};
use crate::cluster::nonce::Entropy;
use crate::cluster::stored::{HorizonRecord, SlotRecord, ceil_to_millis};
use crate::storage::{
    Compare, FormatsError, KeyValue, Lease, Outcome, OwnHorizon, Revision, Snapshot, Transaction,
    Write,
};
use crate::time::UnixNanos;

/// How often the coordinator hears that the node is there.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(10);

/// A slot that is held.
#[derive(Debug, Clone)]
pub(super) struct Holding {
    slot: u32,
    agreed: Agreed,
    /// The revision of the horizon that was acknowledged last.
    revision: Revision,
    reserved: Reserved,
    key: SlotKey,
    pending: Option<Pending>,
    renew_at: UnixNanos,
    keep_alive_at: UnixNanos,
}

/// The key that says who holds the slot.
#[derive(Debug, Clone, Copy)]
enum SlotKey {
    /// It is there, or was when it was last heard of.
    Held { created: Revision, lease: Lease },
    /// Its lease has ended; to be put again under this one.
    Gone { lease: Option<Lease> },
}

/// What a reply means.
#[derive(Debug)]
pub(super) enum Held {
    Same,
    Extended(Reserved),
    Fenced,
    Disagrees(FormatsError),
}

impl Holding {
    /// `revision` wrote both the slot and its horizon. `key`: the lease of the slot's key, and the revision that created it.
    pub(super) fn new(
        slot: u32,
        agreed: Agreed,
        key: (Lease, Revision),
        revision: Revision,
        reserved: Reserved,
    ) -> Holding {
        let (lease, created) = key;
        Holding {
            slot,
            agreed,
            revision,
            reserved,
            key: SlotKey::Held { created, lease },
            pending: None,
            renew_at: reserved.renew_at(),
            keep_alive_at: reserved.sent_at.after(KEEP_ALIVE_EVERY),
        }
    }

    pub(super) fn slot(&self) -> u32 {
        self.slot
    }

    /// The revision of the horizon that was acknowledged last.
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// Its horizon, as was acknowledged last, and what was sent since.
    pub(super) fn horizon(&self, rule: &LeaseRule) -> OwnHorizon {
        let key = rule.keys.horizon(self.slot);
        let sent = self
            .pending
            .as_ref()
            .and_then(|pending| pending.value_of(&key));
        OwnHorizon {
            key,
            revision: self.revision,
            sent,
        }
    }

    /// Renews it without waiting any longer.
    pub(super) fn renew_now(&mut self, now: UnixNanos) {
        self.renew_at = now;
    }

    /// What the fleet said when this node last agreed with it.
    pub(super) fn agreed(&self) -> Agreed {
        self.agreed
    }

    /// When it has something to do.
    pub(super) fn wakes_at(&self) -> UnixNanos {
        self.renew_at.min(self.keep_alive_at)
    }

    /// What to send at this instant, if anything.
    pub(super) fn next(
        &mut self,
        now: UnixNanos,
        want: Want,
        rule: &LeaseRule,
        entropy: &mut Entropy,
    ) -> Option<Request> {
        if now >= self.keep_alive_at {
            self.keep_alive_at = now.after(KEEP_ALIVE_EVERY);
            if let SlotKey::Held { lease, .. } = self.key {
                return Some(Request::KeepAlive(lease));
            }
        }
        if self.pending.is_none() {
            self.pending = Some(match self.key {
                SlotKey::Held { created, .. } if now >= self.renew_at || want.at_once => {
                    self.extend(created, None, now, want, rule, entropy)
                }
                SlotKey::Held { .. } => return None,
                SlotKey::Gone { lease: None } => return Some(Request::Grant(LEASE)),
                SlotKey::Gone { lease } => {
                    self.extend(Revision::ABSENT, lease, now, want, rule, entropy)
                }
            });
        }
        // What was not answered is sent again as it was: of all copies one can be done, whenever they arrive.
        self.pending
            .as_ref()
            .map(|pending| Request::Commit(pending.transaction.clone()))
    }

    /// A later horizon, if the slot is as it was: its key created by `created`, or, if that is none, to be put under `lease`.
    fn extend(
        &self,
        created: Revision,
        lease: Option<Lease>,
        now: UnixNanos,
        want: Want,
        rule: &LeaseRule,
        entropy: &mut Entropy,
    ) -> Pending {
        let reserves = Reserved {
            horizon: ceil_to_millis(self.reserved.horizon.max(want.horizon)),
            sent_at: now,
        };
        assert!(
            reserves.horizon >= self.reserved.horizon,
            "a horizon is never lowered"
        );
        let (slot_key, horizon_key, attempt) = (
            rule.keys.slot(self.slot),
            rule.keys.horizon(self.slot),
            entropy.nonce(),
        );
        let record = HorizonRecord::new(reserves.horizon, rule.node.instance, attempt, now);
        let mut write = vec![Write::put(horizon_key.clone(), record.to_bytes())];
        if lease.is_some() {
            let holder = SlotRecord::new(rule.node.instance, &rule.node.node, &rule.node.addr, now);
            write.push(Write::Put {
                key: slot_key.clone(),
                value: holder.to_bytes(),
                lease,
            });
        }
        let transaction = Transaction {
            compare: vec![
                Compare::Modified(rule.keys.meta(), self.agreed.revision),
                Compare::Modified(horizon_key, self.revision),
                Compare::Created(slot_key, created),
            ],
            write,
            then_read: rule.keys.clocks(),
            otherwise: rule.keys.of_slot(self.slot),
        };
        Pending::new(transaction, attempt, reserves)
    }

    pub(super) fn answer(
        &mut self,
        now: UnixNanos,
        reply: Reply,
        rule: &LeaseRule,
        entropy: &mut Entropy,
    ) -> Held {
        match (reply, &mut self.key) {
            (Reply::KeptAlive(true), _) => Held::Same,
            (Reply::KeptAlive(false), _) => {
                // The next renewal tells whether the slot is gone too.
                self.renew_at = now;
                Held::Same
            }
            (Reply::Granted(granted), SlotKey::Gone { lease }) => {
                *lease = Some(granted);
                Held::Same
            }
            (Reply::Outcome(outcome), _) => {
                let pending = self.pending.take().expect("an outcome is of what was sent");
                match outcome {
                    Outcome::Committed(written) => {
                        Held::Extended(self.acknowledge(&pending, written.revision))
                    }
                    Outcome::Refused(snapshot) => {
                        self.refused(&pending, &snapshot, now, rule, entropy)
                    }
                }
            }
            (reply, key) => panic!("{reply:?} is no reply to what was asked with {key:?}"),
        }
    }

    /// The pending horizon is in the store, written by this revision.
    fn acknowledge(&mut self, pending: &Pending, revision: Revision) -> Reserved {
        assert!(
            revision > self.revision,
            "a later write has a later revision"
        );
        assert!(
            pending.reserves.horizon >= self.reserved.horizon,
            "a horizon is never lowered"
        );
        self.revision = revision;
        self.reserved = pending.reserves;
        if let SlotKey::Gone { lease: Some(lease) } = self.key {
            self.key = SlotKey::Held {
                created: revision,
                lease,
            };
        }
        self.renew_at = self.reserved.renew_at();
        self.reserved
    }

    /// Nothing was written by the copy that this answers. `snapshot` answers what stands in its way.
    fn refused(
        &mut self,
        pending: &Pending,
        snapshot: &Snapshot,
        now: UnixNanos,
        rule: &LeaseRule,
        entropy: &mut Entropy,
    ) -> Held {
        let [meta, horizon, slot] = snapshot.ranges.as_slice() else {
            panic!("three ranges were asked for")
        };
        let (meta, horizon, slot) = (meta.first(), horizon.first(), slot.first());
        match horizon {
            // By its attempt and not by its instance: a copy of this process would have the same instance.
            Some(entry) if pending.has_written(horizon) => {
                return Held::Extended(self.acknowledge(pending, entry.modified));
            }
            Some(entry) if entry.modified == self.revision => {}
            _ => return Held::Fenced,
        }
        let meta_changed = meta.is_none_or(|entry| entry.modified != self.agreed.revision);
        if meta_changed {
            match self.agree_again(meta, now, rule, entropy) {
                Ok(true) => {}
                Ok(false) => return Held::Fenced,
                Err(error) => return Held::Disagrees(error),
            }
        }
        match (slot, self.key) {
            (None, SlotKey::Held { .. }) => self.key = SlotKey::Gone { lease: None },
            (None, SlotKey::Gone { .. }) if meta_changed => {}
            (Some(entry), SlotKey::Held { created, .. })
                if meta_changed && entry.created == created => {}
            // Somebody has put himself there, or nothing is in the way and it was refused all the same.
            _ => return Held::Fenced,
        }
        self.renew_at = now;
        Held::Same
    }

    /// Whether the fleet's new word leaves this slot as it is; then it counts from now on.
    fn agree_again(
        &mut self,
        meta: Option<&KeyValue>,
        now: UnixNanos,
        rule: &LeaseRule,
        entropy: &mut Entropy,
    ) -> Result<bool, FormatsError> {
        let Agreement::Agreed(agreed) =
            rule.layout
                .compare(&rule.keys, meta, now, entropy.nonce())?
        else {
            return Ok(false);
        };
        let is_same = agreed.fleet == self.agreed.fleet && agreed.floor <= self.agreed.floor;
        if is_same {
            self.agreed = agreed;
        }
        Ok(is_same)
    }

    /// Whether what is pending puts the slot again under a lease that may have ended.
    pub(super) fn cannot_reclaim(&self) -> bool {
        self.pending.is_some() && matches!(self.key, SlotKey::Gone { .. })
    }

    /// Gives the slot back and leaves its horizon as it is; `None` if it is gone already.
    pub(super) fn release(&self, rule: &LeaseRule) -> Option<Transaction> {
        let SlotKey::Held { created, .. } = self.key else {
            return None;
        };
        let key = rule.keys.slot(self.slot);
        let transaction = Transaction {
            compare: vec![Compare::Created(key.clone(), created)],
            write: vec![Write::Delete(key)],
            ..Transaction::default()
        };
        assert_guarded(&transaction);
        Some(transaction)
    }
}
