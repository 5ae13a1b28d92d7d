//! Begins a session of the mint when this process takes a slot, and ends the session when the
//! process loses or releases the slot. During a session, the mint uses the slot's worker numbers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use super::fleet_clocks::Skew;
use super::high_water::{HighWater, Regression};
use super::nonce::Entropy;
use super::slot_lease::{
    Acquired, Change, DEADLINE, LeaseRule, Reply, Reserved, SlotLease, Step, Want,
};
use crate::KnownFleet;
use idmint_core::minting::{Durable, Mint, Refusal, Session, SessionStart, SlotLack};
use idmint_core::time::UnixNanos;
use idmint_storage::FormatsError;

/// The minimum delay after which refused callers should retry. It is short, because this node may
/// take or renew a slot at any time.
const SOON: Duration = Duration::from_secs(1);

/// A renewal is overdue at the earliest this long after the previous renewal. While a renewal is
/// overdue, callers are refused instead of waiting for it.
const OVERDUE: Duration = Duration::from_secs(2);

/// The slot that this process leases now, and the session that mints with its worker numbers. A
/// process leases only one slot at a time.
#[derive(Debug)]
pub(super) struct LeasedSlots {
    pub(super) mint: Arc<Mint>,
    pub(super) lease: SlotLease,
    pub(super) entropy: Entropy,
    pub(super) held: Option<HeldSlot>,
    /// `true` once this process has taken a slot. From then on its clock must not move back,
    /// because the process may have minted ids.
    pub(super) has_minted: bool,
    /// The facts that this process has read about the fleet, such as its settings. The record store
    /// shares this value.
    pub(super) known: Arc<KnownFleet>,
    /// The value of [`KnownFleet::doubts`] when the last request was sent: the number of responses
    /// that contradicted earlier ones, since the process started.
    pub(super) doubts: u64,
}

/// The slot that this node holds, and the session that mints with its worker numbers.
#[derive(Debug)]
pub(super) struct HeldSlot {
    pub(super) slot: u32,
    pub(super) session: Arc<Session>,
    pub(super) reserved_at: UnixNanos,
    /// `false` while minting is paused. The request for more time is overdue, the clock is wrong,
    /// or the session begins so far ahead that no time can be reserved for it yet.
    pub(super) is_minting: bool,
}

/// The event that a reply caused.
#[derive(Debug)]
pub(super) enum Event {
    /// The reply has no consequence to report.
    None,
    /// This node created a fleet whose floor is this instant, so it mints from then on.
    Founded(UnixNanos),
    /// This node has no slot yet. The refusal gives the reason.
    Waiting(Refusal),
    /// A renewal reserved more time.
    Renewed,
    /// This node took this slot.
    Acquired(u32),
    /// This node lost this slot.
    Fenced(u32),
    /// The coordinator has lost acknowledged data.
    Regressed(Regression),
    /// This node may not mint in this fleet, because the slots or the formats in its configuration
    /// differ from the fleet's.
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

    /// Returns the next step of the thread that renews this node's slot: send a request, wait, or
    /// end. `needed` is the time up to which callers need to mint. It is ignored while there is no
    /// slot, if the slot already reaches it, or if it is more than [`DEADLINE`] ahead.
    pub(super) fn next(&mut self, now: UnixNanos, needed: UnixNanos) -> Step {
        self.stop_if_overdue(now);
        self.wait_for_start(now);
        // Take over the highest revision and election term that the record store has seen. A lower
        // value in the next response shows that the coordinator has lost data.
        self.lease.high_water.see(self.known.highest());
        self.lease.high_water.see_term(self.known.term());
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
        // Tell the record store which value the request in `step` may write to this node's own key.
        // Each write of records compares that key's revision. So such a write may fail before the
        // reply to this request arrives, and the record store must then know the reason.
        self.known.hold(self.lease.own_key());
        match step {
            Step::WaitUntil(until) => {
                let wakes_at = self.held.as_ref().and_then(|held| held.wakes_at(now));
                Step::WaitUntil(wakes_at.map_or(until, |wakes_at| until.min(wakes_at)))
            }
            step => step,
        }
    }

    /// Handles the coordinator's reply to the last request, and returns the resulting event.
    pub(super) fn answer(&mut self, now: UnixNanos, reply: Reply) -> Event {
        let event = self.take_in(now, reply);
        let clock = self.mint.clock();
        match self.lease.clock_check().refusal() {
            Some(Refusal::ClockAheadOfFleet { ahead }) => clock.refute(ahead),
            Some(Refusal::ClockBehindFleet { behind }) => clock.refute_as_behind(behind),
            _ => clock.refute(Duration::ZERO),
        }
        self.follow_wall_clock(now);
        self.tell_known();
        event
    }

    /// Reports the state of the fleet to the record store: the key that this node rewrites
    /// regularly, and a loss of acknowledged data. Without such a loss, also reports the fleet's
    /// settings if this node agrees with them.
    fn tell_known(&self) {
        self.known.hold(self.lease.own_key());
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

    /// `true` if the last response confirmed that the slots and formats in this node's
    /// configuration agree with the fleet's settings, and that no data was lost.
    pub(super) fn is_confirmed(&self) -> bool {
        self.lease.confirmed().is_some()
    }

    /// Returns the highest revisions, terms and horizons that the coordinator has acknowledged to
    /// this node.
    pub(super) fn high_water(&self) -> &HighWater {
        &self.lease.high_water
    }

    /// Returns the number of this node's slot, or `None` if it has none.
    pub(super) fn slot(&self) -> Option<u32> {
        self.held.as_ref().map(|held| held.slot)
    }

    /// Returns the proven difference between this node's clock and the median of the fleet's
    /// clocks, as of the last read of all clocks.
    pub(super) fn skew(&self) -> Skew {
        self.lease.clock_check().skew()
    }

    /// Returns the refusal that callers get while the other nodes' clocks prove that this node's
    /// clock is wrong, and `None` otherwise.
    pub(super) fn clock_refusal(&self) -> Option<Refusal> {
        self.lease.clock_check().refusal()
    }

    /// Returns the reason why this node does not mint ids that need a worker number, or `None` if
    /// it does. Random ids are always minted.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.mint.session().err()
    }

    /// Returns the end of the reserved time in which this node may mint, or `None` if it cannot
    /// mint at the moment.
    pub(super) fn usable_until(&self) -> Option<UnixNanos> {
        self.held
            .as_ref()
            .filter(|held| held.is_minting)
            .map(|held| held.session.horizon())
    }

    /// Stops minting and releases the slot, or stops looking for one.
    pub(super) fn release(&mut self) {
        self.give_up(SlotLack::Released);
        self.lease.release();
    }

    /// Pauses minting if the reserved time has run out before more was reserved. Callers are then
    /// refused at once instead of waiting.
    fn stop_if_overdue(&mut self, now: UnixNanos) {
        if self
            .held
            .as_ref()
            .is_some_and(|held| held.is_minting && held.is_overdue(now))
        {
            self.pause(without(SlotLack::Overdue, SOON));
        }
    }

    /// Refuses callers until the reserved time reaches beyond the session's start. The refusal says
    /// when to retry.
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

    /// Pauses minting for this reason, but keeps the slot.
    fn pause(&mut self, reason: Refusal) {
        self.held
            .as_mut()
            .expect("whoever mints has a slot")
            .is_minting = false;
        self.mint.end(reason);
    }

    /// Adjusts this node's minting clock after the wall clock was set by more than `skew_max`.
    ///
    /// Before the first slot is taken, the clock is adjusted in either direction. This is safe
    /// because the node reads the other nodes' clocks before it mints. Later the clock only moves
    /// ahead, and only if the fleet's clocks confirm the new time.
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

    /// Ends the session, so that this node stops minting in its slot. Returns the slot's number, or
    /// `None` if this node had no slot. The time that was reserved for the slot stays valid, so a
    /// mint request that is in progress may finish.
    fn give_up(&mut self, lack: SlotLack) -> Option<u32> {
        self.mint.end(without(lack, SOON));
        self.held.take().map(|held| held.slot)
    }
}

impl HeldSlot {
    /// `true` if this node has used up its reserved time, and has not reserved more in time.
    fn is_overdue(&self, now: UnixNanos) -> bool {
        now >= self.overdue_at()
    }

    fn overdue_at(&self) -> UnixNanos {
        self.session.horizon().max(self.reserved_at.after(OVERDUE))
    }

    /// Returns the earliest instant at which a renewal can reserve time for the session. A renewal
    /// reserves usable time up to [`DEADLINE`] after it is sent. So it must be sent less than
    /// [`DEADLINE`] before the session's start.
    fn opens_at(&self) -> UnixNanos {
        self.session
            .start()
            .before(DEADLINE)
            .after(Duration::from_nanos(1))
    }

    /// Returns the next instant at which minting in this slot may have to be paused or started, or
    /// `None` if no such instant is ahead.
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
