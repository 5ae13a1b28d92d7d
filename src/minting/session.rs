//! The time during which this program holds its worker numbers: from a start, or from having a slot, to the loss of the slot
//! or the end of the process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::durable::Durable;
use super::horizon::{HorizonPlan, Reservation};
use crate::minting::sequenced::{
    Beginning, CatchUp, Moment, SequencedFormat, SequencedMinter, Sequencer,
};
use crate::time::UnixNanos;

/// The sequences of all formats, and the horizon below which they may be used.
#[derive(Debug)]
pub struct Session {
    catch_up: CatchUp,
    start: UnixNanos,
    /// Every sequenced format, and what mints it in this session.
    minters: Vec<(Arc<SequencedFormat>, Arc<SequencedMinter>)>,
    floor: Option<UnixNanos>,
    /// Up to where stamps may be used, for those who look. Written by: `raise`, by one thread at a time, the one that plans the next.
    /// Ordering: Relaxed. Nothing is minted by it: each sequencer holds its own share, with the orderings that takes.
    horizon: AtomicU64,
    reservation: Mutex<Reservation>,
}

impl Session {
    /// Begins at a start; nothing can be minted until a horizon above it is raised.
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

    /// From now on the formats are minted in this session.
    pub(super) fn hand_out(&self) {
        self.minters
            .iter()
            .for_each(|(format, minter)| format.begin(Arc::clone(minter)));
    }

    /// From now on nothing more is minted in this session. A mint that has begun may end: below a horizon that stays reserved.
    pub(super) fn take_back(&self) {
        self.minters.iter().for_each(|(format, _)| format.end());
    }

    /// The moment at which the clock shows `now`.
    #[inline]
    pub fn at(&self, now: UnixNanos) -> Moment {
        self.catch_up.at(now)
    }

    /// Where it begins: nothing below is minted in it.
    pub fn start(&self) -> UnixNanos {
        self.start
    }

    /// Whether something can be minted in it: its horizon is above its start.
    pub fn is_open(&self) -> bool {
        self.horizon() > self.start
    }

    /// The first instant at which nothing may be minted yet.
    pub fn horizon(&self) -> UnixNanos {
        UnixNanos::new(self.horizon.load(Ordering::Relaxed))
    }

    /// The next horizon to be made durable: a reservation above all that is used, and above `needed`.
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

    /// The instant up to which something has been handed out; the start, as long as nothing has been.
    pub(crate) fn reached(&self) -> UnixNanos {
        self.sequencers()
            .map(Sequencer::reached)
            .fold(self.start, UnixNanos::max)
    }

    /// Whether less than half of the last reservation is left. Between two requests to refill, one suffices.
    pub fn is_running_low(&self) -> bool {
        self.sequencers().any(Sequencer::is_running_low)
    }

    /// Lets every sequence be used up to a horizon that is durable, or only up to its deadline if it has an earlier one.
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
        if self.at(now).catching_up.is_none() {
            reservation.grow();
        }
    }

    fn sequencers(&self) -> impl Iterator<Item = &Sequencer> {
        self.minters
            .iter()
            .flat_map(|(_, minter)| minter.sequencers())
    }
}
