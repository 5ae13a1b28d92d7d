//! The counter of one worker number of one format.

use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::pace::Moment;
use super::stamps::StampLine;
use super::sync::{AtomicU64, Ordering};
use crate::time::UnixNanos;

/// Hands out runs of stamps, each stamp once: one compare-exchange for a run of any length.
#[derive(Debug)]
pub struct Sequencer {
    line: StampLine,
    /// The first stamp that the format cannot mint.
    end: u64,
    /// How many ticks ahead of the clock may be handed out without waiting.
    lead_ticks: u64,
    state: CachePadded<State>,
}

#[derive(Debug)]
struct State {
    /// The next free stamp: tick and sequence as one number, relative to the sequencer's start.
    /// Written by: `reserve`, by compare-exchange. Read by: `reserve`, `reached`.
    /// Invariant: only grows, so two reservations never overlap.
    /// Ordering: Relaxed. The word is the whole state, and a read-modify-write always sees its newest value.
    /// Tested by: `loom_two_reservations_never_overlap`.
    next: AtomicU64,
    /// The first stamp that is not covered by the horizon.
    /// Written by: `raise`, by one thread, after the horizon is durable. Read by: `reserve`.
    /// Invariant: only grows; every stamp handed out is below it.
    /// Ordering: Release in `raise`, pairs with the Acquire in `reserve`: seen means durable.
    /// Tested by: `loom_no_stamp_is_above_a_horizon_that_is_being_raised`.
    ceiling: AtomicU64,
    /// From this stamp on the horizon should be raised soon. A hint: Relaxed.
    refill: AtomicU64,
}

/// A run of stamps that nobody else has, and when its ids may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The first stamp, relative to the sequencer's start.
    pub first: u64,
    /// When the clock has come far enough: not before this instant may the ids be sent.
    pub due: UnixNanos,
    /// Less than half of the reservation is left.
    pub refill: bool,
}

/// Why a run cannot be had. Nothing was reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// The sequence is used up until this instant.
    Sequence {
        /// When the run could leave.
        due: UnixNanos,
    },
    /// The horizon must be raised to this instant first.
    Horizon {
        /// The least horizon that covers the run.
        needed: UnixNanos,
    },
    /// The format has no such stamps left.
    Ended,
    /// The epoch lies in the future.
    NotBegun,
}

impl Sequencer {
    /// A sequencer that begins at `start` and may mint nothing yet: the horizon is raised first.
    ///
    /// `end_tick`: the first tick since the epoch that the format cannot mint.
    pub fn new(line: StampLine, start: UnixNanos, end_tick: u128, lead_ticks: u64) -> Sequencer {
        let first = line.first_stamp_at(start);
        let state =
            State { next: AtomicU64::new(first), ceiling: AtomicU64::new(first), refill: AtomicU64::new(first) };
        Sequencer { end: line.stamp_of_tick(end_tick), line, lead_ticks, state: CachePadded::new(state) }
    }

    /// The stamps this sequencer counts in.
    pub fn line(&self) -> &StampLine {
        &self.line
    }

    /// Reserves `count` stamps in a row whose ids may leave within `wait_max`.
    ///
    /// # Errors
    /// [`Shortage`]: nothing was reserved.
    #[inline]
    pub fn reserve(&self, count: u64, moment: &Moment, wait_max: Duration) -> Result<Grant, Shortage> {
        if moment.now < self.line.base() && moment.reference() < self.line.base() {
            return Err(Shortage::NotBegun);
        }
        let floor = self.line.tick_at(moment.now).saturating_mul(self.line.per_tick());
        let free_until = self.free_until(moment);
        let mut next = self.state.next.load(Ordering::Relaxed);
        loop {
            let first = next.max(floor);
            let end = first.checked_add(count).filter(|end| *end <= self.end).ok_or(Shortage::Ended)?;
            let due = if end <= free_until { moment.now } else { self.due(end, moment) };
            if due.since(moment.now) > wait_max {
                return Err(Shortage::Sequence { due });
            }
            // Acquire: pairs with the Release in raise(): seen means durable.
            if end > self.state.ceiling.load(Ordering::Acquire) {
                return Err(Shortage::Horizon { needed: self.line.instant_covering(end) });
            }
            match self.state.next.compare_exchange_weak(next, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    let refill = end > self.state.refill.load(Ordering::Relaxed);
                    return Ok(Grant { first, due, refill });
                }
                Err(newer) => next = newer,
            }
        }
    }

    /// How many stamps could be reserved at this moment with a wait of at most `wait_max`.
    pub fn available(&self, moment: &Moment, wait_max: Duration) -> u64 {
        let floor = self.line.tick_at(moment.now).saturating_mul(self.line.per_tick());
        let first = self.state.next.load(Ordering::Relaxed).max(floor);
        self.free_until(&moment.later(wait_max)).min(self.end).saturating_sub(first)
    }

    /// When a run of `count` stamps could leave, if it were reserved at this moment.
    pub(super) fn due_for(&self, count: u64, moment: &Moment) -> UnixNanos {
        let floor = self.line.tick_at(moment.now).saturating_mul(self.line.per_tick());
        let first = self.state.next.load(Ordering::Relaxed).max(floor);
        self.due(first.saturating_add(count), moment)
    }

    /// Lets stamps below the horizon be minted; from `refill` on it should be raised again.
    ///
    /// Only for a horizon that is durable. The callers see to that: see [`Tenure::raise`](super::Tenure::raise).
    pub(super) fn raise(&self, horizon: UnixNanos, refill: UnixNanos) {
        let ceiling = self.line.first_stamp_at(horizon);
        assert!(ceiling >= self.state.ceiling.load(Ordering::Relaxed), "a horizon is never lowered");
        self.state.refill.store(self.line.first_stamp_at(refill), Ordering::Relaxed);
        // Release: pairs with the Acquire in reserve(): seen means durable.
        self.state.ceiling.store(ceiling, Ordering::Release);
    }

    /// Whether stamps above the refill mark have been handed out.
    pub(super) fn is_running_low(&self) -> bool {
        self.state.next.load(Ordering::Relaxed) > self.state.refill.load(Ordering::Relaxed)
    }

    /// The instant up to which stamps have been handed out.
    pub fn reached(&self) -> UnixNanos {
        self.line.instant_covering(self.state.next.load(Ordering::Relaxed))
    }

    /// The first stamp that may not leave at this moment. By the clock a whole tick is free as soon as it has begun, and
    /// the lead after it; by the pace of a start ahead of the clock only what the pace has come past.
    #[inline]
    fn free_until(&self, moment: &Moment) -> u64 {
        let ticks = self.line.tick_at(moment.now).saturating_add(self.lead_ticks).saturating_add(1);
        let by_clock = ticks.saturating_mul(self.line.per_tick());
        match moment.paced {
            None => by_clock,
            Some(paced) => by_clock.max(self.line.first_stamp_at(paced.after(self.lead()))),
        }
    }

    /// What the clock shows when every stamp below `end` may leave.
    fn due(&self, end: u64, moment: &Moment) -> UnixNanos {
        let last_tick = (end - 1) / self.line.per_tick();
        let by_clock = self.line.tick_start(last_tick.saturating_sub(self.lead_ticks));
        match moment.paced {
            None => by_clock,
            Some(_) => by_clock.min(moment.pace_reaches(self.line.instant_covering(end).before(self.lead()))),
        }
    }

    fn lead(&self) -> Duration {
        self.line.ticks_last(self.lead_ticks)
    }
}
