//! Gives each response its own part of a tick, so that a later response has greater ids.

use crate::id::Monotonic;
use crate::sync::{AtomicU64, Ordering};

/// The parts of ticks that one process has given to its responses. Each response gets its own part,
/// and a later response gets a later part.
///
/// Unit: parts of a tick. A tick has [`Monotonic::PARTS_OF_TICK`] parts. Parts are counted from the
/// tick of 1970, or from the epoch of the format if it is later. They are not counted from the tick
/// in which the process began, because the clock can be wrong at that time and corrected later.
///
/// Bounds: 64 bits suffice up to the year 2554, where the clock ends, because a part lasts at least
/// one nanosecond.
#[derive(Debug)]
pub(super) struct TickParts {
    /// The tick that contains part 0, in ticks since the epoch.
    base_tick: u128,
    /// The first part that no response has taken.
    /// Written by: `take`, by compare-exchange.
    /// Invariant: never decreases. No two responses therefore get the same part, and a later call
    /// gets a later part.
    /// Ordering: Relaxed, because this word is the whole state, and a read-modify-write always sees
    /// its newest value.
    /// Tested by: `loom_two_answers_never_have_one_part`.
    next: AtomicU64,
}

/// One of the parts into which a tick is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TickPart {
    /// The number of the tick, in ticks since the epoch.
    pub(super) tick: u128,
    /// The index of the part in its tick, below [`Monotonic::PARTS_OF_TICK`].
    pub(super) part: u64,
}

impl TickParts {
    /// Creates the counter that gives each response its own part of a tick. No part is taken yet.
    /// Parts are counted from the tick `base_tick`.
    pub(super) fn from(base_tick: u128) -> TickParts {
        TickParts {
            base_tick,
            next: AtomicU64::new(0),
        }
    }

    /// Takes a part of a tick for a response. If no response has taken a part at or after `floor`
    /// yet, the response gets the part that is `ahead` parts after `floor`. Otherwise it gets the
    /// part after the last taken one.
    ///
    /// Ticks before `base_tick` count as `base_tick`. A clock that was set back therefore does not
    /// change the order.
    #[inline]
    pub(super) fn take(&self, floor: TickPart, ahead: u64) -> TickPart {
        let of_tick = Monotonic::PARTS_OF_TICK;
        let ticks = u64::try_from(floor.tick.saturating_sub(self.base_tick)).unwrap_or(u64::MAX);
        let floor = ticks.saturating_mul(of_tick).saturating_add(floor.part);
        let mut next = self.next.load(Ordering::Relaxed);
        loop {
            let part = if next <= floor {
                floor.saturating_add(ahead)
            } else {
                next
            };
            let end = part.saturating_add(1);
            match self
                .next
                .compare_exchange_weak(next, end, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => {
                    return TickPart {
                        tick: self.base_tick + u128::from(part / of_tick),
                        part: part % of_tick,
                    };
                }
                Err(newer) => next = newer,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tick: u128, part: u64) -> TickPart {
        TickPart { tick, part }
    }

    #[test]
    fn a_part_is_that_of_the_clock_or_the_one_after_the_last() {
        let parts = TickParts::from(100);
        assert_eq!(parts.take(at(100, 7), 0), at(100, 7));
        assert_eq!(parts.take(at(100, 7), 0), at(100, 8));
        assert_eq!(parts.take(at(100, 8), 0), at(100, 9));
        assert_eq!(parts.take(at(100, 4095), 0), at(100, 4095));
        assert_eq!(
            parts.take(at(100, 4095), 0),
            at(101, 0),
            "the next tick begins early"
        );
        assert_eq!(
            parts.take(at(3, 0), 0),
            at(101, 1),
            "the clock was set back"
        );
    }

    #[test]
    fn the_first_part_of_a_tick_is_the_one_that_was_drawn_and_the_others_follow() {
        let parts = TickParts::from(100);
        assert_eq!(parts.take(at(100, 0), 4000), at(100, 4000));
        assert_eq!(parts.take(at(100, 0), 50), at(100, 4001));
        assert_eq!(parts.take(at(101, 0), 4095), at(101, 4095));
        assert_eq!(parts.take(at(101, 0), 9), at(102, 0));
        assert_eq!(parts.take(at(102, 0), 9), at(102, 1));
        assert_eq!(parts.take(at(103, 0), 0), at(103, 0));
    }
}

#[cfg(all(test, idmint_loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::time::models::explore;

    #[test]
    fn loom_two_answers_never_have_one_part() {
        explore("both threads took parts at once", |tally| {
            let parts = Arc::new(TickParts::from(0));
            let take = |parts: &TickParts, part| {
                [0, 1].map(|_| parts.take(TickPart { tick: 0, part }, 0).part)
            };
            let other = {
                let parts = Arc::clone(&parts);
                thread::spawn(move || take(&parts, 1))
            };
            let mine = take(&parts, 0);
            let theirs = other.join().expect("the model does not panic");
            assert!(
                mine[0] < mine[1] && theirs[0] < theirs[1],
                "each only grows: {mine:?} {theirs:?}"
            );
            assert!(
                mine.iter().all(|part| !theirs.contains(part)),
                "{mine:?} {theirs:?}"
            );
            tally.count(usize::from(mine[1] > theirs[0] && theirs[1] > mine[0]));
        });
    }
}
