//! What the lease of a slot means for minting: a session for each slot that is taken, and none without.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use super::fleet_clocks::Skew;
use super::high_water::{HighWater, Regression};
use super::nonce::Entropy;
use super::slot_lease::{
    Acquired, Change, DEADLINE, LeaseRule, Reply, Reserved, SlotLease, Step, Want,
};
use crate::minting::{Durable, Mint, Refusal, Session, SessionStart, SlotLack};
use crate::storage::{FormatsError, KnownFleet};
use crate::time::UnixNanos;

/// When callers should try again who were refused for want of a slot that may be had at any time.
const SOON: Duration = Duration::from_secs(1);

/// A slot whose renewal is as late as this is not waited for by callers any more.
const OVERDUE: Duration = Duration::from_secs(2);

/// The slots of one process, one after the other, and the sessions in which it mints with them.
#[derive(Debug)]
pub(super) struct LeasedSlots {
    pub(super) mint: Arc<Mint>,
    pub(super) lease: SlotLease,
    pub(super) entropy: Entropy,
    pub(super) held: Option<HeldSlot>,
    /// From the first slot on: from then on the clock must not go back.
    pub(super) has_minted: bool,
    /// What those who read and write records go by, and what they have found.
    pub(super) known: Arc<KnownFleet>,
    /// How often they had found something that cannot be, when the last request was sent.
    pub(super) doubts: u64,
}

/// A slot that is held, and the session of its worker numbers.
#[derive(Debug)]
pub(super) struct HeldSlot {
    pub(super) slot: u32,
    pub(super) session: Arc<Session>,
    pub(super) reserved_at: UnixNanos,
    /// Not while its renewal is overdue, the clock is wrong, or the slot was used further ahead than may be reserved yet.
    pub(super) is_minting: bool,
}

/// What became of these slots.
#[derive(Debug)]
pub(super) enum Event {
    /// What is minted may have changed, or not.
    None,
    /// This node has founded a fleet, which begins at this instant.
    Founded(UnixNanos),
    /// There is no slot yet, for this reason.
    Waiting(Refusal),
    /// More time is reserved.
    Renewed,
    /// This slot was taken.
    Acquired(u32),
    /// It was lost.
    Fenced(u32),
    /// The coordinator has lost what it had acknowledged.
    Regressed(Regression),
    /// This node may not mint in this fleet.
    Disagrees(FormatsError),
}

impl LeasedSlots {
    pub(super) fn new(
        mint: Arc<Mint>,
        rule: LeaseRule,
        high_water: HighWater,
        known: Arc<KnownFleet>,
        entropy: Entropy,
    ) -> LeasedSlots {
        mint.wait_for(without(SlotLack::Asking, SOON));
        let lease = SlotLease::new(rule, high_water);
        LeasedSlots {
            mint,
            lease,
            entropy,
            held: None,
            has_minted: false,
            known,
            doubts: 0,
        }
    }

    /// What to do at this instant. Callers wait for a horizon of `needed`, if any do.
    pub(super) fn next(&mut self, now: UnixNanos, needed: UnixNanos) -> Step {
        self.stop_if_overdue(now);
        self.wait_for_start(now);
        // Before the request: its answer is compared with what was seen when it was sent.
        self.lease.high_water.see(self.known.highest());
        let doubts = self.known.doubts();
        if doubts != self.doubts {
            self.doubts = doubts;
            self.lease.look_anew(now);
        }
        let want = match &self.held {
            None => Want {
                horizon: now,
                at_once: false,
            },
            Some(held) => {
                let is_short = needed > held.session.horizon() && needed <= now.after(DEADLINE);
                let needed = if is_short { needed } else { now };
                let at_once = is_short || (!held.session.is_open() && now >= held.opens_at());
                Want {
                    horizon: held.session.plan_extension(now, needed).horizon(),
                    at_once,
                }
            }
        };
        let step = self.lease.next(now, want, &mut self.entropy);
        // Before it is sent: a write may be refused for it, and be answered first.
        self.known.hold(self.lease.own_horizon());
        match step {
            Step::WaitUntil(until) => {
                let wakes_at = self.held.as_ref().and_then(|held| held.wakes_at(now));
                Step::WaitUntil(wakes_at.map_or(until, |wakes_at| until.min(wakes_at)))
            }
            step => step,
        }
    }

    /// Takes in what became of the last request.
    pub(super) fn answer(&mut self, now: UnixNanos, reply: Reply) -> Event {
        let event = self.take_in(now, reply);
        self.mint
            .clock()
            .refute(match self.lease.clock_check().refusal() {
                Some(Refusal::ClockAheadOfFleet { ahead }) => ahead,
                _ => Duration::ZERO,
            });
        self.follow_wall_clock(now);
        self.tell_known();
        event
    }

    /// Tells those who read and write records what the last answer says, if it says something.
    fn tell_known(&self) {
        self.known.hold(self.lease.own_horizon());
        if self.lease.is_regressed() {
            self.known.withdraw();
        } else if let Some(agreed) = self.lease.confirmed() {
            self.known
                .agree(agreed.meta(), self.lease.high_water.revision(), self.doubts);
        }
    }

    fn take_in(&mut self, now: UnixNanos, reply: Reply) -> Event {
        match self.lease.answer(now, reply, &mut self.entropy) {
            Change::None | Change::Released => Event::None,
            Change::Founded(floor) => Event::Founded(floor),
            Change::StillWithout(refusal) => {
                self.mint.wait_for(refusal.clone());
                Event::Waiting(refusal)
            }
            Change::Acquired(acquired) => {
                self.acquired(&acquired, now);
                Event::Acquired(acquired.slot)
            }
            Change::Extended(reserved) => {
                self.extended(reserved, now);
                Event::Renewed
            }
            Change::Fenced => Event::Fenced(
                self.give_up(SlotLack::Lost)
                    .expect("a slot that was lost was held"),
            ),
            Change::Regressed(regression) => {
                self.give_up(SlotLack::Regressed);
                Event::Regressed(regression)
            }
            Change::Disagrees(error) => {
                self.give_up(SlotLack::Lost);
                Event::Disagrees(error)
            }
        }
    }

    /// Whether the last answer says that this node agrees with its fleet, and that nothing was lost.
    pub(super) fn is_confirmed(&self) -> bool {
        self.lease.confirmed().is_some()
    }

    /// What the coordinator has told this node so far.
    pub(super) fn high_water(&self) -> &HighWater {
        &self.lease.high_water
    }

    /// The slot that is held.
    pub(super) fn slot(&self) -> Option<u32> {
        self.held.as_ref().map(|held| held.slot)
    }

    /// How far the clock was from those of the fleet at the last look, for certain.
    pub(super) fn skew(&self) -> Skew {
        self.lease.clock_check().skew()
    }

    /// Why nothing is minted by this clock, if those of the fleet say that it is wrong.
    pub(super) fn clock_refusal(&self) -> Option<Refusal> {
        self.lease.clock_check().refusal()
    }

    /// Why nothing is minted by number, if so.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.mint.session().err()
    }

    /// Below this instant ids can be minted now; `None` where there is no session.
    pub(super) fn usable_until(&self) -> Option<UnixNanos> {
        self.held
            .as_ref()
            .filter(|held| held.is_minting)
            .map(|held| held.session.horizon())
    }

    /// Stops minting, and gives the slot back, or stops looking for one.
    pub(super) fn release(&mut self) {
        self.give_up(SlotLack::Released);
        self.lease.release();
    }

    /// No renewal was acknowledged in time: nothing can be minted, and callers are told so without waiting.
    fn stop_if_overdue(&mut self, now: UnixNanos) {
        if self
            .held
            .as_ref()
            .is_some_and(|held| held.is_minting && held.is_overdue(now))
        {
            self.pause(without(SlotLack::Overdue, SOON));
        }
    }

    /// Nothing is minted in a slot before time above its start is reserved; callers are told when that can be.
    fn wait_for_start(&self, now: UnixNanos) {
        let Some(held) = self.held.as_ref().filter(|held| !held.session.is_open()) else {
            return;
        };
        if self.lease.clock_check().refusal().is_some() {
            return;
        }
        let (start, retry_after) = (held.session.start(), held.opens_at().since(now).max(SOON));
        self.mint.wait_for(match held.is_overdue(now) {
            true => without(SlotLack::Overdue, SOON),
            false => Refusal::SlotAhead { start, retry_after },
        });
    }

    /// Ends minting, and keeps the slot.
    fn pause(&mut self, reason: Refusal) {
        self.held
            .as_mut()
            .expect("whoever mints has a slot")
            .is_minting = false;
        self.mint.end(reason);
    }

    /// Goes by a wall clock that was set further than it is followed while a node is alone: anywhere as long as nothing was
    /// minted, since a look at the other clocks comes first; else ahead, once those clocks confirm it.
    fn follow_wall_clock(&mut self, now: UnixNanos) {
        let clock = self.mint.clock();
        let wall = clock.wall();
        if !self.lease.clock_check().is_step(wall, now) {
            return;
        }
        if self.has_minted && wall > now && self.lease.clock_check().confirms(wall, now) {
            clock.step_ahead_to_wall();
        } else if !self.has_minted && self.lease.is_looking() && !clock.is_before_build() {
            clock.anchor_to_wall();
        } else {
            return;
        }
        self.lease.clock_was_set();
    }

    fn acquired(&mut self, acquired: &Acquired, now: UnixNanos) {
        let Acquired {
            slot,
            start,
            floor,
            reserved,
        } = *acquired;
        assert!(self.held.is_none(), "a slot is taken when there is none");
        self.has_minted = true;
        let start = SessionStart::at(start).above_floor(Some(floor));
        let session = self.mint.prepare_in_slot(start, slot);
        self.held = Some(HeldSlot {
            slot,
            session,
            reserved_at: now,
            is_minting: false,
        });
        self.extended(reserved, now);
    }

    fn extended(&mut self, reserved: Reserved, now: UnixNanos) {
        let held = self.held.as_mut().expect("a slot that is renewed is held");
        let durable = Durable::write(reserved.plan(), |_acknowledged| Ok::<(), Infallible>(()));
        held.session
            .raise(&durable.unwrap_or_else(|never| match never {}), now);
        held.reserved_at = now;
        if let Some(refusal) = self.lease.clock_check().refusal() {
            self.pause(refusal);
        } else if !held.is_minting && held.session.is_open() && !held.is_overdue(now) {
            held.is_minting = true;
            self.mint.begin(Arc::clone(&held.session));
        }
        self.wait_for_start(now);
    }

    /// Ends the session. What is reserved of it stays so: whoever has begun to mint may end.
    fn give_up(&mut self, lack: SlotLack) -> Option<u32> {
        self.mint.end(without(lack, SOON));
        self.held.take().map(|held| held.slot)
    }
}

impl HeldSlot {
    /// Nothing can be minted, and the next renewal is late.
    fn is_overdue(&self, now: UnixNanos) -> bool {
        now >= self.overdue_at()
    }

    fn overdue_at(&self) -> UnixNanos {
        self.session.horizon().max(self.reserved_at.after(OVERDUE))
    }

    /// From here on a renewal reserves time above the start of the session: it may be used until its deadline.
    fn opens_at(&self) -> UnixNanos {
        self.session
            .start()
            .before(DEADLINE)
            .after(Duration::from_nanos(1))
    }

    /// When something is to be done, if that is later than now.
    fn wakes_at(&self, now: UnixNanos) -> Option<UnixNanos> {
        match self.is_minting {
            true => Some(self.overdue_at()),
            false => {
                Some(self.opens_at()).filter(|opens_at| !self.session.is_open() && *opens_at > now)
            }
        }
    }
}

fn without(lack: SlotLack, retry_after: Duration) -> Refusal {
    Refusal::NoWorkerSlot { lack, retry_after }
}
