//! Compares this node's clock with the clocks of the fleet's other nodes, as of the last read of
//! their records.

use std::time::Duration;

use super::rule::NodeName;
use crate::KeyValue;
use crate::fleet_clocks::{FleetClocks, Skew};
use idmint_core::minting::Refusal;
use idmint_core::time::UnixNanos;

/// The observed clocks of the fleet's other nodes, and the proven difference between this node's
/// clock and the median of all clocks.
#[derive(Debug, Clone)]
pub(crate) struct ClockCheck {
    skew_max: Duration,
    clocks: FleetClocks,
    skew: Skew,
}

impl ClockCheck {
    /// Creates a check without observations. `skew_max` is the maximum allowed difference of this
    /// node's clock from the median of the fleet's clocks.
    pub(super) fn new(skew_max: Duration) -> ClockCheck {
        ClockCheck {
            skew_max,
            clocks: FleetClocks::default(),
            skew: Skew::None,
        }
    }

    /// Updates the observed clocks from a read of all slot holders and all horizons. Each horizon
    /// contains its writer's clock reading. The read was sent at `asked_at` and answered at `now`.
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

    /// Discards all observations of other nodes' clocks, because this node's clock was set. The
    /// observations were timed by the clock before that.
    pub(super) fn forget(&mut self) {
        *self = ClockCheck::new(self.skew_max);
    }

    /// Returns the difference between this node's clock and the fleet's clocks that the last read
    /// proves.
    pub(crate) fn skew(&self) -> Skew {
        self.skew
    }

    /// Returns the refusal to mint if the fleet's clocks prove that this node's clock is off by
    /// more than `skew_max`, and `None` otherwise.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
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

    /// `true` if the wall clock must have been set, because its time `wall` differs from the
    /// minting clock's time `now` by more than `skew_max`.
    pub(crate) fn is_step(&self, wall: UnixNanos, now: UnixNanos) -> bool {
        wall.since(now).max(now.since(wall)) > self.skew_max
    }

    /// `true` if at least two other nodes' clocks are known, and they allow that the time `wall` is
    /// right to within `skew_max`.
    pub(crate) fn confirms(&self, wall: UnixNanos, now: UnixNanos) -> bool {
        self.clocks
            .skew_of(wall, now)
            .is_some_and(|skew| !skew.exceeds(self.skew_max))
    }
}
