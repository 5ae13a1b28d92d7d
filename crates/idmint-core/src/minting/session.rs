//! A session is a period during which a process has its worker numbers. It ends when the slot is
//! lost or the process exits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::durable::Durable;
use super::horizon::{HorizonPlan, Reservation};
use crate::minting::sequenced::{
    Beginning, CatchUp, Moment, SequencedFormat, SequencedMinter, Sequencer,
};
use crate::time::UnixNanos;

/// A period during which a process has its worker numbers, with the minters of all sequenced
/// formats and the horizon up to which they may mint.
#[derive(Debug)]
pub struct Session {
    catch_up: CatchUp,
    start: UnixNanos,
    /// Every sequenced format, with its minter in this session.
    minters: Vec<(Arc<SequencedFormat>, Arc<SequencedMinter>)>,
    floor: Option<UnixNanos>,
    /// The instant up to which the session may mint, for code outside of the sequencers.
    /// Written by: `raise`, by the one thread that plans extensions.
    /// Ordering: Relaxed, because minting does not use this value. Each sequencer has its own
    /// ceiling, with the ordering that it needs.
    horizon: AtomicU64,
    reservation: Mutex<Reservation>,
}

impl Session {
    /// Creates a session, in which no ids are minted until [`raise`](Self::raise) sets a horizon
    /// after the session's start.
    pub(super) fn begin(formats: &[Arc<SequencedFormat>], beginning: &Beginning) -> Session {
        let minter = |format: &Arc<SequencedFormat>| {
            (Arc::clone(format), Arc::new(format.minter(beginning)))
        };
        Session {
            catch_up: beginning.catch_up(),
            start: beginning.start.at,
            minters: formats.iter().map(minter).collect(),
            floor: beginning.start.floor,
            horizon: AtomicU64::new(beginning.start.at.get()),
            reservation: Mutex::new(Reservation::up_to(beginning.window)),
        }
    }

    /// Makes the minters of this session the ones that serve requests from now on.
    pub(super) fn hand_out(&self) {
        self.minters
            .iter()
            .for_each(|(format, minter)| format.begin(Arc::clone(minter)));
    }

    /// Withdraws this session's minters from new requests. A request in progress can still get ids
    /// below the horizon, because the time up to the horizon stays reserved on disk.
    pub(super) fn take_back(&self) {
        self.minters.iter().for_each(|(format, _)| format.end());
    }

    /// `true` if this session began ahead of the clock, and the clock has not caught up when it
    /// shows `now`.
    pub fn is_ahead_of(&self, now: UnixNanos) -> bool {
        self.at(now).catching_up.is_some()
    }

    /// Returns the clock time `now` and, while the session is ahead of the clock, the session's own
    /// time, which advances at half speed so that the clock catches up.
    #[inline]
    fn at(&self, now: UnixNanos) -> Moment {
        self.catch_up.at(now)
    }

    /// Returns the instant at which the session begins. No id of the session has an earlier time.
    pub fn start(&self) -> UnixNanos {
        self.start
    }

    /// `true` if ids can be minted: the horizon is after the session's start.
    pub fn is_open(&self) -> bool {
        self.horizon() > self.start
    }

    /// Returns the horizon: the end (exclusive) of the time that ids of this session may have.
    pub fn horizon(&self) -> UnixNanos {
        UnixNanos::new(self.horizon.load(Ordering::Relaxed))
    }

    /// Plans the next horizon. It is one reservation after `now` or after the latest id, whichever
    /// is later. It is never below `needed` or below the current horizon. The first reservation is
    /// at most 100 ms.
    ///
    /// Write the plan to disk with [`Durable::write`] before you pass it to [`Session::raise`].
    pub fn plan_extension(&self, now: UnixNanos, needed: UnixNanos) -> HorizonPlan {
        let reach = self
            .reservation
            .lock()
            .expect("no holder of this lock panics")
            .reach();
        HorizonPlan {
            horizon: self
                .reached()
                .max(now)
                .after(reach)
                .max(needed)
                .max(self.horizon()),
            floor: self.floor,
            deadline: None,
            planned_at: Some(now),
        }
    }

    /// Returns an instant that is later than all stamps handed out so far, or the start of the
    /// session if no stamp was handed out.
    pub(crate) fn reached(&self) -> UnixNanos {
        self.sequencers()
            .map(Sequencer::reached)
            .fold(self.start, UnixNanos::max)
    }

    /// `true` if less than half of the time that was reserved last is left for the ids of at least
    /// one worker number. The caller should then reserve more time.
    pub fn is_running_low(&self) -> bool {
        self.sequencers().any(Sequencer::is_running_low)
    }

    /// Allows minting up to the horizon of a plan that was written to disk. If the plan has an
    /// earlier deadline, minting is allowed only up to the deadline. `now` is the time at which the
    /// write completed.
    pub fn raise(&self, horizon: &Durable<HorizonPlan>, now: UnixNanos) {
        let HorizonPlan { planned_at, .. } = *horizon.plan();
        let horizon = horizon.plan().usable_until();
        let mut reservation = self
            .reservation
            .lock()
            .expect("no holder of this lock panics");
        let refill = horizon.before(reservation.size() / 2);
        for sequencer in self.sequencers() {
            sequencer.raise(horizon, refill);
        }
        self.horizon.store(horizon.get(), Ordering::Relaxed);
        if let Some(planned_at) = planned_at {
            reservation.took(now.since(planned_at));
        }
        if !self.is_ahead_of(now) {
            reservation.grow();
        }
    }

    fn sequencers(&self) -> impl Iterator<Item = &Sequencer> {
        self.minters
            .iter()
            .flat_map(|(_, minter)| minter.sequencers())
    }
}
