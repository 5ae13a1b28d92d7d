//! Simulated faults, such as lost messages. The seed of a run determines their kinds, rates and
//! times.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The source of random numbers for one run.
pub(super) struct Dice(StdRng);

impl Dice {
    pub(super) fn of(seed: u64) -> Dice {
        Dice(StdRng::seed_from_u64(seed))
    }

    /// Returns `true` with a probability of `cases` per thousand.
    pub(super) fn per_mille(&mut self, cases: u32) -> bool {
        self.0.random_range(0..1000) < cases
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0.random_range(0..bound.max(1))
    }

    pub(super) fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.0.random_range(least..=most))
    }

    pub(super) fn bits(&mut self) -> u128 {
        self.0.random()
    }

    /// Returns a new source of random numbers that is independent of this one.
    pub(super) fn split(&mut self) -> Dice {
        Dice::of(self.0.random())
    }
}

/// The state of the network and the coordinator for a period of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    Calm,
    /// Requests and responses are delayed, lost or duplicated, and reads return old states.
    Rough,
    /// The coordinator has no leader, so no request gets a response.
    Leaderless,
    /// The coordinator has no space left, so it refuses writes.
    Full,
}

impl Weather {
    pub(super) fn draw(dice: &mut Dice) -> Weather {
        match dice.below(20) {
            0..9 => Weather::Calm,
            9..17 => Weather::Rough,
            17..19 => Weather::Leaderless,
            _ => Weather::Full,
        }
    }
}
