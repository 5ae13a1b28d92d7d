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
    /// What the clock showed when a session made the plan: from then on it takes as long as the disk does.
    pub(super) planned_at: Option<UnixNanos>,
}

impl HorizonPlan {
    /// The first instant that stays unused.
    pub fn horizon(&self) -> UnixNanos {
        self.horizon
    }

    /// A horizon of a slot that is leased: to be used only until its deadline.
    #[cfg(feature = "server")]
    pub(crate) fn leased(horizon: UnixNanos, deadline: UnixNanos) -> HorizonPlan {
        HorizonPlan {
            horizon,
            floor: None,
            deadline: Some(deadline),
            planned_at: None,
        }
    }

    /// The first instant at which nothing may be minted under this plan: the horizon, or the deadline if that is earlier.
    pub fn usable_until(&self) -> UnixNanos {
        self.deadline
            .map_or(self.horizon, |deadline| self.horizon.min(deadline))
    }

    /// The floor that the node once began at: to be remembered with its first horizon.
    pub fn floor(&self) -> Option<UnixNanos> {
        self.floor
    }

    /// A plan that no session made, for tests of what makes plans durable.
    #[cfg(all(test, feature = "server"))]
    pub(crate) fn at(horizon: UnixNanos) -> HorizonPlan {
        HorizonPlan {
            horizon,
            floor: None,
            deadline: None,
            planned_at: None,
        }
    }

    /// The same, of a node that begins at a floor.
    #[cfg(all(test, feature = "server"))]
    pub(crate) fn above_floor(horizon: UnixNanos, floor: UnixNanos) -> HorizonPlan {
        HorizonPlan {
            horizon,
            floor: Some(floor),
            deadline: None,
            planned_at: None,
        }
    }
}

/// How much is reserved at a time: little after a start, more with every extension.
///
/// A program that is killed and started again loses what it had reserved, and begins that much further ahead of the
/// clock. So the first reservation is short, and it does not grow while minting is ahead.
///
/// What is reserved while a slow disk writes it has passed when it is written, so as much is added as the last extension
/// took:
///
/// ```text
///   planned               durable
///   |-------- took --------|-- size --|       never more than the window in all
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    size: Duration,
    window: Duration,
    /// How long the last extension took, from its plan until it was durable.
    took: Duration,
}

impl Reservation {
    /// The first reservation after a start.
    pub const FIRST: Duration = Duration::from_millis(100);

    /// The reservations of a start, up to `window` each.
    pub fn up_to(window: Duration) -> Reservation {
        Reservation {
            size: Reservation::FIRST.min(window),
            window,
            took: Duration::ZERO,
        }
    }

    /// How much should be left of the next extension when it is durable.
    pub fn size(&self) -> Duration {
        self.size
    }

    /// How far above what is used the next extension reserves.
    pub(super) fn reach(&self) -> Duration {
        self.took.saturating_add(self.size).min(self.window)
    }

    /// An extension took so long.
    pub(super) fn took(&mut self, took: Duration) {
        self.took = took;
    }

    /// The next one is twice as long, up to the window.
    pub(super) fn grow(&mut self) {
        self.size = self.size.saturating_mul(2).min(self.window);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_reaches_further_by_what_the_last_one_took_and_never_beyond_the_window() {
        let millis = Duration::from_millis;
        let mut reservation = Reservation::up_to(millis(1_000));
        assert_eq!(reservation.reach(), Reservation::FIRST);
        reservation.took(millis(800));
        assert_eq!(reservation.reach(), millis(900));
        reservation.grow();
        assert_eq!(
            (reservation.size(), reservation.reach()),
            (millis(200), millis(1_000))
        );
        reservation.took(millis(5_000));
        assert_eq!(
            reservation.reach(),
            millis(1_000),
            "a restart would have to wait for more"
        );
        reservation.took(Duration::ZERO);
        assert_eq!(reservation.reach(), millis(200));
    }
}
