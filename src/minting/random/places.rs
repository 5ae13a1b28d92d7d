//! Which answers of one process come after which.

use super::sync::{AtomicU64, Ordering};
use crate::id::Monotonic;

/// The places of ticks that one process has minted in: each is that of one answer, and later answers have later places.
///
/// Unit: places, [`Monotonic::PLACES_OF_TICK`] in a tick, counted from the tick in which the process began.
/// Bounds: the shortest place lasts a nanosecond, so there are some for more than 500 years.
#[derive(Debug)]
pub(super) struct Places {
    /// The tick that is counted from, since the epoch.
    base_tick: u128,
    /// The first place that no answer has.
    /// Written by: `take`, by compare-exchange. Invariant: only grows, so no two answers have one place, and whoever asks later
    /// has a later one.
    /// Ordering: Relaxed. The word is the whole state, and a read-modify-write always sees its newest value.
    /// Tested by: `loom_two_answers_never_have_one_place`.
    next: AtomicU64,
}

/// A part of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The tick since the epoch.
    pub(super) tick: u128,
    /// The part, of [`Monotonic::PLACES_OF_TICK`].
    pub(super) part: u64,
}

impl Places {
    /// The places from that tick on.
    pub(super) fn from(base_tick: u128) -> Places {
        Places { base_tick, next: AtomicU64::new(0) }
    }

    /// Takes a place `ahead` of `floor`, if nobody has that or a later one, else the first that nobody has.
    ///
    /// Of ticks before the first one it is in that: a clock that was set back leaves the order as it is.
    #[inline]
    pub(super) fn take(&self, floor: Place, ahead: u64) -> Place {
        let of_tick = Monotonic::PLACES_OF_TICK;
        let ticks = u64::try_from(floor.tick.saturating_sub(self.base_tick)).unwrap_or(u64::MAX);
        let floor = ticks.saturating_mul(of_tick).saturating_add(floor.part);
        let mut next = self.next.load(Ordering::Relaxed);
        loop {
            let place = if next <= floor { floor.saturating_add(ahead) } else { next };
            let end = place.saturating_add(1);
            match self.next.compare_exchange_weak(next, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Place { tick: self.base_tick + u128::from(place / of_tick), part: place % of_tick },
                Err(newer) => next = newer,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tick: u128, part: u64) -> Place {
        Place { tick, part }
    }

    #[test]
    fn a_place_is_that_of_the_clock_or_the_one_after_the_last() {
        let places = Places::from(100);
        assert_eq!(places.take(at(100, 7), 0), at(100, 7));
        assert_eq!(places.take(at(100, 7), 0), at(100, 8));
        assert_eq!(places.take(at(100, 8), 0), at(100, 9));
        assert_eq!(places.take(at(100, 4095), 0), at(100, 4095));
        assert_eq!(places.take(at(100, 4095), 0), at(101, 0), "the next tick begins early");
        assert_eq!(places.take(at(3, 0), 0), at(101, 1), "the clock was set back");
    }

    #[test]
    fn the_first_place_of_a_tick_is_the_one_that_was_drawn_and_the_others_follow() {
        let places = Places::from(100);
        assert_eq!(places.take(at(100, 0), 4000), at(100, 4000));
        assert_eq!(places.take(at(100, 0), 50), at(100, 4001));
        assert_eq!(places.take(at(101, 0), 4095), at(101, 4095));
        assert_eq!(places.take(at(101, 0), 9), at(102, 0));
        assert_eq!(places.take(at(102, 0), 9), at(102, 1));
        assert_eq!(places.take(at(103, 0), 0), at(103, 0));
    }
}

#[cfg(all(test, idmint_loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::time::models::explore;

    #[test]
    fn loom_two_answers_never_have_one_place() {
        explore("both threads took places at once", |tally| {
            let places = Arc::new(Places::from(0));
            let take = |places: &Places, part| [0, 1].map(|_| places.take(Place { tick: 0, part }, 0).part);
            let other = {
                let places = Arc::clone(&places);
                thread::spawn(move || take(&places, 1))
            };
            let mine = take(&places, 0);
            let theirs = other.join().expect("the model does not panic");
            assert!(mine[0] < mine[1] && theirs[0] < theirs[1], "each only grows: {mine:?} {theirs:?}");
            assert!(mine.iter().all(|place| !theirs.contains(place)), "{mine:?} {theirs:?}");
            tally.count(usize::from(mine[1] > theirs[0] && theirs[1] > mine[0]));
        });
    }
}
