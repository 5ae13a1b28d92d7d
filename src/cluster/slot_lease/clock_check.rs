//! Whether this node's clock may be believed, by the last look at those of its fleet.

use std::time::Duration;

use super::rule::NodeName;
use crate::cluster::fleet_clocks::{FleetClocks, Skew};
use crate::minting::Refusal;
use crate::storage::KeyValue;
use crate::time::UnixNanos;

/// What the clocks of the fleet say of this node's.
#[derive(Debug, Clone)]
pub(in crate::cluster) struct ClockCheck {
    skew_max: Duration,
    clocks: FleetClocks,
    skew: Skew,
}

impl ClockCheck {
    /// Nothing was seen yet. `skew_max`: how far a clock may be from the others.
    pub(super) fn new(skew_max: Duration) -> ClockCheck {
        ClockCheck {
            skew_max,
            clocks: FleetClocks::default(),
            skew: Skew::None,
        }
    }

    /// Takes in a look that was asked for at one instant and answered at the next.
    pub(super) fn look(
        &mut self,
        (asked_at, now): (UnixNanos, UnixNanos),
        horizons: &[KeyValue],
        holders: &[KeyValue],
        node: &NodeName,
    ) {
        self.clocks.look((asked_at, now), horizons, holders, node);
        self.skew = self.clocks.skew_of(now, now).unwrap_or_default();
    }

    /// What was seen says nothing any more: it was seen at instants of a clock that has been set.
    pub(super) fn forget(&mut self) {
        *self = ClockCheck::new(self.skew_max);
    }

    /// How far this clock was from those of the fleet at the last look, for certain.
    pub(in crate::cluster) fn skew(&self) -> Skew {
        self.skew
    }

    /// Why nothing is to be minted by this clock: those of the fleet say that it is wrong.
    pub(in crate::cluster) fn refusal(&self) -> Option<Refusal> {
        match self.skew {
            Skew::Ahead(ahead) if ahead > self.skew_max => {
                Some(Refusal::ClockAheadOfFleet { ahead })
            }
            Skew::Behind(behind) if behind > self.skew_max => {
                Some(Refusal::ClockBehindFleet { behind })
            }
            Skew::None | Skew::Ahead(_) | Skew::Behind(_) => None,
        }
    }

    /// Whether a wall clock was set, since it shows a time further from this clock than a right one does.
    pub(in crate::cluster) fn is_step(&self, wall: UnixNanos, now: UnixNanos) -> bool {
        wall.since(now).max(now.since(wall)) > self.skew_max
    }

    /// Whether the clocks of the fleet say that a wall clock is right.
    pub(in crate::cluster) fn confirms(&self, wall: UnixNanos, now: UnixNanos) -> bool {
        self.clocks
            .skew_of(wall, now)
            .is_some_and(|skew| !skew.exceeds(self.skew_max))
    }
}
