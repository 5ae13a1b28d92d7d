//! The counter of one worker number of one format.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::catch_up::Moment;
use super::exclusion::Exclusion;
use super::spread::Spread;
use super::stamps::StampLine;
use super::sync::{AtomicU64, Ordering};
use crate::minting::session_start::SessionStart;
use crate::time::UnixNanos;

/// Hands out runs of stamps, each stamp once: one compare-exchange for a run of any length.
///
/// Unit: stamps relative to the start, see [`StampLine`]. Nothing is handed out at or above the horizon, which only a
/// [`Session`](crate::minting::Session) raises, and only to what is durable.
///
/// ```
/// use std::time::Duration;
/// use idmint::minting::{CatchUp, Sequencer, SessionStart, Shortage, StampLine};
/// use idmint::time::{UnixNanos, UnixTime};
///
/// let start = UnixNanos::from_seconds(1_800_000_000);
/// let line = StampLine::new("1ms".parse()?, UnixTime::EPOCH, 4096, start);
/// let sequencer = Sequencer::new(line, SessionStart::at(start), 1 << 41, 5);
/// let moment = CatchUp::new(start, start).at(start);
/// let refused = sequencer.reserve(1, &moment, Duration::ZERO).expect_err("no horizon is durable yet");
/// assert!(matches!(refused, Shortage::Horizon { needed } if needed > start));
/// # Ok::<(), idmint::time::TickError>(())
/// ```
#[derive(Debug)]
pub struct Sequencer {
    line: StampLine,
    start: SessionStart,
    /// The first stamp of all.
    first: u64,
    /// The first stamp that the format cannot mint.
    end: u64,
    /// How many ticks ahead of the clock may be handed out without waiting.
    lead_ticks: u64,
    /// Where the first run of a tick begins.
    spread: Spread,
    /// What is asked only by who comes to the ceiling, so that it costs nothing where there is none.
    exclusion: Option<Box<Exclusion>>,
    state: CachePadded<State>,
}

#[derive(Debug)]
struct State {
    /// The next free stamp: tick and sequence as one number, relative to the sequencer's start.
    /// Written by: `reserve`, `reserve_around` and `take_until`, by compare-exchange, and `after_tick`, before anybody reads it.
    /// Read by them and by `reached`.
    /// Invariant: only grows, so two reservations never overlap.
    /// Ordering: Relaxed. The word is the whole state, and a read-modify-write always sees its newest value.
    /// Tested by: `loom_two_reservations_never_overlap`, `loom_a_share_of_a_batch_never_overlaps_a_reservation`.
    next: AtomicU64,
    /// The first stamp that is not covered by the horizon, or that of the next excluded tick, if that comes first.
    /// Written by: `raise`, by one thread, after the horizon is durable; around excluded ticks also by `reserve_around`, after
    /// `next` has come behind the tick, both under the lock of the exclusion. Read by: `reserve`, `check`, `take_until`.
    /// Invariant: only grows; every stamp handed out is below it.
    /// Ordering: Release, pairs with the Acquire in `reserve`: seen means durable, and that `next` is behind every excluded
    /// tick below it, so a compare-exchange from an earlier `next` fails.
    /// Tested by: `loom_no_stamp_is_above_a_horizon_that_is_being_raised`, `loom_no_run_touches_an_excluded_tick`.
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

/// Where a run can stand around excluded ticks.
struct Placed {
    first: u64,
    /// The excluded tick behind it begins here.
    free_to: u64,
    due: UnixNanos,
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
    /// The format begins later than its session, since it began at a floor: with its first whole tick, at this instant.
    NotOpen {
        /// When its first whole tick begins.
        opens_at: UnixNanos,
    },
    /// The epoch lies in the future.
    NotBegun,
}

impl Sequencer {
    /// A sequencer that begins with a session and may mint nothing yet: the horizon is raised first.
    ///
    /// `end_tick`: the first tick since the epoch that the format cannot mint.
    pub fn new(line: StampLine, start: SessionStart, end_tick: u128, lead_ticks: u64) -> Sequencer {
        let begins = line.first_stamp_at(start.at);
        let first = begins.max(start.floor.map_or(0, |floor| line.first_whole_tick_at(floor)));
        let state =
            State { next: AtomicU64::new(first), ceiling: AtomicU64::new(begins), refill: AtomicU64::new(begins) };
        let (end, spread, state) = (line.stamp_of_tick(end_tick), Spread::NONE, CachePadded::new(state));
        Sequencer { end, line, start, first, lead_ticks, spread, exclusion: None, state }
    }

    /// The same, where the first run of a tick begins a few stamps further.
    #[must_use]
    pub fn with_spread(self, spread: Spread) -> Sequencer {
        Sequencer { spread, ..self }
    }

    /// The same, where the first stamp of all is behind this tick since the epoch.
    #[must_use]
    pub(in crate::minting) fn after_tick(self, tick: u128) -> Sequencer {
        let first = self.first.max(self.line.stamp_of_tick(tick.saturating_add(1)));
        // Nobody else has it yet.
        self.state.next.store(first, Ordering::Relaxed);
        Sequencer { first, ..self }
    }

    /// The same, where nothing is handed out in these ticks since the epoch: rows that ascend.
    #[must_use]
    pub(in crate::minting) fn around(self, ticks: Arc<[Range<u64>]>) -> Sequencer {
        let exclusion = Exclusion::new(ticks, &self.line, self.first);
        Sequencer { exclusion: Some(Box::new(exclusion)), ..self }
    }

    /// Whether it leaves out ticks of another generator.
    pub(in crate::minting) fn has_exclusions(&self) -> bool {
        self.exclusion.is_some()
    }

    /// The stamps this sequencer counts in.
    pub fn line(&self) -> &StampLine {
        &self.line
    }

    /// Reserves `count` (at least one) stamps in a row whose ids may leave within `wait_max`: from the first free one on, or,
    /// where the present tick begins above all that were handed out, from one of its first stamps on, see [`Spread`].
    ///
    /// # Errors
    /// [`Shortage`]: nothing was reserved.
    #[inline]
    pub fn reserve(&self, count: u64, moment: &Moment, wait_max: Duration) -> Result<Grant, Shortage> {
        if moment.now < self.line.base() && moment.reference() < self.line.base() {
            return Err(Shortage::NotBegun);
        }
        let tick = self.line.tick_at(moment.now);
        let floor = tick.saturating_mul(self.line.per_tick());
        let free_until = self.free_until(tick, moment);
        let mut next = self.state.next.load(Ordering::Relaxed);
        loop {
            let end = next.max(floor).checked_add(count);
            let mut end = end.filter(|end| *end <= self.end).ok_or(Shortage::Ended)?;
            let mut due = moment.now;
            if next < floor {
                // What is skipped stays a gap. A run that could then not leave at once skips nothing.
                let spread = end.checked_add(self.spread.of_tick(tick));
                end = spread.filter(|spread| *spread <= free_until.min(self.end)).unwrap_or(end);
            }
            if end > free_until {
                due = self.due(end, moment);
                if due.since(moment.now) > wait_max {
                    return Err(Shortage::Sequence { due });
                }
            }
            // Acquire: pairs with the Release in raise_ceiling(): seen means durable.
            if end > self.state.ceiling.load(Ordering::Acquire) {
                return match &self.exclusion {
                    None => Err(Shortage::Horizon { needed: self.line.instant_covering(end) }),
                    Some(exclusion) => self.reserve_around(exclusion, count, moment, wait_max),
                };
            }
            match self.state.next.compare_exchange_weak(next, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    return Ok(Grant { first: end - count, due, refill: self.needs_refill(end) });
                }
                Err(newer) => next = newer,
            }
        }
    }

    /// Reserves `count` stamps in a row that touch no excluded tick, behind as many of them as it takes.
    ///
    /// ```text
    ///   next -----|excluded tick|-- count --|--------|excluded tick|
    ///           ceiling                       then the ceiling, once next is behind the run
    /// ```
    #[cold]
    fn reserve_around(
        &self,
        exclusion: &Exclusion,
        count: u64,
        moment: &Moment,
        wait_max: Duration,
    ) -> Result<Grant, Shortage> {
        let mut gate = exclusion.gate();
        let mut next = self.state.next.load(Ordering::Relaxed);
        loop {
            let from = next.max(self.first_free(moment));
            let Placed { first, free_to, due } = self.place_around(exclusion, from, count, moment, wait_max)?;
            let end = first + count;
            if end > gate.horizon {
                return Err(Shortage::Horizon { needed: self.line.instant_covering(end) });
            }
            match self.state.next.compare_exchange(next, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    gate.barrier = free_to;
                    self.raise_ceiling(gate.horizon.min(gate.barrier));
                    return Ok(Grant { first, due, refill: self.needs_refill(end) });
                }
                Err(newer) => next = newer,
            }
        }
    }

    /// Where so many stamps in a row can stand from there on.
    ///
    /// # Errors
    /// [`Shortage::Ended`], or [`Shortage::Sequence`] with when the first ones could leave that could not within `wait_max`.
    fn place_around(
        &self,
        exclusion: &Exclusion,
        from: u64,
        count: u64,
        moment: &Moment,
        wait_max: Duration,
    ) -> Result<Placed, Shortage> {
        let free_until = self.free_until(self.line.tick_at(moment.now), moment);
        for free in exclusion.free_from(&self.line, from) {
            let end = free.start.checked_add(count).filter(|end| *end <= self.end).ok_or(Shortage::Ended)?;
            let due = if end > free_until { self.due(end, moment) } else { moment.now };
            if due.since(moment.now) > wait_max {
                return Err(Shortage::Sequence { due });
            }
            if end <= free.end {
                return Ok(Placed { first: free.start, free_to: free.end, due });
            }
        }
        Err(Shortage::Ended)
    }

    /// The first stamp that nobody has at this moment.
    pub(in crate::minting) fn first_free(&self, moment: &Moment) -> u64 {
        let floor = self.line.tick_at(moment.now).saturating_mul(self.line.per_tick());
        self.state.next.load(Ordering::Relaxed).max(floor)
    }

    /// When a run of `count` stamps could leave, or the first place for one that it would have to wait for beyond `wait_max`.
    pub(in crate::minting) fn due_for(&self, count: u64, moment: &Moment, wait_max: Duration) -> UnixNanos {
        let from = self.first_free(moment);
        match &self.exclusion {
            None => self.due(from.saturating_add(count), moment),
            Some(exclusion) => match self.place_around(exclusion, from, count, moment, wait_max) {
                Ok(Placed { due, .. }) | Err(Shortage::Sequence { due }) => due,
                Err(_) => UnixNanos::new(u64::MAX),
            },
        }
    }

    /// Whether stamps below `end` may be taken.
    ///
    /// # Errors
    /// [`Shortage::Ended`] or [`Shortage::Horizon`].
    pub(in crate::minting) fn check(&self, end: u64) -> Result<(), Shortage> {
        if end > self.end {
            return Err(Shortage::Ended);
        }
        // Acquire: pairs with the Release in raise_ceiling(): seen means durable.
        if end > self.state.ceiling.load(Ordering::Acquire) {
            return Err(Shortage::Horizon { needed: self.line.instant_covering(end) });
        }
        Ok(())
    }

    /// Takes every stamp from the first free one to `until`, which has been checked; `None` when others have them.
    pub(in crate::minting) fn take_until(&self, until: u64, moment: &Moment) -> Option<Range<u64>> {
        assert_eq!(self.check(until), Ok(()), "what is taken is below the horizon and the format's end");
        let floor = self.line.tick_at(moment.now).saturating_mul(self.line.per_tick());
        let mut next = self.state.next.load(Ordering::Relaxed);
        loop {
            let first = next.max(floor);
            if first >= until {
                return None;
            }
            match self.state.next.compare_exchange_weak(next, until, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(first..until),
                Err(newer) => next = newer,
            }
        }
    }

    /// Whether the horizon should be raised soon once stamps below `end` are taken.
    #[inline]
    pub(in crate::minting) fn needs_refill(&self, end: u64) -> bool {
        end > self.state.refill.load(Ordering::Relaxed)
    }

    /// When the first stamp of all begins, if a floor makes that later than the session.
    pub(in crate::minting) fn opens_at(&self) -> Option<UnixNanos> {
        let is_later = self.first > self.line.first_stamp_at(self.start.at);
        is_later.then(|| self.line.tick_start(self.first / self.line.per_tick()))
    }

    /// Lets stamps below the horizon be minted; from `refill` on it should be raised again.
    ///
    /// Only for a horizon that is durable. The callers see to that: see [`Session::raise`](crate::minting::Session::raise).
    pub(in crate::minting) fn raise(&self, horizon: UnixNanos, refill: UnixNanos) {
        let ceiling = self.line.first_stamp_at(horizon);
        self.state.refill.store(self.line.first_stamp_at(refill), Ordering::Relaxed);
        match &self.exclusion {
            None => self.raise_ceiling(ceiling),
            Some(exclusion) => {
                let mut gate = exclusion.gate();
                gate.horizon = ceiling;
                self.raise_ceiling(gate.horizon.min(gate.barrier));
            }
        }
    }

    /// Lets stamps below be handed out.
    fn raise_ceiling(&self, ceiling: u64) {
        // Release: pairs with the Acquire in reserve() and check(): seen means durable. A swap, because a load before a
        // store would hide from the model checker what the store alone must order.
        let before = self.state.ceiling.swap(ceiling, Ordering::Release);
        assert!(ceiling >= before, "a horizon is never lowered");
    }

    /// Whether stamps above the refill mark have been handed out.
    pub(in crate::minting) fn is_running_low(&self) -> bool {
        let next = self.state.next.load(Ordering::Relaxed);
        // A first stamp that lies above the mark has not been handed out.
        next != self.first && self.needs_refill(next)
    }

    /// The instant up to which stamps have been handed out; the start, as long as none has been.
    pub fn reached(&self) -> UnixNanos {
        match self.state.next.load(Ordering::Relaxed) {
            // Not where the first stamp stands: of a format whose epoch lies in the future, that is years ahead.
            next if next == self.first => self.start.at,
            next => self.line.instant_covering(next),
        }
    }

    /// The first stamp that may not leave at this moment, which is in that tick. By the clock a whole tick is free as
    /// soon as it has begun, and the lead after it, but nothing before the clock has come to the start; by a start ahead
    /// of the clock only what that has come past.
    #[inline]
    fn free_until(&self, tick: u64, moment: &Moment) -> u64 {
        let by_clock = if moment.now < self.line.base() {
            0
        } else {
            let ticks = tick.saturating_add(self.lead_ticks).saturating_add(1);
            ticks.saturating_mul(self.line.per_tick())
        };
        match moment.catching_up {
            None => by_clock,
            Some(reached) => by_clock.max(self.line.first_stamp_at(reached.after(self.lead()))),
        }
    }

    /// What the clock shows when every stamp below `end` may leave.
    pub(in crate::minting) fn due(&self, end: u64, moment: &Moment) -> UnixNanos {
        let last_tick = (end - 1) / self.line.per_tick();
        let by_clock = self.line.tick_start(last_tick.saturating_sub(self.lead_ticks));
        match moment.catching_up {
            None => by_clock,
            Some(_) => by_clock.min(moment.catches_up_to(self.line.instant_covering(end).before(self.lead()))),
        }
    }

    fn lead(&self) -> Duration {
        self.line.ticks_last(self.lead_ticks)
    }
}

#[cfg(test)]
#[path = "sequencer_tests.rs"]
mod tests;

#[cfg(all(test, idmint_loom))]
#[path = "sequencer_models.rs"]
mod models;
