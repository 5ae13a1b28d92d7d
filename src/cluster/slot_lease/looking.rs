//! What a node does with what it has looked at: it founds a fleet, agrees with it, waits, or takes a slot.

use std::time::Duration;

use super::exchange::{Change, without};
use super::founders;
use super::reservation::{Pending, Reserved};
use super::retry;
use super::slot_lease::{ANSWER_AFTER, Claim, LOOK_AGAIN_MAX, Phase, SlotLease};
use crate::cluster::agreement::Agreed;
use crate::cluster::agreement::Agreement;
use crate::cluster::nonce::Entropy;
use crate::cluster::slot_choice::{self, Choice, FreeSlot};
use crate::cluster::stored::{HorizonRecord, SlotRecord, ceil_to_millis};
use crate::minting::{Reservation, SlotLack};
use crate::storage::{Compare, Lease, Range, Snapshot, Transaction, Write};
use crate::time::UnixNanos;

impl SlotLease {
    pub(super) fn look(
        &mut self,
        snapshot: &Snapshot,
        now: UnixNanos,
        entropy: &mut Entropy,
    ) -> Change {
        let SlotLease { rule, .. } = self;
        let Some(found) = snapshot.ranges.first().and_then(|meta| meta.first()) else {
            self.phase = Phase::Announcing {
                missing_at: now,
                lease: None,
            };
            return Change::StillWithout(without(SlotLack::Founding, ANSWER_AFTER));
        };
        // The name of a fleet is random, so this is what this node wrote without being told so.
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
        self.agreed = Some(agreed);
        self.is_confirmed = true;
        self.is_regressed = false;
        self.high_water
            .meet(agreed.fleet, agreed.floor, snapshot.revision, now);
        let [_, horizons, holders] = snapshot.ranges.as_slice() else {
            panic!("all slots are three ranges")
        };
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

    /// Founds the fleet that was missing at that instant, unless somebody has, or somebody else is about to whose clock is
    /// earlier: a floor that is too high cannot be lowered as long as anybody mints above it.
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
        // Whoever minted by a store that was wiped had been told so before it was seen to be empty.
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

    /// Looks again when the wait is over, or earlier: somebody may give a slot back.
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
            ],
            write: vec![
                Write::Put {
                    key: slot_key,
                    value: holder.to_bytes(),
                    lease: Some(lease),
                },
                Write::put(horizon_key, horizon.to_bytes()),
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
