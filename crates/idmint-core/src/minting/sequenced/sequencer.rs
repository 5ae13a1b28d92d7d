//! The sequencer of one worker number in one format. It hands out stamps, and limits how far the
//! stamps may be ahead of the clock. A stamp is a tick and a sequence in one integer.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::exclusion::{Exclusion, Placed};
use super::stamps::StampLine;
use crate::minting::session_start::SessionStart;
use crate::sync::{AtomicU64, Ordering};
use crate::time::UnixNanos;

/// Hands out runs of consecutive stamps. No stamp is handed out twice. A run of any length takes
/// one compare-exchange.
///
/// Unit: stamps relative to the start, see [`StampLine`]. No stamp at or above the horizon is
/// handed out. Only a [`Session`](crate::minting::Session) raises the horizon, and only after the
/// new horizon was written to disk.
#[derive(Debug)]
pub(crate) struct Sequencer {
    line: StampLine,
    start: SessionStart,
    /// The first stamp that this sequencer may hand out.
    first: u64,
    /// The first stamp that is too late for the format. It is never handed out.
    end: u64,
    /// The lead: the number of ticks by which ids may be ahead of the clock without a wait.
    lead_ticks: u64,
    /// The rule for each tick's first sequence number. Without it, every id that is minted alone
    /// would have sequence 0.
    spread: Spread,
    /// The ticks to skip, if any. Checked only when a reservation reaches the ceiling, so that the
    /// check costs nothing if no tick is excluded.
    exclusion: Option<Box<Exclusion>>,
    state: CachePadded<StampState>,
}

#[derive(Debug)]
struct StampState {
    /// The next free stamp, relative to the sequencer's start.
    /// Written by: `reserve`, `reserve_around` and `take_until`, by compare-exchange, and by
    /// `after_tick` before the sequencer is shared.
    /// Read by: these functions and `reached`.
    /// Invariant: never decreases, so two reservations never overlap.
    /// Ordering: Relaxed, because this word is the whole state, and a read-modify-write always sees
    /// its newest value.
    /// Tested by: `loom_two_reservations_never_overlap`,
    /// `loom_a_share_of_a_batch_never_overlaps_a_reservation`.
    next: AtomicU64,
    /// The first stamp that must not be handed out: the first one that the horizon does not cover,
    /// or the first one of the next excluded tick, whichever is lower.
    /// Written by: `raise`, by one thread, after the horizon was written to disk. With excluded
    /// ticks, also by `reserve_around`, after `next` has passed the tick. Both then hold the lock
    /// of the exclusion.
    /// Read by: `reserve`, `check`, `take_until`.
    /// Invariant: never decreases, and every stamp that is handed out is below it.
    /// Ordering: Release, which pairs with the Acquire in `reserve`. A thread that reads a value
    /// knows that the horizon is on disk, and that `next` has passed every excluded tick below the
    /// value. A compare-exchange from an earlier `next` therefore fails.
    /// Tested by: `loom_no_stamp_is_above_a_horizon_that_is_being_raised`,
    /// `loom_no_run_touches_an_excluded_tick`.
    ceiling: AtomicU64,
    /// The stamp after which more time for minting should be reserved. Ordering: Relaxed, because
    /// the value is only a hint.
    refill: AtomicU64,
}

/// A run of stamps that belongs to one caller, and the clock time from which its ids may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The first stamp of the run, relative to the sequencer's start.
    pub first: u64,
    /// The clock time before which the ids must not be sent.
    pub due: UnixNanos,
    /// `true` if less than half of the reserved minting time is left, so that more should be
    /// reserved.
    pub refill: bool,
}

/// The reason why no run of stamps was reserved for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// Too few sequence numbers are free before `due`, and the wait until then would be too long.
    Sequence {
        /// The clock time from which the requested ids could be sent.
        due: UnixNanos,
    },
    /// The ids would be above the horizon. The horizon must first be raised to `needed`.
    Horizon {
        /// The lowest horizon with which the ids can be reserved.
        needed: UnixNanos,
    },
    /// The ids would be later than the last id that the format can mint.
    Ended,
    /// The format cannot be minted yet, because earlier ids may have any time before its first
    /// whole tick. That tick follows a floor or the setting `start_after`.
    NotOpen {
        /// The instant at which the format's first whole tick begins.
        opens_at: UnixNanos,
    },
    /// The current time is before the format's epoch.
    NotBegun,
}

impl Sequencer {
    /// Creates a sequencer, which hands out no ids until [`raise`](Self::raise) permits them.
    ///
    /// `end_tick`, counted since the epoch, is the first tick too late for the format.
    pub(crate) fn new(
        line: StampLine,
        start: SessionStart,
        end_tick: u128,
        lead_ticks: u64,
    ) -> Sequencer {
        let begins = line.first_stamp_at(start.at);
        let first = begins.max(
            start
                .floor
                .map_or(0, |floor| line.first_whole_tick_at(floor)),
        );
        let state = StampState {
            next: AtomicU64::new(first),
            ceiling: AtomicU64::new(begins),
            refill: AtomicU64::new(begins),
        };
        let end = line.stamp_of_tick(end_tick);
        let spread = Spread::NONE;
        let state = CachePadded::new(state);
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

    /// Sets the rule for the sequence number at which the first ids of each tick begin.
    #[must_use]
    pub(crate) fn with_spread(self, spread: Spread) -> Sequencer {
        Sequencer { spread, ..self }
    }

    /// Limits the sequencer to ticks after `tick`, which is counted since the epoch.
    #[must_use]
    pub(in crate::minting) fn after_tick(self, tick: u128) -> Sequencer {
        let first = self
            .first
            .max(self.line.stamp_of_tick(tick.saturating_add(1)));
        // Relaxed is sufficient, because no other thread has the sequencer yet.
        self.state.next.store(first, Ordering::Relaxed);
        Sequencer { first, ..self }
    }

    /// Makes the sequencer skip `ticks`, ascending ranges of ticks since the epoch.
    #[must_use]
    pub(in crate::minting) fn around(self, ticks: Arc<[Range<u64>]>) -> Sequencer {
        let exclusion = Exclusion::new(ticks, &self.line, self.first);
        Sequencer {
            exclusion: Some(Box::new(exclusion)),
            ..self
        }
    }

    /// `true` if the sequencer skips ticks that another generator has used.
    pub(in crate::minting) fn has_exclusions(&self) -> bool {
        self.exclusion.is_some()
    }

    /// Returns the converter between stamps and instants.
    pub(crate) fn line(&self) -> &StampLine {
        &self.line
    }

    /// Reserves `count` consecutive stamps (at least one). Their ids can be sent after at most
    /// `wait_max`.
    ///
    /// The run begins at the first free stamp. The first run of the current tick may begin a few
    /// stamps later, see [`Spread`].
    ///
    /// # Errors
    /// Returns a [`Shortage`] with the reason if no stamp was reserved.
    #[inline]
    pub(crate) fn reserve(
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
                // The first request of a tick may skip a few sequence numbers, so that ids minted
                // alone do not all have sequence 0. Skip none if the request would otherwise wait.
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
            // Acquire: pairs with the Release in raise_ceiling(). If a thread reads a ceiling, the
            // time below it is reserved on disk.
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

    /// Reserves `count` consecutive stamps that are in no excluded tick. Skips as many excluded
    /// ticks as necessary to find such a run.
    ///
    /// ```text
    ///   next -----|excluded tick|-- count --|--------|excluded tick|
    ///             ^ ceiling before                   ^ ceiling after the reservation
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

    /// Finds the first position at or after `from` with `count` consecutive stamps that are in no
    /// excluded tick.
    ///
    /// # Errors
    /// Returns [`Shortage::Ended`] if the format has no such stamps left. Returns
    /// [`Shortage::Sequence`] at the first position that would have to wait longer than `wait_max`,
    /// with the due time of that position.
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

    /// Returns the next stamp, or the first one of the current tick if that is later, because
    /// earlier ticks are not used any more. Does not check excluded ticks, the reserved time or the
    /// end of the format.
    pub(in crate::minting) fn first_free(&self, moment: &Moment) -> u64 {
        self.state
            .next
            .load(Ordering::Relaxed)
            .max(self.floor(moment))
    }

    /// Returns the first stamp of the tick of `moment.now`.
    fn floor(&self, moment: &Moment) -> u64 {
        let tick = self.line.tick_at(moment.now);
        tick.saturating_mul(self.line.per_tick())
    }

    /// Returns the clock time from which `count` consecutive ids could be sent. Excluded ticks are
    /// skipped, but only until the wait would exceed `wait_max`.
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

    /// Checks that all stamps below `end` may be handed out.
    ///
    /// # Errors
    /// Returns [`Shortage::Ended`] if `end` is after the last stamp of the format, or
    /// [`Shortage::Horizon`] if it is above the horizon.
    pub(in crate::minting) fn check(&self, end: u64) -> Result<(), Shortage> {
        if end > self.end {
            return Err(Shortage::Ended);
        }
        // Acquire: pairs with the Release in raise_ceiling(). If a thread reads a ceiling, the time
        // below the ceiling is reserved on disk.
        if end > self.state.ceiling.load(Ordering::Acquire) {
            return Err(Shortage::Horizon {
                needed: self.line.instant_covering(end),
            });
        }
        Ok(())
    }

    /// Reserves and returns all free stamps below `until` from the tick of `moment` on, if any.
    /// Call [`check`](Self::check) with `until` first.
    pub(in crate::minting) fn take_until(&self, until: u64, moment: &Moment) -> Option<Range<u64>> {
        assert_eq!(
            self.check(until),
            Ok(()),
            "what is taken is below the horizon and the format's end"
        );
        let floor = self.floor(moment);
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

    /// `true` if little of the reserved minting time is left, so that more should be reserved soon.
    /// `end` is the stamp after the last one handed out.
    #[inline]
    pub(in crate::minting) fn needs_refill(&self, end: u64) -> bool {
        end > self.state.refill.load(Ordering::Relaxed)
    }

    /// Returns the time of the first possible id, if a floor or the setting `start_after` makes it
    /// later than the start of the session. Otherwise returns `None`.
    pub(in crate::minting) fn opens_at(&self) -> Option<UnixNanos> {
        let is_later = self.first > self.line.first_stamp_at(self.start.at);
        is_later.then(|| self.line.tick_start(self.first / self.line.per_tick()))
    }

    /// Allows minting ids with times up to `horizon`. When minting reaches the instant `refill`,
    /// the caller should reserve more time.
    ///
    /// The time up to `horizon` must be reserved on disk.
    /// [`Session::raise`](crate::minting::Session::raise) guarantees this.
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

    /// Allows stamps below `ceiling` to be handed out.
    fn raise_ceiling(&self, ceiling: u64) {
        // Release: pairs with the Acquire in reserve() and check(). If a thread sees a ceiling, the
        // horizon of that ceiling is on disk. This is a swap instead of a load and a store, because
        // the load would hide a missing Release from the model checker.
        let before = self.state.ceiling.swap(ceiling, Ordering::Release);
        assert!(ceiling >= before, "a horizon is never lowered");
    }

    /// `true` if minting has reached the point from which more time should be reserved.
    pub(in crate::minting) fn is_running_low(&self) -> bool {
        let next = self.state.next.load(Ordering::Relaxed);
        // While `next` is still `first`, no id has been handed out and the sequencer is not running
        // low, even if `first` is after `refill`, the point from which to reserve more time.
        next != self.first && self.needs_refill(next)
    }

    /// Returns an instant that is later than the times of all ids handed out so far, or the start
    /// of the session if no id was handed out.
    pub(crate) fn reached(&self) -> UnixNanos {
        match self.state.next.load(Ordering::Relaxed) {
            // Do not return the time of the first possible id, which is years ahead if the epoch is
            // in the future. More time is reserved from the returned instant on, so the reservation
            // on disk would then be years ahead as well.
            next if next == self.first => self.start.at,
            next => self.line.instant_covering(next),
        }
    }

    /// Returns the exclusive upper bound of the stamps whose ids may be sent at this moment. `tick`
    /// is the tick that contains `moment.now`.
    ///
    /// As soon as the clock reaches a tick, all stamps of that tick and of the lead after the tick
    /// are free. Before the clock reaches the start, no stamps are free. As an exception, while a
    /// session that began ahead of its clock is catching up, stamps become free one by one. They
    /// are free up to the session's own time plus the lead.
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

    /// Returns the clock time from which all ids with stamps below `end` may be sent.
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

/// Limits the speed of a session that began ahead of its clock. The session's own time then
/// advances at half the speed of the clock, until the clock has caught up.
///
/// Half speed lets the clock catch up. At full speed, a process that is killed again and again
/// would be further ahead of its clock after each restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CatchUp {
    start: UnixNanos,
    began_at: UnixNanos,
    /// The clock time at which the clock has caught up with the session's own time.
    caught_up_at: UnixNanos,
}

/// The clock time of one request, which is read once, and the session's own time if that is ahead.
/// The session's own time begins at the start of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The clock time, which is an estimate of the true time.
    pub now: UnixNanos,
    /// The session's own time, or `None` if it is not ahead of the clock. The session's own time
    /// advances at half the speed of the clock, so that the clock catches up.
    pub catching_up: Option<UnixNanos>,
    catch_up: CatchUp,
}

impl CatchUp {
    /// Creates the speed limit of a session whose ids begin at time `start` while the clock shows
    /// `now`.
    pub(crate) fn new(start: UnixNanos, now: UnixNanos) -> CatchUp {
        CatchUp {
            start,
            began_at: now,
            caught_up_at: now.after(2 * start.since(now)),
        }
    }

    /// Returns the clock time `now` and, while the session is ahead of the clock, the session's own
    /// time, which advances at half speed so that the clock catches up.
    #[inline]
    pub(crate) fn at(&self, now: UnixNanos) -> Moment {
        if now >= self.caught_up_at {
            return Moment {
                now,
                catching_up: None,
                catch_up: *self,
            };
        }
        let reached = self.start.after(now.since(self.began_at) / 2);
        Moment {
            now,
            catching_up: (reached > now).then_some(reached),
            catch_up: *self,
        }
    }
}

impl Moment {
    /// Returns the time that new ids follow: the clock time or, if minting began ahead of the
    /// clock, a time that advances at half speed until the clock has caught up.
    pub(crate) fn reference(&self) -> UnixNanos {
        self.catching_up.unwrap_or(self.now)
    }

    /// Returns the clock time at which the time that new ids follow reaches `instant`. The
    /// result is valid only while that time is ahead of the clock, and so advances at half speed.
    pub(crate) fn catches_up_to(&self, instant: UnixNanos) -> UnixNanos {
        self.catch_up
            .began_at
            .after(instant.since(self.catch_up.start).saturating_mul(2))
    }
}

/// Determines the sequence at which the first run of a tick begins. It is one of the first `N`
/// sequences, and depends only on the tick.
///
/// `N` is a power of two, 1 to 2^30. Neighbouring ticks, and ticks at a constant distance (such as
/// every tenth tick), begin at sequences that are far apart.
///
/// Without a spread, an id that is minted alone always has sequence 0. With 12 sequence bits at the
/// end of the id, all such ids would be multiples of 4096, and `id % 16` would always be 0.
///
/// Source: multiplicative hashing with the golden ratio, D. Knuth, The Art of Computer Programming,
/// volume 3, section 6.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spread {
    /// The number that a tick is multiplied by to find its first sequence number, or 0 if every
    /// tick begins at sequence 0.
    factor: u64,
    /// The number of bits by which `tick * factor` is shifted right to get the first sequence
    /// number of the tick. For example, a shift of 54 leaves 10 bits, a number below 1024.
    shift: u32,
}

impl Spread {
    /// The spread with which every tick begins at sequence 0.
    pub(super) const NONE: Spread = Spread {
        factor: 0,
        shift: 0,
    };

    /// 2^64 divided by the golden ratio, rounded to an odd number.
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

    /// Creates the rule that computes a tick's first sequence number, which is below `sequences`.
    ///
    /// # Panics
    /// Panics if `sequences` is not a power of two.
    pub(crate) fn over(sequences: u32) -> Spread {
        assert!(
            sequences.is_power_of_two(),
            "{sequences} is a power of two, checked when the format was made"
        );
        match sequences {
            1 => Spread::NONE,
            _ => Spread {
                factor: Spread::GOLDEN,
                shift: u64::BITS - sequences.ilog2(),
            },
        }
    }

    /// Returns the sequence at which the first run of `tick` begins.
    #[inline]
    pub(crate) fn of_tick(self, tick: u64) -> u64 {
        tick.wrapping_mul(self.factor).wrapping_shr(self.shift)
    }
}

#[cfg(test)]
#[path = "sequencer_tests.rs"]
mod tests;

#[cfg(all(test, idmint_loom))]
#[path = "sequencer_models.rs"]
mod models;
