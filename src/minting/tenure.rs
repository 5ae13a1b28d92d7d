//! The time during which this program holds its worker numbers: from one start to the end of the process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::durable::Durable;
use super::horizon::{HorizonPlan, Reservation};
use crate::id::Format;
use crate::minting::sequenced::{Lanes, Moment, Pace, SequencedMinter, Sequencer};
use crate::time::UnixNanos;

/// The sequences of all formats, and the horizon below which they may be used.
#[derive(Debug)]
pub struct Tenure {
    pace: Pace,
    /// For each format of the program, in order; `None` where it is not sequenced.
    minters: Vec<Option<SequencedMinter>>,
    /// The durable horizon, for those who look. Written by: `raise`. The sequencers hold their own share of it.
    horizon: AtomicU64,
    reservation: Mutex<Reservation>,
}

/// What a tenure begins with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beginning {
    /// The first instant that may be used: the durable horizon, or the clock if that shows more.
    pub(super) start: UnixNanos,
    /// What the clock shows.
    pub(super) now: UnixNanos,
    /// The most that one extension reserves.
    pub(super) window: Duration,
    /// How far ahead of the clock a lane may mint.
    pub(super) lead_max: Duration,
    /// How long an answer may be held until its ids are due.
    pub(super) wait_max: Duration,
    /// The configured shard number.
    pub(super) shard: u64,
}

impl Tenure {
    /// Begins at a start; nothing can be minted until a horizon above it is raised.
    pub(super) fn begin(formats: &[(Arc<Format>, Option<Lanes>)], beginning: &Beginning) -> Tenure {
        let minter = |(format, lanes): &(Arc<Format>, Option<Lanes>)| {
            let lanes = lanes.as_ref()?;
            Some(SequencedMinter::new(format, lanes, beginning))
        };
        Tenure {
            pace: Pace::new(beginning.start, beginning.now),
            minters: formats.iter().map(minter).collect(),
            horizon: AtomicU64::new(beginning.start.get()),
            reservation: Mutex::new(Reservation::up_to(beginning.window)),
        }
    }

    /// The moment at which the clock shows `now`.
    #[inline]
    pub fn at(&self, now: UnixNanos) -> Moment {
        self.pace.at(now)
    }

    /// The first instant that is not reserved.
    pub fn horizon(&self) -> UnixNanos {
        UnixNanos::new(self.horizon.load(Ordering::Acquire))
    }

    /// The next horizon to be made durable: a reservation above all that is used, and above `needed`.
    pub fn plan_extension(&self, now: UnixNanos, needed: UnixNanos) -> HorizonPlan {
        let reservation = self.reservation.lock().expect("no holder of this lock panics").size();
        let reached = self.sequencers().map(Sequencer::reached).fold(now, UnixNanos::max);
        HorizonPlan { horizon: reached.after(reservation).max(needed).max(self.horizon()) }
    }

    /// Whether less than half of the last reservation is left. Between two requests to refill, one suffices.
    pub fn is_running_low(&self) -> bool {
        self.sequencers().any(Sequencer::is_running_low)
    }

    /// Lets every sequence be used up to a horizon that is durable.
    pub fn raise(&self, horizon: &Durable<HorizonPlan>, now: UnixNanos) {
        let horizon = horizon.plan().horizon();
        let mut reservation = self.reservation.lock().expect("no holder of this lock panics");
        let refill = horizon.before(reservation.size() / 2);
        for sequencer in self.sequencers() {
            sequencer.raise(horizon, refill);
        }
        self.horizon.store(horizon.get(), Ordering::Release);
        if self.at(now).paced.is_none() {
            reservation.grow();
        }
    }

    pub(super) fn minter(&self, format: usize) -> Option<&SequencedMinter> {
        self.minters[format].as_ref()
    }

    fn sequencers(&self) -> impl Iterator<Item = &Sequencer> {
        self.minters.iter().flatten().flat_map(SequencedMinter::sequencers)
    }
}
