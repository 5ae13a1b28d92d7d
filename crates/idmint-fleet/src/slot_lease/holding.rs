//! A slot that this node holds and renews. If its lease has ended, this node takes the slot again.
//! If another node has taken it, this node stops using the slot.

use std::time::Duration;

use super::exchange::{Reply, Request, Want};
use super::reservation::{Pending, Reserved, assert_guarded, known_rows};
use super::rule::{LEASE, LeaseRule};
use crate::agreement::{Agreed, Agreement};
use crate::nonce::Entropy;
use crate::stored::{HorizonRecord, SlotRecord, ceil_to_millis};
use crate::{Compare, KeyValue, Lease, Outcome, OwnKey, Revision, Snapshot, Transaction, Write};
use idmint_core::time::UnixNanos;
use idmint_storage::FormatsError;

/// The interval at which the node extends the lease of its slot.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(10);

/// A slot that this node holds.
#[derive(Debug, Clone)]
pub(super) struct Holding {
    slot: u32,
    agreed: Agreed,
    /// The store revision of the last acknowledged horizon.
    revision: Revision,
    reserved: Reserved,
    key: SlotKey,
    pending: Option<Pending>,
    renew_at: UnixNanos,
    keep_alive_at: UnixNanos,
}

/// The state of the key that names the slot's holder.
#[derive(Debug, Clone, Copy)]
enum SlotKey {
    /// The key exists, according to the last response.
    Held { created: Revision, lease: Lease },
    /// The key was deleted because its lease has ended. The node gets a new lease, and then writes
    /// the key again under it. `lease` is `None` until the new lease is granted.
    Gone { lease: Option<Lease> },
}

/// The effect of a reply on a held slot.
#[derive(Debug)]
pub(super) enum Held {
    Same,
    Extended(Reserved),
    Fenced,
    Disagrees(FormatsError),
}

impl Holding {
    /// Creates the state of a slot that this node has just taken. `revision` is the revision of the
    /// transaction that took it. `key` describes the stored key that names the slot's holder.
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

    /// Returns the store revision of the last acknowledged horizon.
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the state of the key that stores this slot's horizon: the revision of its last
    /// acknowledged write, and the value of a renewal that has no response yet.
    pub(super) fn horizon(&self, rule: &LeaseRule) -> OwnKey {
        let key = rule.keys.horizon(self.slot);
        let sent = self
            .pending
            .as_ref()
            .and_then(|pending| pending.value_of(&key));
        OwnKey {
            key,
            revision: self.revision,
            sent,
            is_slot: true,
        }
    }

    /// Makes the next renewal due at once.
    pub(super) fn renew_now(&mut self, now: UnixNanos) {
        self.renew_at = now;
    }

    /// Returns the fleet's agreement that this node last agreed with.
    pub(super) fn agreed(&self) -> Agreed {
        self.agreed.clone()
    }

    pub(super) fn wakes_at(&self) -> UnixNanos {
        self.renew_at.min(self.keep_alive_at)
    }

    /// Returns the next request, or `None` if no request is due.
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
        // Send a transaction without a response again, unchanged. At most one copy can commit,
        // regardless of the order in which the copies arrive.
        self.pending
            .as_ref()
            .map(|pending| Request::Commit(pending.transaction.clone()))
    }

    /// Plans a transaction that extends the horizon. It fails if the agreement or the horizon has
    /// changed, or if the slot's key was not created at `created`. The horizon is never lowered. If
    /// `created` is [`Revision::ABSENT`], the key must not exist, and the transaction writes it
    /// again under `lease`. Otherwise `lease` is `None`.
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
        let mut compare = vec![
            Compare::Modified(rule.keys.meta(), self.agreed.revision),
            Compare::Modified(horizon_key, self.revision),
            Compare::Created(slot_key.clone(), created),
        ];
        if let Some(lease) = lease {
            let key = rule.keys.known_rows(rule.node.instance, lease);
            compare.push(Compare::Created(key.clone(), Revision::ABSENT));
            write.push(known_rows(key, lease));
            let holder = SlotRecord::new(rule.node.instance, &rule.node.node, &rule.node.addr, now);
            write.push(Write::Put {
                key: slot_key,
                value: holder.to_bytes(),
                lease: Some(lease),
            });
        }
        let transaction = Transaction {
            compare,
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
                // The lease has ended. Renew at once to learn whether another node has taken the
                // slot.
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

    /// Records that the pending horizon was stored at `revision`.
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

    /// Handles a renewal that the coordinator refused because a compared value had changed. An
    /// earlier copy of the same transaction may have been committed nevertheless. `snapshot` has
    /// the fleet's current settings, and the slot's horizon and holder.
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
            // Recognize this node's own write by its random attempt number. The nonce of the
            // process is not sufficient, because a copy of this process has the same nonce.
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
            // Another node has taken the slot, or the stored values do not explain the refusal. In
            // both cases the slot counts as lost.
            _ => return Held::Fenced,
        }
        self.renew_at = now;
        Held::Same
    }

    /// Accepts a changed agreement and returns `true` if this node can keep its slot under it. The
    /// agreement must cover everything that this node mints, and have the same fleet name and no
    /// higher floor.
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

    /// `true` while a transaction is pending that takes the slot back after its lease ended. If the
    /// coordinator refuses it, the slot is lost, because the new lease may have ended as well.
    pub(super) fn cannot_reclaim(&self) -> bool {
        self.pending.is_some() && matches!(self.key, SlotKey::Gone { .. })
    }

    /// Returns the transaction that releases the slot. The slot's horizon stays stored. Returns
    /// `None` if the key that names the slot's holder was already deleted.
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
