//! The lease of a slot: a node finds, takes, renews and releases the slot.

use std::time::Duration;

use super::clock_check::ClockCheck;
use super::exchange::{Acquired, Change, Reply, Request, Step, Want, without};
use super::founders::announcement;
use super::holding::{Held, Holding};
use super::reservation::Pending;
use super::retry::{self, Retry};
use super::rule::{LEASE, LeaseRule};
use crate::agreement::Agreed;
use crate::high_water::{HighWater, Regression};
use crate::nonce::Entropy;
use crate::slot_choice::FreeSlot;
use crate::{CoordinatorError, Lease, Outcome, OwnKey, Revision, Transaction};
use idmint_core::minting::SlotLack;
use idmint_core::time::UnixNanos;

/// The longest time until a node that waits for a slot reads all slots again.
pub(super) const LOOK_AGAIN_MAX: Duration = Duration::from_secs(2);

/// The time that a founder waits between its own announcement and its read of other nodes'
/// announcements.
pub(super) const ANSWER_AFTER: Duration = Duration::from_secs(2);

/// The maximum number of times that a node sends the release of its slot without a response. After
/// that, the slot becomes free when its lease expires.
const RELEASES_MAX: u32 = 3;

/// The state machine of a slot's lease. `next` returns the next request at a given time. `answer`
/// takes the reply, and returns the effect of the reply on the mint.
///
/// At most one request is in flight.
#[derive(Debug, Clone)]
pub(crate) struct SlotLease {
    pub(super) rule: LeaseRule,
    pub(super) phase: Phase,
    pub(super) retry: Retry,
    pub(super) is_waiting_for_reply: bool,
    /// The time at which the last request was sent.
    pub(super) asked_at: UnixNanos,
    /// The fleet's agreement that this node last agreed with.
    pub(super) agreed: Option<Agreed>,
    /// `true` if the last response confirmed the agreement in `agreed`.
    pub(super) is_confirmed: bool,
    pub(super) clock_check: ClockCheck,
    /// The highest values that the coordinator has reported to this node or its earlier processes.
    /// A lower value in a later response shows a loss of data.
    pub(crate) high_water: HighWater,
    /// `true` if the last response showed that the coordinator has lost acknowledged data.
    pub(super) is_regressed: bool,
    /// The time at which this node last wrote its waiting key, which it rewrites while it has no
    /// slot.
    pub(super) waited_at: UnixNanos,
    /// The revision of the waiting key at the last read of all slots. This node rewrites the
    /// waiting key while it has no slot.
    pub(super) waiting_found: Revision,
    /// The value that this node last sent for the waiting key, which it rewrites while it has no
    /// slot. `None` before the first write.
    pub(super) waiting_value: Option<Vec<u8>>,
    /// The last attempt to found a fleet, if its request failed and may have been done
    /// nevertheless. Contains the agreement that this node sent, and the floor in it.
    pub(super) unanswered: Option<(Vec<u8>, UnixNanos)>,
}

#[derive(Debug, Clone)]
pub(super) enum Phase {
    /// This node reads the fleet's agreement and all slots.
    Looking,
    /// This node found no fleet at `missing_at`, and wants to found one. It first stores its clock
    /// reading for other founders. The founder whose clock is too far ahead waits for the others.
    Announcing {
        missing_at: UnixNanos,
        lease: Option<Lease>,
    },
    /// This node has announced its clock reading, and reads the announcements of the other
    /// founders.
    Asking { missing_at: UnixNanos },
    /// This node adds its formats to the fleet's agreement, or creates the fleet. In the second
    /// case, `founds` is the fleet's floor.
    Agreeing {
        transaction: Transaction,
        founds: Option<UnixNanos>,
    },
    /// This node rewrites its waiting key while it has no slot. If a later read finds an older
    /// revision of that key, the store has lost data.
    Waiting { transaction: Transaction },
    /// This node has chosen a slot, and asks for a lease.
    Claiming {
        free: FreeSlot,
        agreed: Agreed,
        lease: Option<Lease>,
    },
    /// This node takes the chosen slot.
    Acquiring { claim: Claim, pending: Pending },
    /// This node holds the slot.
    Holding(Holding),
    /// This node releases the slot.
    Releasing {
        transaction: Transaction,
        tries: u32,
    },
    /// This node holds no slot, and will not take another one.
    Released,
}

/// A slot that is being taken.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub(super) slot: u32,
    pub(super) agreed: Agreed,
    pub(super) lease: Lease,
    /// The revision that created the key of the slot's earlier holder, or 0 if the slot had none.
    /// Copied from [`FreeSlot::holder`].
    pub(super) holder: Revision,
    pub(super) start: UnixNanos,
}

impl SlotLease {
    pub(crate) fn new(rule: LeaseRule, high_water: HighWater) -> SlotLease {
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
            waited_at: UnixNanos::default(),
            waiting_found: Revision::ABSENT,
            waiting_value: None,
            unanswered: None,
        }
    }

    /// `true` if the coordinator has lost acknowledged data.
    pub(crate) fn is_regressed(&self) -> bool {
        self.is_regressed
    }

    /// Returns the fleet's agreement if the last response confirmed it, and `None` otherwise, for
    /// example after a loss of data.
    pub(crate) fn confirmed(&self) -> Option<Agreed> {
        self.agreed.clone().filter(|_| self.is_confirmed)
    }

    /// Returns the state of the key that this node rewrites regularly: its slot's horizon, or the
    /// waiting key while it has no slot. Returns `None` if the node has no slot and has not written
    /// its waiting key yet.
    pub(crate) fn own_key(&self) -> Option<OwnKey> {
        if let Phase::Holding(holding) = &self.phase {
            return Some(holding.horizon(&self.rule));
        }
        let (key, revision) = self.high_water.waiting()?.clone();
        Some(OwnKey {
            key,
            revision,
            sent: self.waiting_value.clone(),
            is_slot: false,
        })
    }

    /// Makes the next read or renewal due at once. Call this after a response about records
    /// contradicted earlier ones, because the store may have lost data.
    pub(crate) fn look_anew(&mut self, now: UnixNanos) {
        self.waited_at = UnixNanos::default();
        match &mut self.phase {
            Phase::Holding(holding) => holding.renew_now(now),
            Phase::Looking => self.retry.succeeded(),
            Phase::Announcing { .. }
            | Phase::Asking { .. }
            | Phase::Agreeing { .. }
            | Phase::Waiting { .. }
            | Phase::Claiming { .. }
            | Phase::Acquiring { .. }
            | Phase::Releasing { .. }
            | Phase::Released => {}
        }
    }

    /// Returns the comparison of this node's clock with the fleet's clocks.
    pub(crate) fn clock_check(&self) -> &ClockCheck {
        &self.clock_check
    }

    /// `true` if this node holds no slot and has not chosen one.
    pub(crate) fn is_looking(&self) -> bool {
        matches!(self.phase, Phase::Looking)
    }

    /// Discards the observations of other nodes' clocks, because this node's clock was just set.
    /// The observations were timed by the clock before that.
    pub(crate) fn clock_was_set(&mut self) {
        self.clock_check.forget();
        self.waited_at = UnixNanos::default();
        self.retry = Retry::default();
    }

    /// Returns the next step at `now`: send a request, wait, or end.
    ///
    /// # Panics
    /// Panics if the last request has no reply yet.
    pub(crate) fn next(&mut self, now: UnixNanos, want: Want, entropy: &mut Entropy) -> Step {
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
        } = &self.phase
        {
            self.phase = self.acquire(*free, agreed.clone(), *lease, now, entropy);
        }
        let request = match &mut self.phase {
            Phase::Looking => Request::Read(self.rule.keys.all_slots()),
            Phase::Announcing { lease: None, .. } | Phase::Claiming { .. } => Request::Grant(LEASE),
            Phase::Announcing {
                lease: Some(lease), ..
            } => Request::Commit(announcement(&self.rule, *lease, now)),
            Phase::Asking { .. } => Request::Read(self.rule.keys.founding()),
            Phase::Agreeing { transaction, .. }
            | Phase::Waiting { transaction }
            | Phase::Releasing { transaction, .. } => Request::Commit(transaction.clone()),
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

    /// Handles the reply to the last request, and returns the effect of the reply on the mint.
    ///
    /// # Panics
    /// Panics if no request is in flight, or if the reply does not match the kind of the request.
    pub(crate) fn answer(&mut self, now: UnixNanos, reply: Reply, entropy: &mut Entropy) -> Change {
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

    /// Releases the slot, or stops looking for one. A request in flight is abandoned. If that
    /// request took a slot, the slot becomes free when its lease expires.
    pub(crate) fn release(&mut self) {
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
        // The reply to the request in flight no longer matters.
        self.is_waiting_for_reply = false;
        self.retry.succeeded();
    }

    fn failed(&mut self, error: &CoordinatorError) -> Change {
        let is_refused = matches!(
            error,
            CoordinatorError::Refused(_) | CoordinatorError::Denied(_)
        );
        match &mut self.phase {
            // The coordinator refused to make this node the holder of the slot, usually because the
            // new lease has ended. An earlier copy of the transaction may have been committed,
            // which the next read of all slots shows.
            Phase::Acquiring { .. } if is_refused => {
                self.phase = Phase::Looking;
                Change::None
            }
            Phase::Holding(holding) if is_refused && holding.cannot_reclaim() => {
                self.phase = Phase::Looking;
                Change::Fenced
            }
            // A change of the agreement reserves no time for minting, so it can be abandoned. Start
            // again with a read. If the change was to found the fleet, the lease of this node's
            // announcement may have ended.
            Phase::Agreeing {
                transaction,
                founds,
            } => {
                let meta = transaction.value_of(&self.rule.keys.meta());
                self.unanswered = founds.and_then(|floor| Some((meta?.to_vec(), floor)));
                self.phase = Phase::Looking;
                Change::None
            }
            // Read all slots again to learn whether the key of a waiting node was written. If there
            // is still no fleet, this node announces its clock reading under a new lease.
            Phase::Announcing { .. } | Phase::Waiting { .. } => {
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
        if let Reply::Read(snapshot)
        | Reply::Outcome(Outcome::Committed(snapshot) | Outcome::Refused(snapshot)) = &reply
        {
            self.high_water.see_term(snapshot.term);
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
            (Phase::Waiting { .. }, Reply::Outcome(outcome)) => {
                self.phase = Phase::Looking;
                if let Outcome::Committed(written) = outcome {
                    // The write compared the agreement's revision, so the agreement is still
                    // current.
                    self.is_confirmed = true;
                    let key = self.rule.keys.waiting(&self.rule.node);
                    self.high_water.wait_by(Some((key, written.revision)));
                    self.waited_at = now;
                    self.wait_at_most(LOOK_AGAIN_MAX, now, entropy);
                }
                Change::None
            }
            (
                Phase::Announcing { lease, .. } | Phase::Claiming { lease, .. },
                Reply::Granted(granted),
            ) => {
                *lease = Some(granted);
                Change::None
            }
            (Phase::Acquiring { claim, pending }, Reply::Outcome(outcome)) => {
                let (claim, pending) = (claim.clone(), pending.clone());
                self.acquired(claim, &pending, &outcome)
            }
            (Phase::Holding(holding), reply) => {
                self.is_confirmed = matches!(reply, Reply::Outcome(_));
                let held = holding.answer(now, reply, &self.rule, entropy);
                let agreed = holding.agreed();
                // The fleet may have adopted a folder meanwhile.
                self.high_water
                    .adopted(agreed.least, &agreed.adoptions, agreed.records);
                self.agreed = Some(agreed);
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

    /// Checks that a reply does not contradict the coordinator's earlier responses. A contradiction
    /// shows that the coordinator has lost data.
    fn check(&self, reply: &Reply) -> Result<(), Regression> {
        let (high_water, keys) = (&self.high_water, &self.rule.keys);
        match (&self.phase, reply) {
            (Phase::Looking, Reply::Read(snapshot)) => high_water.check_all(keys, snapshot),
            (
                Phase::Acquiring { .. } | Phase::Holding(_) | Phase::Waiting { .. },
                Reply::Outcome(Outcome::Committed(written)),
            ) => {
                high_water.check_term(written.term)?;
                high_water.check_written(written.revision)
            }
            (Phase::Holding(holding), Reply::Outcome(Outcome::Refused(snapshot))) => {
                high_water.check_slot(keys, holding.slot(), snapshot)
            }
            _ => Ok(()),
        }
    }

    /// Gives up the slot after a loss of data. This node continues to read all slots. It takes a
    /// slot again only when the lost data is back or an operator has run `fence-restore`.
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

    fn acquired(&mut self, claim: Claim, pending: &Pending, outcome: &Outcome) -> Change {
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
        } = claim;
        let (reserved, floor) = (pending.reserves, agreed.floor);
        // Find the revision that created the slot holder's key. If an earlier process of this node
        // still held the slot, overwriting the key has kept that revision.
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
        self.high_water.wait_by(None);
        self.waited_at = UnixNanos::default();
        self.high_water
            .acknowledge(slot, reserved.horizon, revision, reserved.sent_at);
        Change::Acquired(Acquired {
            slot,
            start,
            floor,
            reserved,
        })
    }
}
