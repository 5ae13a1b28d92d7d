//! How far ahead this program has reserved time on disk.
//!
//! The horizon is the instant that nobody has been allowed to use yet. It is durable before anything below it is minted,
//! and never lowered, so a restart that begins at it begins above every id ever minted, whatever the clock says.

use std::time::Duration;

use crate::time::UnixNanos;

/// A horizon that should be made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HorizonPlan {
    pub(super) horizon: UnixNanos,
    pub(super) floor: Option<UnixNanos>,
    /// When this program must stop even below the horizon, because others may begin to take it for gone.
    pub(super) deadline: Option<UnixNanos>,
}

impl HorizonPlan {
    /// The first instant that stays unused.
    pub fn horizon(&self) -> UnixNanos {
        self.horizon
    }

    /// A horizon of a slot that is leased: to be used only until its deadline.
    #[cfg(feature = "server")]
    pub(crate) fn leased(horizon: UnixNanos, deadline: UnixNanos) -> HorizonPlan {
        HorizonPlan { horizon, floor: None, deadline: Some(deadline) }
    }

    /// The first instant at which nothing may be minted under this plan: the horizon, or the deadline if that is earlier.
    pub fn usable_until(&self) -> UnixNanos {
        self.deadline.map_or(self.horizon, |deadline| self.horizon.min(deadline))
    }

    /// The floor that the node once began at: to be remembered with its first horizon.
    pub fn floor(&self) -> Option<UnixNanos> {
        self.floor
    }

    /// A plan that no session made, for tests of what makes plans durable.
    #[cfg(all(test, feature = "server"))]
    pub(crate) fn at(horizon: UnixNanos) -> HorizonPlan {
        HorizonPlan { horizon, floor: None, deadline: None }
    }

    /// The same, of a node that begins at a floor.
    #[cfg(all(test, feature = "server"))]
    pub(crate) fn above_floor(horizon: UnixNanos, floor: UnixNanos) -> HorizonPlan {
        HorizonPlan { horizon, floor: Some(floor), deadline: None }
    }
}

/// How much is reserved at a time: little after a start, more with every extension.
///
/// A program that is killed and started again loses what it had reserved, and begins that much further ahead of the
/// clock. So the first reservation is short, and it does not grow while minting is ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    size: Duration,
    window: Duration,
}

impl Reservation {
    /// The first reservation after a start.
    pub const FIRST: Duration = Duration::from_millis(100);

    /// The reservations of a start, up to `window` each.
    pub fn up_to(window: Duration) -> Reservation {
        Reservation { size: Reservation::FIRST.min(window), window }
    }

    /// How much the next extension reserves.
    pub fn size(&self) -> Duration {
        self.size
    }

    /// The next one is twice as long, up to the window.
    pub(super) fn grow(&mut self) {
        self.size = self.size.saturating_mul(2).min(self.window);
    }
}
