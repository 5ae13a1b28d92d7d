//! Decides what a node without a slot does after it has read all slots: it creates a fleet, adds
//! its formats to the fleet's agreement, waits, or takes a slot.

use std::time::Duration;

use super::exchange::{Change, without};
use super::founders;
use super::reservation::{Pending, Reserved, assert_guarded, known_rows};
use super::retry;
use super::rule::RENEW_EVERY;
use super::slot_lease::{ANSWER_AFTER, Claim, LOOK_AGAIN_MAX, Phase, SlotLease};
use crate::agreement::Agreed;
use crate::agreement::Agreement;
use crate::nonce::Entropy;
use crate::slot_choice::{self, Choice, FreeSlot};
use crate::stored::{HorizonRecord, SlotRecord, ceil_to_millis};
use crate::{Compare, Lease, Range, Revision, Snapshot, Transaction, Write};
use idmint_core::minting::{Reservation, SlotLack};
use idmint_core::time::UnixNanos;

impl SlotLease {
    /// Decides what to do after a read of all slots. A node that waits for a slot also rewrites its
    /// key `FleetKeys::waiting`, at most once every [`RENEW_EVERY`]. If a later read finds an older
    /// revision of that key, the store has lost data.
    pub(super) fn look(
        &mut self,
        snapshot: &Snapshot,
        now: UnixNanos,
        entropy: &mut Entropy,
    ) -> Change {
        let change = self.decide(snapshot, now, entropy);
        let is_due = now < self.waited_at || now >= self.waited_at.after(RENEW_EVERY);
        if matches!(change, Change::StillWithout(_))
            && is_due
            && let Some(agreed) = self.confirmed()
        {
            self.retry.succeeded();
            self.phase = self.waiting(agreed, entropy);
        }
        change
    }

    /// Returns the phase in which this node rewrites its own key while it waits for a slot. If a
    /// later read finds an older revision of that key, the store has lost data. The write fails if
    /// that key or the fleet's agreement has changed since the last read of all slots.
    fn waiting(&mut self, agreed: Agreed, entropy: &mut Entropy) -> Phase {
        let (keys, node) = (&self.rule.keys, &self.rule.node);
        let (key, value) = (keys.waiting(node), entropy.nonce().to_string().into_bytes());
        self.waiting_value = Some(value.clone());
        let transaction = Transaction {
            compare: vec![
                Compare::Modified(keys.meta(), agreed.revision),
                Compare::Modified(key.clone(), self.waiting_found),
            ],
            write: vec![Write::put(key, value)],
            ..Transaction::default()
        };
        assert_guarded(&transaction);
        Phase::Waiting { transaction }
    }

    fn decide(&mut self, snapshot: &Snapshot, now: UnixNanos, entropy: &mut Entropy) -> Change {
        let SlotLease { rule, .. } = self;
        let Some(found) = snapshot.ranges.first().and_then(|meta| meta.first()) else {
            self.phase = Phase::Announcing {
                missing_at: now,
                lease: None,
            };
            return Change::StillWithout(without(SlotLack::Founding, ANSWER_AFTER));
        };
        // This node may have founded the fleet in an earlier attempt that got no response. If the
        // store has exactly the value that this node sent, the attempt succeeded. No other node can
        // have written that value, because it contains a random name.
        if let Some((_, floor)) = self.unanswered.take_if(|(meta, _)| *meta == found.value) {
            return Change::Founded(floor);
        }
        let agreed = match rule
            .layout
            .compare(&rule.keys, Some(found), now, entropy.nonce())
        {
            Ok(Agreement::Agreed(agreed)) => agreed,
            Ok(Agreement::ToWrite(transaction)) => {
                self.phase = Phase::Agreeing {
                    transaction,
                    founds: None,
                };
                return Change::None;
            }
            Err(error) => return Change::Disagrees(error),
        };
        self.agreed = Some(agreed.clone());
        self.is_confirmed = true;
        self.is_regressed = false;
        self.high_water
            .meet(agreed.fleet, agreed.era(), snapshot.revision, now);
        self.high_water
            .adopted(agreed.least, &agreed.adoptions, agreed.records);
        let [_, horizons, holders, waiting] = snapshot.ranges.as_slice() else {
            panic!("all slots are four ranges")
        };
        let own_key = self.rule.keys.waiting(&self.rule.node);
        let found = waiting.iter().find(|entry| entry.key == own_key);
        self.waiting_found = found.map_or(Revision::ABSENT, |entry| entry.modified);
        self.clock_check
            .look((self.asked_at, now), horizons, holders, &self.rule.node);
        if let Some(refusal) = self.clock_check.refusal() {
            self.wait_at_most(LOOK_AGAIN_MAX, now, entropy);
            return Change::StillWithout(refusal);
        }
        if now < agreed.floor {
            let lack = SlotLack::BeforeFloor {
                floor: agreed.floor,
            };
            return self.look_again(now, lack, agreed.floor.since(now), entropy);
        }
        let SlotLease { rule, .. } = self;
        let share = rule.layout.share;
        match slot_choice::choose(
            snapshot,
            &rule.keys,
            share,
            &rule.node,
            now,
            rule.clock.max_ahead,
            entropy,
        ) {
            Choice::Take(free) => {
                self.phase = Phase::Claiming {
                    free,
                    agreed,
                    lease: None,
                };
                Change::None
            }
            Choice::Rests(rests) => self.look_again(now, SlotLack::NoneFree, rests, entropy),
            Choice::AllHeld => self.look_again(now, SlotLack::NoneFree, LOOK_AGAIN_MAX, entropy),
        }
    }

    /// Founds the fleet, which did not exist at `missing_at`. If another node has founded the fleet
    /// in the meantime, this node looks for a slot instead.
    ///
    /// If this node's clock is more than `skew_max` ahead of another founder's clock, this node
    /// waits and reads again. Its clock may be wrong, and a floor that is too high cannot be
    /// lowered while any node mints above it.
    pub(super) fn found(
        &mut self,
        missing_at: UnixNanos,
        snapshot: &Snapshot,
        now: UnixNanos,
        entropy: &mut Entropy,
    ) -> Change {
        let SlotLease { rule, .. } = self;
        let [meta, founders] = snapshot.ranges.as_slice() else {
            panic!("two ranges were asked for")
        };
        if !meta.is_empty() {
            self.phase = Phase::Looking;
            return Change::None;
        }
        let ahead = founders::ahead_of_earliest(founders, &rule.node, now);
        if ahead > rule.clock.skew_max {
            self.wait_at_most(LOOK_AGAIN_MAX, now, entropy);
            return Change::StillWithout(without(
                SlotLack::AheadOfFounder { ahead },
                LOOK_AGAIN_MAX,
            ));
        }
        // Compute the floor from `missing_at`, the time at which this node found no fleet. If the
        // store was wiped, all lost reservations were made before that time. The later time `now`
        // would raise the floor needlessly.
        let floor = ceil_to_millis(rule.founding.floor(missing_at, rule.clock.max_ahead));
        match rule
            .layout
            .compare(&rule.keys, None, floor, entropy.nonce())
        {
            Ok(Agreement::ToWrite(transaction)) => {
                self.phase = Phase::Agreeing {
                    transaction,
                    founds: Some(floor),
                };
                Change::None
            }
            Ok(Agreement::Agreed(_)) => panic!("nobody has agreed on what is not there"),
            Err(error) => Change::Disagrees(error),
        }
    }

    /// Makes this node read the slots again after at most `wait`. A `wait` above [`LOOK_AGAIN_MAX`]
    /// is shortened to it, because another node may release a slot early. The returned refusal
    /// tells callers to retry after `wait`.
    pub(super) fn look_again(
        &mut self,
        now: UnixNanos,
        lack: SlotLack,
        wait: Duration,
        entropy: &mut Entropy,
    ) -> Change {
        self.wait_at_most(wait.min(LOOK_AGAIN_MAX), now, entropy);
        Change::StillWithout(without(lack, wait))
    }

    pub(super) fn wait_at_most(&mut self, most: Duration, now: UnixNanos, entropy: &mut Entropy) {
        self.retry
            .wait_until(now.after(retry::between(most / 2, most, entropy)));
    }

    pub(super) fn acquire(
        &self,
        free: FreeSlot,
        agreed: Agreed,
        lease: Lease,
        now: UnixNanos,
        entropy: &mut Entropy,
    ) -> Phase {
        let rule = &self.rule;
        let start = free.horizon.max(agreed.floor).max(now);
        assert!(
            start >= free.horizon,
            "a slot is not used below the horizon that was found"
        );
        let reserves = Reserved {
            horizon: ceil_to_millis(start.after(Reservation::FIRST)),
            sent_at: now,
        };
        let known_rows_key = rule.keys.known_rows(rule.node.instance, lease);
        let (slot_key, horizon_key, attempt) = (
            rule.keys.slot(free.slot),
            rule.keys.horizon(free.slot),
            entropy.nonce(),
        );
        let holder = SlotRecord::new(rule.node.instance, &rule.node.node, &rule.node.addr, now);
        let horizon = HorizonRecord::new(reserves.horizon, rule.node.instance, attempt, now);
        let transaction = Transaction {
            compare: vec![
                Compare::Modified(rule.keys.meta(), agreed.revision),
                Compare::Created(slot_key.clone(), free.holder),
                Compare::Modified(horizon_key.clone(), free.revision),
                Compare::Created(known_rows_key.clone(), Revision::ABSENT),
                // The node rewrites this key while it waits for a slot. If a restore since the last
                // read has undone a write of the key, this comparison makes the transaction fail.
                Compare::Modified(rule.keys.waiting(&rule.node), self.waiting_found),
            ],
            write: vec![
                Write::Put {
                    key: slot_key,
                    value: holder.to_bytes(),
                    lease: Some(lease),
                },
                Write::put(horizon_key, horizon.to_bytes()),
                known_rows(known_rows_key, lease),
            ],
            otherwise: vec![Range::one(rule.keys.horizon(free.slot))],
            ..Transaction::default()
        };
        let claim = Claim {
            slot: free.slot,
            agreed,
            lease,
            holder: free.holder,
            start,
        };
        Phase::Acquiring {
            claim,
            pending: Pending::new(transaction, attempt, reserves),
        }
    }
}
