//! The lease of a slot, from the first look to giving it back.

use std::time::Duration;

use super::clock_check::ClockCheck;
use super::exchange::{Acquired, Change, Reply, Request, Step, Want, without};
use super::founders::announcement;
use super::holding::{Held, Holding};
use super::reservation::{LEASE, Pending};
use super::retry::{self, Retry};
use super::rule::LeaseRule;
use crate::cluster::agreement::Agreed;
use crate::cluster::high_water::{HighWater, Regression};
use crate::cluster::nonce::Entropy;
use crate::cluster::slot_choice::FreeSlot;
use crate::minting::SlotLack;
use crate::storage::{CoordinatorError, Lease, Outcome, OwnHorizon, Revision, Transaction};
use crate::time::UnixNanos;

/// How long to wait for a slot that nobody gives back before looking again.
pub(super) const LOOK_AGAIN_MAX: Duration = Duration::from_secs(2);

/// How long a founder waits before it looks who else would found the fleet.
pub(super) const ANSWER_AFTER: Duration = Duration::from_secs(2);

/// How many times a slot is given back without an answer before it is left to its lease.
const RELEASES_MAX: u32 = 3;

/// The lease of a slot: told the time, it says what to send; told what came of it, it says what that means.
///
/// At any time one request is under way, or none.
#[derive(Debug, Clone)]
pub(in crate::cluster) struct SlotLease {
    pub(super) rule: LeaseRule,
    pub(super) phase: Phase,
    pub(super) retry: Retry,
    pub(super) is_waiting_for_reply: bool,
    /// When the last request was sent.
    pub(super) asked_at: UnixNanos,
    /// What the fleet said when this node last agreed with it.
    pub(super) agreed: Option<Agreed>,
    /// Whether the last answer says that this still holds.
    pub(super) is_confirmed: bool,
    pub(super) clock_check: ClockCheck,
    /// What the coordinator has told this node so far, in earlier processes too.
    pub(in crate::cluster) high_water: HighWater,
    /// The coordinator has lost some of it, when it was last asked.
    pub(super) is_regressed: bool,
    /// What this node wrote to found a fleet, from which floor on, if it was not told what became of it.
    pub(super) unanswered: Option<(Vec<u8>, UnixNanos)>,
}

#[derive(Debug, Clone)]
pub(super) enum Phase {
    /// Reads what there is.
    Looking,
    /// There was no fleet at that instant: tells others who would found one what the clock of this node shows.
    Announcing {
        missing_at: UnixNanos,
        lease: Option<Lease>,
    },
    /// Has told them, and looks what theirs show.
    Asking { missing_at: UnixNanos },
    /// Tells the fleet how this node mints, or founds it, from an instant on.
    Agreeing {
        transaction: Transaction,
        founds: Option<UnixNanos>,
    },
    /// Has chosen a slot.
    Claiming {
        free: FreeSlot,
        agreed: Agreed,
        lease: Option<Lease>,
    },
    /// Takes it.
    Acquiring { claim: Claim, pending: Pending },
    /// Has it.
    Holding(Holding),
    /// Gives it back.
    Releasing {
        transaction: Transaction,
        tries: u32,
    },
    /// Has nothing, and will have nothing.
    Released,
}

/// A slot that is being taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    pub(super) slot: u32,
    pub(super) agreed: Agreed,
    pub(super) lease: Lease,
    /// Who held it, as [`FreeSlot::holder`].
    pub(super) holder: Revision,
    pub(super) start: UnixNanos,
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
            is_confirmed: false,
            high_water,
            is_regressed: false,
            unanswered: None,
        }
    }

    /// Whether the coordinator has lost what it had acknowledged.
    pub(in crate::cluster) fn is_regressed(&self) -> bool {
        self.is_regressed
    }

    /// What the fleet has agreed on and this node agrees with, if the last answer says so and follows from all that the
    /// coordinator has told this node before.
    pub(in crate::cluster) fn confirmed(&self) -> Option<Agreed> {
        self.agreed.filter(|_| self.is_confirmed)
    }

    /// The horizon of the slot that is held.
    pub(in crate::cluster) fn own_horizon(&self) -> Option<OwnHorizon> {
        match &self.phase {
            Phase::Holding(holding) => Some(holding.horizon(&self.rule)),
            _ => None,
        }
    }

    /// Asks as soon as it may whether all is as it was: answers to other requests of this node say that it is not.
    pub(in crate::cluster) fn look_anew(&mut self, now: UnixNanos) {
        match &mut self.phase {
            Phase::Holding(holding) => holding.renew_now(now),
            Phase::Looking => self.retry.succeeded(),
            Phase::Announcing { .. }
            | Phase::Asking { .. }
            | Phase::Agreeing { .. }
            | Phase::Claiming { .. }
            | Phase::Acquiring { .. }
            | Phase::Releasing { .. }
            | Phase::Released => {}
        }
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
    pub(in crate::cluster) fn next(
        &mut self,
        now: UnixNanos,
        want: Want,
        entropy: &mut Entropy,
    ) -> Step {
        assert!(!self.is_waiting_for_reply, "one request after the other");
        if matches!(self.phase, Phase::Released) {
            return Step::Ended;
        }
        if now < self.retry.not_before() {
            return Step::WaitUntil(self.retry.not_before());
        }
        if let Phase::Claiming {
            free,
            agreed,
            lease: Some(lease),
        } = self.phase
        {
            self.phase = self.acquire(free, agreed, lease, now, entropy);
        }
        let request = match &mut self.phase {
            Phase::Looking => Request::Read(self.rule.keys.all_slots()),
            Phase::Announcing { lease: None, .. } | Phase::Claiming { .. } => Request::Grant(LEASE),
            Phase::Announcing {
                lease: Some(lease), ..
            } => Request::Commit(announcement(&self.rule, *lease, now)),
            Phase::Asking { .. } => Request::Read(self.rule.keys.founding()),
            Phase::Agreeing { transaction, .. } | Phase::Releasing { transaction, .. } => {
                Request::Commit(transaction.clone())
            }
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
    pub(in crate::cluster) fn answer(
        &mut self,
        now: UnixNanos,
        reply: Reply,
        entropy: &mut Entropy,
    ) -> Change {
        assert!(self.is_waiting_for_reply, "a reply comes after its request");
        self.is_waiting_for_reply = false;
        self.is_confirmed = false;
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
                Some(transaction) => Phase::Releasing {
                    transaction,
                    tries: 0,
                },
                None => Phase::Released,
            },
            Phase::Releasing { transaction, tries } => Phase::Releasing {
                transaction: transaction.clone(),
                tries: *tries,
            },
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
            // Nothing in it is of this instant, so it need not be repeated as it was; a lease may have ended.
            Phase::Agreeing {
                transaction,
                founds,
            } => {
                let meta = transaction.value_of(&self.rule.keys.meta());
                self.unanswered = founds.and_then(|floor| Some((meta?.to_vec(), floor)));
                self.phase = Phase::Looking;
                Change::None
            }
            Phase::Announcing { .. } => {
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
            Phase::Looking
            | Phase::Asking { .. }
            | Phase::Claiming { .. }
            | Phase::Acquiring { .. }
            | Phase::Holding(_)
            | Phase::Released => Change::None,
        }
    }

    fn succeeded(&mut self, now: UnixNanos, reply: Reply, entropy: &mut Entropy) -> Change {
        if let Err(regression) = self.check(&reply) {
            return self.regressed(regression, now, entropy);
        }
        if let (Phase::Holding(_), Reply::Outcome(Outcome::Committed(written))) =
            (&self.phase, &reply)
        {
            let [horizons, holders] = written.ranges.as_slice() else {
                panic!("a renewal reads two ranges")
            };
            self.clock_check
                .look((self.asked_at, now), horizons, holders, &self.rule.node);
        }
        match (&mut self.phase, reply) {
            (Phase::Looking, Reply::Read(snapshot)) => self.look(&snapshot, now, entropy),
            (Phase::Announcing { missing_at, .. }, Reply::Outcome(_)) => {
                self.phase = Phase::Asking {
                    missing_at: *missing_at,
                };
                self.retry.wait_until(now.after(ANSWER_AFTER));
                Change::StillWithout(without(SlotLack::Founding, ANSWER_AFTER))
            }
            (Phase::Asking { missing_at }, Reply::Read(snapshot)) => {
                let missing_at = *missing_at;
                self.found(missing_at, &snapshot, now, entropy)
            }
            (Phase::Agreeing { founds, .. }, Reply::Outcome(outcome)) => {
                let founded = founds.filter(|_| matches!(outcome, Outcome::Committed(_)));
                self.phase = Phase::Looking;
                founded.map_or(Change::None, Change::Founded)
            }
            (
                Phase::Announcing { lease, .. } | Phase::Claiming { lease, .. },
                Reply::Granted(granted),
            ) => {
                *lease = Some(granted);
                Change::None
            }
            (Phase::Acquiring { claim, pending }, Reply::Outcome(outcome)) => {
                let (claim, pending) = (*claim, pending.clone());
                self.acquired(&claim, &pending, &outcome)
            }
            (Phase::Holding(holding), reply) => {
                self.is_confirmed = matches!(reply, Reply::Outcome(_));
                let held = holding.answer(now, reply, &self.rule, entropy);
                self.agreed = Some(holding.agreed());
                match held {
                    Held::Same => Change::None,
                    Held::Extended(reserved) => {
                        let (slot, revision) = (holding.slot(), holding.revision());
                        self.high_water.acknowledge(
                            slot,
                            reserved.horizon,
                            revision,
                            reserved.sent_at,
                        );
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
            (
                Phase::Acquiring { .. } | Phase::Holding(_),
                Reply::Outcome(Outcome::Committed(written)),
            ) => high_water.check_written(written.revision),
            (Phase::Holding(holding), Reply::Outcome(Outcome::Refused(snapshot))) => {
                high_water.check_slot(keys, holding.slot(), snapshot)
            }
            _ => Ok(()),
        }
    }

    /// Takes no slot and keeps none until the coordinator is as it was, or was fenced; looks whether it is.
    fn regressed(
        &mut self,
        regression: Regression,
        now: UnixNanos,
        entropy: &mut Entropy,
    ) -> Change {
        self.phase = Phase::Looking;
        self.agreed = None;
        self.is_regressed = true;
        self.retry.wait_until(now.after(retry::between(
            LOOK_AGAIN_MAX / 2,
            LOOK_AGAIN_MAX,
            entropy,
        )));
        Change::Regressed(regression)
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
        let Claim {
            slot,
            agreed,
            lease,
            holder,
            start,
        } = *claim;
        let reserved = pending.reserves;
        // A key that is written over stays the one that was created.
        let created = if holder == Revision::ABSENT {
            revision
        } else {
            holder
        };
        self.phase = Phase::Holding(Holding::new(
            slot,
            agreed,
            (lease, created),
            revision,
            reserved,
        ));
        self.high_water
            .acknowledge(slot, reserved.horizon, revision, reserved.sent_at);
        Change::Acquired(Acquired {
            slot,
            start,
            floor: agreed.floor,
            reserved,
        })
    }
}
