//! The lease of a slot, from the first look to giving it back.

use std::time::Duration;

use super::clock_check::ClockCheck;
use super::exchange::{Acquired, Change, Reply, Request, Step, Want};
use super::holding::{Held, Holding};
use super::reservation::{LEASE, Pending, Reserved};
use super::retry::{self, Retry};
use super::rule::LeaseRule;
use crate::cluster::agreement::{Agreed, Agreement};
use crate::cluster::high_water::{HighWater, Regression};
use crate::cluster::stored::{HorizonRecord, SlotRecord, ceil_to_millis};
use crate::cluster::survey::{self, Choice, FreeSlot};
use crate::cluster::token::Entropy;
use crate::minting::{Refusal, Reservation, SlotLack};
use crate::storage::{Compare, CoordinatorError, Lease, Outcome, Range, Revision, Snapshot, Transaction, Write};
use crate::time::UnixNanos;

/// How long to wait for a slot that nobody gives back before looking again.
const LOOK_AGAIN_MAX: Duration = Duration::from_secs(2);

/// How many times a slot is given back without an answer before it is left to its lease.
const RELEASES_MAX: u32 = 3;

/// The lease of a slot: told the time, it says what to send; told what came of it, it says what that means.
///
/// At any time one request is under way, or none.
#[derive(Debug, Clone)]
pub(in crate::cluster) struct SlotLease {
    rule: LeaseRule,
    phase: Phase,
    retry: Retry,
    is_waiting_for_reply: bool,
    /// When the last request was sent.
    asked_at: UnixNanos,
    /// What the fleet said when this node last agreed with it.
    agreed: Option<Agreed>,
    clock_check: ClockCheck,
    /// What the coordinator has told this node so far, in earlier processes too.
    pub(in crate::cluster) high_water: HighWater,
    /// The coordinator has lost some of it, when it was last asked.
    is_regressed: bool,
}

#[derive(Debug, Clone)]
enum Phase {
    /// Reads what there is.
    Looking,
    /// Tells the fleet how this node mints.
    Agreeing(Transaction),
    /// Has chosen a slot.
    Claiming { free: FreeSlot, agreed: Agreed, lease: Option<Lease> },
    /// Takes it.
    Acquiring { claim: Claim, pending: Pending },
    /// Has it.
    Holding(Holding),
    /// Gives it back.
    Releasing { transaction: Transaction, tries: u32 },
    /// Has nothing, and will have nothing.
    Released,
}

/// A slot that is being taken.
#[derive(Debug, Clone, Copy)]
struct Claim {
    slot: u32,
    agreed: Agreed,
    lease: Lease,
    /// Who held it, as [`FreeSlot::holder`].
    holder: Revision,
    start: UnixNanos,
}

impl SlotLease {
    pub(in crate::cluster) fn new(rule: LeaseRule, high_water: HighWater) -> SlotLease {
        let clock_check = ClockCheck::new(rule.clock.skew_max);
        SlotLease {
            rule,
            clock_check,
            phase: Phase::Looking,
            retry: Retry::default(),
            is_waiting_for_reply: false,
            asked_at: UnixNanos::default(),
            agreed: None,
            high_water,
            is_regressed: false,
        }
    }

    /// Whether the coordinator has lost what it had acknowledged.
    pub(in crate::cluster) fn is_regressed(&self) -> bool {
        self.is_regressed
    }

    /// What the fleet has agreed on and this node agrees with; `None` before it has looked, and while the
    /// coordinator has lost something.
    pub(in crate::cluster) fn agreed(&self) -> Option<Agreed> {
        self.agreed
    }

    /// What the clocks of the fleet say of this one.
    pub(in crate::cluster) fn clock_check(&self) -> &ClockCheck {
        &self.clock_check
    }

    /// Whether no slot is held, nor asked for.
    pub(in crate::cluster) fn is_looking(&self) -> bool {
        matches!(self.phase, Phase::Looking)
    }

    /// This clock was set: what was seen at other instants of it says nothing any more.
    pub(in crate::cluster) fn clock_was_set(&mut self) {
        self.clock_check.forget();
        self.retry = Retry::default();
    }

    /// What to do at this instant.
    ///
    /// # Panics
    /// While a reply is awaited.
    pub(in crate::cluster) fn next(&mut self, now: UnixNanos, want: Want, entropy: &mut Entropy) -> Step {
        assert!(!self.is_waiting_for_reply, "one request after the other");
        if matches!(self.phase, Phase::Released) {
            return Step::Ended;
        }
        if now < self.retry.not_before() {
            return Step::WaitUntil(self.retry.not_before());
        }
        if let Phase::Claiming { free, agreed, lease: Some(lease) } = self.phase {
            self.phase = self.acquire(free, agreed, lease, now, entropy);
        }
        let request = match &mut self.phase {
            Phase::Looking => Request::Read(self.rule.keys.survey()),
            Phase::Agreeing(transaction) | Phase::Releasing { transaction, .. } => Request::Commit(transaction.clone()),
            Phase::Claiming { .. } => Request::Grant(LEASE),
            Phase::Acquiring { pending, .. } => Request::Commit(pending.transaction.clone()),
            Phase::Holding(holding) => match holding.next(now, want, &self.rule, entropy) {
                Some(request) => request,
                None => return Step::WaitUntil(holding.wakes_at()),
            },
            Phase::Released => return Step::Ended,
        };
        self.is_waiting_for_reply = true;
        self.asked_at = now;
        Step::Send(request)
    }

    /// What the reply to the last request means.
    ///
    /// # Panics
    /// When none is awaited, or it is of another kind than the request.
    pub(in crate::cluster) fn answer(&mut self, now: UnixNanos, reply: Reply, entropy: &mut Entropy) -> Change {
        assert!(self.is_waiting_for_reply, "a reply comes after its request");
        self.is_waiting_for_reply = false;
        match reply {
            Reply::Failed(error) => {
                self.retry.failed(now, entropy);
                self.failed(&error)
            }
            reply => {
                self.retry.succeeded();
                self.succeeded(now, reply, entropy)
            }
        }
    }

    /// Gives the slot back, or stops looking for one: what was sent and not answered is left to its lease.
    pub(in crate::cluster) fn release(&mut self) {
        self.phase = match &self.phase {
            Phase::Holding(holding) => match holding.release(&self.rule) {
                Some(transaction) => Phase::Releasing { transaction, tries: 0 },
                None => Phase::Released,
            },
            Phase::Releasing { transaction, tries } => {
                Phase::Releasing { transaction: transaction.clone(), tries: *tries }
            }
            _ => Phase::Released,
        };
        // Whatever comes back for what is under way is of no use any more.
        self.is_waiting_for_reply = false;
        self.retry.succeeded();
    }

    fn failed(&mut self, error: &CoordinatorError) -> Change {
        let is_refused = matches!(error, CoordinatorError::Refused(_));
        match &mut self.phase {
            // Its lease has ended, so it will never be done; whether an earlier copy was, only another look tells.
            Phase::Acquiring { .. } if is_refused => {
                self.phase = Phase::Looking;
                Change::None
            }
            Phase::Holding(holding) if is_refused && holding.cannot_reclaim() => {
                self.phase = Phase::Looking;
                Change::Fenced
            }
            // Nothing in it is of this instant, so it need not be repeated as it was.
            Phase::Agreeing(_) => {
                self.phase = Phase::Looking;
                Change::None
            }
            Phase::Releasing { tries, .. } => {
                *tries += 1;
                if *tries < RELEASES_MAX {
                    return Change::None;
                }
                self.phase = Phase::Released;
                Change::Released
            }
            Phase::Looking | Phase::Claiming { .. } | Phase::Acquiring { .. } | Phase::Holding(_) | Phase::Released => {
                Change::None
            }
        }
    }

    fn succeeded(&mut self, now: UnixNanos, reply: Reply, entropy: &mut Entropy) -> Change {
        if let Err(regression) = self.check(&reply) {
            return self.regressed(regression, now, entropy);
        }
        if let (Phase::Holding(_), Reply::Outcome(Outcome::Committed(written))) = (&self.phase, &reply) {
            let [horizons, holders] = written.ranges.as_slice() else { panic!("a renewal reads two ranges") };
            self.clock_check.look((self.asked_at, now), horizons, holders, &self.rule.node);
        }
        match (&mut self.phase, reply) {
            (Phase::Looking, Reply::Read(snapshot)) => self.look(&snapshot, now, entropy),
            (Phase::Agreeing(_), Reply::Outcome(_)) => {
                self.phase = Phase::Looking;
                Change::None
            }
            (Phase::Claiming { lease, .. }, Reply::Granted(granted)) => {
                *lease = Some(granted);
                Change::None
            }
            (Phase::Acquiring { claim, pending }, Reply::Outcome(outcome)) => {
                let (claim, pending) = (*claim, pending.clone());
                self.acquired(&claim, &pending, &outcome)
            }
            (Phase::Holding(holding), reply) => {
                let held = holding.answer(now, reply, &self.rule, entropy);
                self.agreed = Some(holding.agreed());
                match held {
                    Held::Same => Change::None,
                    Held::Extended(reserved) => {
                        let (slot, revision) = (holding.slot(), holding.revision());
                        self.high_water.acknowledge(slot, reserved.horizon, revision, reserved.sent_at);
                        Change::Extended(reserved)
                    }
                    Held::Fenced => {
                        self.phase = Phase::Looking;
                        Change::Fenced
                    }
                    Held::Disagrees(error) => Change::Disagrees(error),
                }
            }
            (Phase::Releasing { .. }, Reply::Outcome(_)) => {
                self.phase = Phase::Released;
                Change::Released
            }
            (phase, reply) => panic!("{reply:?} is no reply to what was asked in {phase:?}"),
        }
    }

    /// Whether a reply follows from all that the coordinator has told this node before.
    fn check(&self, reply: &Reply) -> Result<(), Regression> {
        let (high_water, keys) = (&self.high_water, &self.rule.keys);
        match (&self.phase, reply) {
            (Phase::Looking, Reply::Read(snapshot)) => high_water.check_all(keys, snapshot),
            (Phase::Acquiring { .. } | Phase::Holding(_), Reply::Outcome(Outcome::Committed(written))) => {
                high_water.check_written(written.revision)
            }
            (Phase::Holding(holding), Reply::Outcome(Outcome::Refused(snapshot))) => {
                high_water.check_slot(keys, holding.slot(), snapshot)
            }
            _ => Ok(()),
        }
    }

    /// Takes no slot and keeps none until the coordinator is as it was, or was fenced; looks whether it is.
    fn regressed(&mut self, regression: Regression, now: UnixNanos, entropy: &mut Entropy) -> Change {
        self.phase = Phase::Looking;
        self.agreed = None;
        self.is_regressed = true;
        self.retry.wait_until(now.after(retry::between(LOOK_AGAIN_MAX / 2, LOOK_AGAIN_MAX, entropy)));
        Change::Regressed(regression)
    }

    fn look(&mut self, snapshot: &Snapshot, now: UnixNanos, entropy: &mut Entropy) -> Change {
        let SlotLease { rule, .. } = self;
        let found = snapshot.ranges.first().and_then(|meta| meta.first());
        // As at a start without a record: whoever minted before was at most so far ahead.
        let floor = now.after(rule.clock.max_ahead);
        let agreed = match rule.layout.compare(&rule.keys, found, floor, entropy.token()) {
            Ok(Agreement::Agreed(agreed)) => agreed,
            Ok(Agreement::ToWrite(transaction)) => {
                self.phase = Phase::Agreeing(transaction);
                return Change::None;
            }
            Err(error) => return Change::Disagrees(error),
        };
        self.agreed = Some(agreed);
        self.is_regressed = false;
        self.high_water.meet(agreed.fleet, agreed.floor, snapshot.revision, now);
        let [_, horizons, holders] = snapshot.ranges.as_slice() else { panic!("a survey has three ranges") };
        self.clock_check.look((self.asked_at, now), horizons, holders, &self.rule.node);
        if let Some(refusal) = self.clock_check.refusal() {
            self.wait_at_most(LOOK_AGAIN_MAX, now, entropy);
            return Change::StillWithout(refusal);
        }
        if now < agreed.floor {
            return self.look_again(now, SlotLack::Asking, agreed.floor.since(now), entropy);
        }
        let SlotLease { rule, .. } = self;
        let share = rule.layout.share;
        match survey::choose(snapshot, &rule.keys, share, &rule.node, now, rule.clock.max_ahead, entropy) {
            Choice::Take(free) => {
                self.phase = Phase::Claiming { free, agreed, lease: None };
                Change::None
            }
            Choice::Rests(rests) => self.look_again(now, SlotLack::NoneFree, rests, entropy),
            Choice::AllHeld => self.look_again(now, SlotLack::NoneFree, LOOK_AGAIN_MAX, entropy),
        }
    }

    /// Looks again when the wait is over, or earlier: somebody may give a slot back.
    fn look_again(&mut self, now: UnixNanos, lack: SlotLack, wait: Duration, entropy: &mut Entropy) -> Change {
        self.wait_at_most(wait.min(LOOK_AGAIN_MAX), now, entropy);
        Change::StillWithout(Refusal::NoWorkerSlot { lack, retry_after: wait })
    }

    fn wait_at_most(&mut self, most: Duration, now: UnixNanos, entropy: &mut Entropy) {
        self.retry.wait_until(now.after(retry::between(most / 2, most, entropy)));
    }

    fn acquire(&self, free: FreeSlot, agreed: Agreed, lease: Lease, now: UnixNanos, entropy: &mut Entropy) -> Phase {
        let rule = &self.rule;
        let start = free.horizon.max(agreed.floor).max(now);
        assert!(start >= free.horizon, "a slot is not used below the horizon that was found");
        let reserves = Reserved { horizon: ceil_to_millis(start.after(Reservation::FIRST)), sent_at: now };
        let (slot_key, horizon_key, attempt) =
            (rule.keys.slot(free.slot), rule.keys.horizon(free.slot), entropy.token());
        let holder = SlotRecord::new(rule.node.instance, &rule.node.node, &rule.node.addr, now);
        let horizon = HorizonRecord::new(reserves.horizon, rule.node.instance, attempt, now);
        let transaction = Transaction {
            compare: vec![
                Compare::Modified(rule.keys.meta(), agreed.revision),
                Compare::Created(slot_key.clone(), free.holder),
                Compare::Modified(horizon_key.clone(), free.revision),
            ],
            write: vec![
                Write::Put { key: slot_key, value: holder.to_bytes(), lease: Some(lease) },
                Write::Put { key: horizon_key, value: horizon.to_bytes(), lease: None },
            ],
            otherwise: vec![Range::one(rule.keys.horizon(free.slot))],
            ..Transaction::default()
        };
        let claim = Claim { slot: free.slot, agreed, lease, holder: free.holder, start };
        Phase::Acquiring { claim, pending: Pending::new(transaction, attempt, reserves) }
    }

    fn acquired(&mut self, claim: &Claim, pending: &Pending, outcome: &Outcome) -> Change {
        let revision: Revision = match outcome {
            Outcome::Committed(written) => written.revision,
            Outcome::Refused(snapshot) => {
                let found = snapshot.ranges.first().and_then(|horizon| horizon.first());
                match found.filter(|_| pending.has_written(found)) {
                    Some(entry) => entry.modified,
                    None => {
                        self.phase = Phase::Looking;
                        return Change::None;
                    }
                }
            }
        };
        let Claim { slot, agreed, lease, holder, start } = *claim;
        let reserved = pending.reserves;
        // A key that is written over stays the one that was created.
        let created = if holder == Revision::ABSENT { revision } else { holder };
        self.phase = Phase::Holding(Holding::new(slot, agreed, (lease, created), revision, reserved));
        self.high_water.acknowledge(slot, reserved.horizon, revision, reserved.sent_at);
        Change::Acquired(Acquired { slot, start, floor: agreed.floor, reserved })
    }
}
