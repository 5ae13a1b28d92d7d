//! The counter of one worker number of one format.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::catch_up::Moment;
use super::exclusion::{Exclusion, Placed};
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
        let first = begins.max(
            start
                .floor
                .map_or(0, |floor| line.first_whole_tick_at(floor)),
        );
        let state = State {
            next: AtomicU64::new(first),
            ceiling: AtomicU64::new(begins),
            refill: AtomicU64::new(begins),
        };
        let (end, spread, state) = (
            line.stamp_of_tick(end_tick),
            Spread::NONE,
            CachePadded::new(state),
        );
        Sequencer {
            end,
            line,
            start,
            first,
            lead_ticks,
            spread,
            exclusion: None,
            state,
        }
    }

    /// The same, where the first run of a tick begins a few stamps further.
    #[must_use]
    pub fn with_spread(self, spread: Spread) -> Sequencer {
        Sequencer { spread, ..self }
    }

    /// The same, where the first stamp of all is behind this tick since the epoch.
    #[must_use]
    pub(in crate::minting) fn after_tick(self, tick: u128) -> Sequencer {
        let first = self
            .first
            .max(self.line.stamp_of_tick(tick.saturating_add(1)));
        // Nobody else has it yet.
        self.state.next.store(first, Ordering::Relaxed);
        Sequencer { first, ..self }
    }

    /// The same, where nothing is handed out in these ticks since the epoch: rows that ascend.
    #[must_use]
    pub(in crate::minting) fn around(self, ticks: Arc<[Range<u64>]>) -> Sequencer {
        let exclusion = Exclusion::new(ticks, &self.line, self.first);
        Sequencer {
            exclusion: Some(Box::new(exclusion)),
            ..self
        }
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
    pub fn reserve(
        &self,
        count: u64,
        moment: &Moment,
        wait_max: Duration,
    ) -> Result<Grant, Shortage> {
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
                end = spread
                    .filter(|spread| *spread <= free_until.min(self.end))
                    .unwrap_or(end);
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
                    None => Err(Shortage::Horizon {
                        needed: self.line.instant_covering(end),
                    }),
                    Some(exclusion) => self.reserve_around(exclusion, count, moment, wait_max),
                };
            }
            match self.state.next.compare_exchange_weak(
                next,
                end,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    return Ok(Grant {
                        first: end - count,
                        due,
                        refill: self.needs_refill(end),
                    });
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
            let Placed {
                first,
                free_to,
                due,
            } = self.place_around(exclusion, from, count, moment, wait_max)?;
            let end = first + count;
            if end > gate.horizon {
                return Err(Shortage::Horizon {
                    needed: self.line.instant_covering(end),
                });
            }
            match self
                .state
                .next
                .compare_exchange(next, end, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => {
                    gate.barrier = free_to;
                    self.raise_ceiling(gate.horizon.min(gate.barrier));
                    return Ok(Grant {
                        first,
                        due,
                        refill: self.needs_refill(end),
                    });
                }
                Err(newer) => next = newer,
            }
        }
    }

    /// Where `count` stamps in a row can stand from there on.
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
            let end = free
                .start
                .checked_add(count)
                .filter(|end| *end <= self.end)
                .ok_or(Shortage::Ended)?;
            let due = if end > free_until {
                self.due(end, moment)
            } else {
                moment.now
            };
            if due.since(moment.now) > wait_max {
                return Err(Shortage::Sequence { due });
            }
            if end <= free.end {
                return Ok(Placed {
                    first: free.start,
                    free_to: free.end,
                    due,
                });
            }
        }
        Err(Shortage::Ended)
    }

    /// The first stamp that nobody has at this moment.
    pub(in crate::minting) fn first_free(&self, moment: &Moment) -> u64 {
        let floor = self
            .line
            .tick_at(moment.now)
            .saturating_mul(self.line.per_tick());
        self.state.next.load(Ordering::Relaxed).max(floor)
    }

    /// When a run of `count` stamps could leave, or the first place for one that it would have to wait for beyond `wait_max`.
    pub(in crate::minting) fn due_for(
        &self,
        count: u64,
        moment: &Moment,
        wait_max: Duration,
    ) -> UnixNanos {
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
            return Err(Shortage::Horizon {
                needed: self.line.instant_covering(end),
            });
        }
        Ok(())
    }

    /// Takes every stamp from the first free one to `until`, which has been checked; `None` when others have them.
    pub(in crate::minting) fn take_until(&self, until: u64, moment: &Moment) -> Option<Range<u64>> {
        assert_eq!(
            self.check(until),
            Ok(()),
            "what is taken is below the horizon and the format's end"
        );
        let floor = self
            .line
            .tick_at(moment.now)
            .saturating_mul(self.line.per_tick());
        let mut next = self.state.next.load(Ordering::Relaxed);
        loop {
            let first = next.max(floor);
            if first >= until {
                return None;
            }
            match self.state.next.compare_exchange_weak(
                next,
                until,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
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
        self.state
            .refill
            .store(self.line.first_stamp_at(refill), Ordering::Relaxed);
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
        let by_clock = self
            .line
            .tick_start(last_tick.saturating_sub(self.lead_ticks));
        match moment.catching_up {
            None => by_clock,
            Some(_) => by_clock
                .min(moment.catches_up_to(self.line.instant_covering(end).before(self.lead()))),
        }
    }

    fn lead(&self) -> Duration {
        self.line.ticks_last(self.lead_ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minting::sequenced::catch_up::CatchUp;
    use crate::time::UnixTime;

    const START: UnixNanos = UnixNanos::from_seconds(1_800_000_000);
    const FAR: UnixNanos = UnixNanos::from_seconds(1_900_000_000);
    const NO_WAIT: Duration = Duration::ZERO;

    /// Sequences of 1 296 values a second, as a payment id has.
    fn payment(start: UnixNanos, now: UnixNanos) -> (Sequencer, CatchUp) {
        let line = StampLine::new("1s".parse().expect("a tick"), UnixTime::EPOCH, 1296, start);
        let sequencer = Sequencer::new(line, SessionStart::at(start), u128::MAX, 0);
        sequencer.raise(FAR, FAR);
        (sequencer, CatchUp::new(start, now))
    }

    #[test]
    fn a_whole_tick_is_free_as_soon_as_it_has_begun_and_no_more() {
        let (sequencer, catch_up) = payment(START, START);
        let granted = sequencer
            .reserve(1296, &catch_up.at(START), NO_WAIT)
            .expect("a fresh second");
        assert_eq!((granted.first, granted.due), (0, START));
        let next_second = START.after(Duration::from_secs(1));
        assert_eq!(
            sequencer.reserve(1, &catch_up.at(START), NO_WAIT),
            Err(Shortage::Sequence { due: next_second })
        );
        let waited = sequencer
            .reserve(1, &catch_up.at(START), Duration::from_secs(1))
            .expect("within the wait");
        assert_eq!((waited.first, waited.due), (1296, next_second));
    }

    #[test]
    fn a_start_ahead_of_the_clock_goes_on_at_half_speed() {
        let now = START.before(Duration::from_secs(2));
        let (sequencer, catch_up) = payment(START, now);
        let half_a_second_later = catch_up.at(now.after(Duration::from_millis(500)));
        // A quarter of a second of the way, rounded up: 324 stamps.
        assert!(
            sequencer
                .reserve(325, &half_a_second_later, NO_WAIT)
                .is_err()
        );
        assert!(
            sequencer
                .reserve(324, &half_a_second_later, NO_WAIT)
                .is_ok()
        );
        let caught_up = now.after(Duration::from_nanos(500_000_000 + 2 * 771_605));
        let Err(Shortage::Sequence { due }) = sequencer.reserve(1, &half_a_second_later, NO_WAIT)
        else {
            panic!("it has not come past the next stamp")
        };
        assert_eq!(due.since(caught_up), Duration::ZERO);
        assert!(
            sequencer.reserve(1, &catch_up.at(due), NO_WAIT).is_ok(),
            "it is to be had when it was said to be"
        );
    }

    #[test]
    fn nothing_is_handed_out_above_the_horizon_and_the_need_is_exact() {
        let line = StampLine::new("1ms".parse().expect("a tick"), UnixTime::EPOCH, 4096, START);
        let sequencer = Sequencer::new(line, SessionStart::at(START), u128::MAX, 5);
        let moment = CatchUp::new(START, START).at(START);
        let Err(Shortage::Horizon { needed }) = sequencer.reserve(4096, &moment, NO_WAIT) else {
            panic!("no horizon was raised yet")
        };
        sequencer.raise(needed, needed);
        assert_eq!(
            sequencer
                .reserve(4096, &moment, NO_WAIT)
                .expect("covered")
                .first,
            0
        );
        assert!(matches!(
            sequencer.reserve(1, &moment, NO_WAIT),
            Err(Shortage::Horizon { .. })
        ));
    }

    #[test]
    fn a_format_ends_at_its_last_tick_and_never_wraps() {
        let line = StampLine::new("1ms".parse().expect("a tick"), UnixTime::EPOCH, 4096, START);
        let last_tick = 1_800_000_000_000;
        let sequencer = Sequencer::new(line, SessionStart::at(START), last_tick + 1, 5);
        sequencer.raise(FAR, FAR);
        let moment = CatchUp::new(START, START).at(START);
        assert_eq!(
            sequencer.reserve(4097, &moment, NO_WAIT),
            Err(Shortage::Ended)
        );
        assert!(sequencer.reserve(4096, &moment, NO_WAIT).is_ok());
        assert_eq!(sequencer.reserve(1, &moment, NO_WAIT), Err(Shortage::Ended));
        assert_eq!(
            sequencer.reserve(u64::MAX, &moment, NO_WAIT),
            Err(Shortage::Ended)
        );
    }

    #[test]
    fn the_first_run_of_a_tick_that_begins_above_the_last_stamp_is_spread_and_no_other() {
        let line = StampLine::new("1ms".parse().expect("a tick"), UnixTime::EPOCH, 4096, START);
        let sequencer = Sequencer::new(line, SessionStart::at(START), u128::MAX, 1)
            .with_spread(Spread::over(64));
        sequencer.raise(FAR, FAR);
        let catch_up = CatchUp::new(START, START);
        let first = |millis, count| {
            let moment = catch_up.at(START.after(Duration::from_millis(millis)));
            let grant = sequencer.reserve(count, &moment, Duration::from_millis(1));
            grant
                .map(|grant| (grant.first, grant.due.since(moment.now)))
                .expect("within the wait")
        };
        let at = |tick: u64, sequence| (tick * 4096 + sequence, NO_WAIT);
        assert_eq!(first(0, 1), at(0, 0), "the session begins there");
        assert_eq!(
            (first(1, 1), first(1, 2), first(1, 1)),
            (at(1, 39), at(1, 40), at(1, 42))
        );
        assert_eq!(
            (first(2, 4096), first(3, 1)),
            (at(2, 15), at(3, 15)),
            "a batch is spread, and goes on in the next tick"
        );
        assert_eq!(
            first(10, 8192),
            at(10, 0),
            "with what is skipped not all of it would be free at once"
        );
        assert_eq!(
            first(12, 1),
            at(12, 0),
            "a lane that is used up goes on where it stands"
        );
        assert_eq!(first(12, 8190), at(12, 1));
        assert_eq!(first(12, 3), (14 * 4096 - 1, Duration::from_millis(1)));
    }

    #[test]
    fn a_spread_run_needs_a_horizon_that_covers_it_with_all_that_is_skipped() {
        let line = StampLine::new("1ms".parse().expect("a tick"), UnixTime::EPOCH, 4096, START);
        let sequencer = Sequencer::new(line, SessionStart::at(START), u128::MAX, 1)
            .with_spread(Spread::over(64));
        let tick = START.after(Duration::from_millis(1));
        let moment = CatchUp::new(START, START).at(tick);
        // 39 are skipped: a horizon that covers the first ten stamps of the tick is not enough.
        let horizon = sequencer.line.instant_covering(4096 + 10);
        sequencer.raise(horizon, horizon);
        let Err(Shortage::Horizon { needed }) = sequencer.reserve(1, &moment, NO_WAIT) else {
            panic!("it is above the horizon")
        };
        assert_eq!(needed, sequencer.line.instant_covering(4096 + 39 + 1));
        sequencer.raise(needed, needed);
        assert_eq!(
            sequencer
                .reserve(1, &moment, NO_WAIT)
                .expect("covered")
                .first,
            4096 + 39
        );
    }

    #[test]
    fn where_stamps_end_nothing_is_skipped_into_those_of_others() {
        // After 2^64 stamps, as a process that runs for longer than any does.
        let line = StampLine::new(
            "1ns".parse().expect("a tick"),
            UnixTime::EPOCH,
            1 << 32,
            START,
        );
        let sequencer = Sequencer::new(line, SessionStart::at(START), u128::MAX, 1)
            .with_spread(Spread::over(64));
        sequencer.raise(FAR, FAR);
        let moment = CatchUp::new(START, START).at(START.after(Duration::from_secs(3600)));
        assert_eq!(sequencer.reserve(1, &moment, NO_WAIT), Err(Shortage::Ended));
    }

    #[test]
    fn nothing_is_minted_before_the_epoch() {
        let epoch = UnixTime::from(FAR);
        let line = StampLine::new("1s".parse().expect("a tick"), epoch, 1296, START);
        let sequencer = Sequencer::new(line, SessionStart::at(START), 9, 0);
        sequencer.raise(UnixNanos::new(u64::MAX), FAR);
        let catch_up = CatchUp::new(START, START);
        assert_eq!(
            sequencer.reserve(1, &catch_up.at(START), NO_WAIT),
            Err(Shortage::NotBegun)
        );
        assert_eq!(
            sequencer.reached(),
            START,
            "nothing was handed out, so nothing above the start need be reserved"
        );
        assert!(sequencer.reserve(1, &catch_up.at(FAR), NO_WAIT).is_ok());
    }

    /// Four stamps a second, of which these seconds since the start are left out, and where a run begins that is asked for in one.
    fn first_around(left_out: &[Range<u64>], asked: &[(u64, u64)]) -> Vec<Result<u64, Shortage>> {
        let tick = |second: u64| START.get() / 1_000_000_000 + second;
        let ticks: Vec<_> = left_out
            .iter()
            .map(|row| tick(row.start)..tick(row.end))
            .collect();
        let line = StampLine::new("1s".parse().expect("a tick"), UnixTime::EPOCH, 4, START);
        let sequencer =
            Sequencer::new(line, SessionStart::at(START), u128::MAX, 0).around(ticks.into());
        sequencer.raise(FAR, FAR);
        let catch_up = CatchUp::new(START, START);
        let first = |(second, count): &(u64, u64)| {
            let moment = catch_up.at(START.after(Duration::from_secs(*second)));
            sequencer
                .reserve(*count, &moment, Duration::from_secs(2))
                .map(|grant| grant.first)
        };
        asked.iter().map(first).collect()
    }

    #[test]
    #[expect(
        clippy::single_range_in_vec_init,
        reason = "one row of ticks is left out"
    )]
    fn a_run_that_would_touch_an_excluded_tick_begins_behind_it_and_lower_stamps_stay_for_shorter_ones()
     {
        let due = |second| {
            Err(Shortage::Sequence {
                due: START.after(Duration::from_secs(second)),
            })
        };
        // Seconds 1 and 3 are left out: a run of five fits nowhere before second 4, and asked in second 2 it may wait so long.
        assert_eq!(
            first_around(
                &[1..2, 3..4],
                &[(0, 2), (0, 5), (0, 2), (0, 1), (2, 5), (2, 1)]
            ),
            [Ok(0), due(3), Ok(2), Ok(8), due(5), Ok(9)]
        );
        assert_eq!(
            first_around(&[0..2], &[(0, 1), (5, 4), (5, 1)]),
            [Ok(8), Ok(20), Ok(24)]
        );
        // The present tick is left out.
        assert_eq!(
            first_around(&[7..9], &[(0, 1), (7, 1), (20, 9)]),
            [Ok(0), Ok(36), Ok(80)]
        );
    }

    #[test]
    #[should_panic(expected = "a horizon is never lowered")]
    fn a_horizon_is_never_lowered() {
        let (sequencer, _) = payment(START, START);
        sequencer.raise(START, START);
    }
}

#[cfg(all(test, idmint_loom))]
#[path = "sequencer_models.rs"]
mod models;
