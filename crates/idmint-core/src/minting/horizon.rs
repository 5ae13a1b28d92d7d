//! The horizon, which is the time up to which this process may mint. The process reserves this time
//! on disk before it mints.
//!
//! No id at or after the horizon has ever been minted. Before an id is minted, a horizon above that
//! id is on disk, and the horizon never decreases. A process that restarts at the horizon therefore
//! mints only ids above all earlier ones, even if the clock is wrong.

use std::time::Duration;

use crate::time::UnixNanos;

/// A plan for the next horizon, which is the time up to which ids may be minted. The caller should
/// write the plan to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HorizonPlan {
    pub(super) horizon: UnixNanos,
    pub(super) floor: Option<UnixNanos>,
    /// The instant at which this process must stop minting, even if it has reserved time beyond
    /// this deadline. From the deadline on, other nodes may assume that this process has ended.
    /// `None` if the process does not lease its slot.
    pub(super) deadline: Option<UnixNanos>,
    /// The clock time at which `Session::plan_extension` made this plan. The duration of the write
    /// is measured from this time. `None` if the plan was made in another way.
    pub(super) planned_at: Option<UnixNanos>,
}

impl HorizonPlan {
    /// Returns the horizon: the end (exclusive) of the time that this plan reserves for minting.
    pub fn horizon(&self) -> UnixNanos {
        self.horizon
    }

    /// Returns a plan for a process that leases its slot. The process may mint ids with times up to
    /// `horizon` or up to `deadline`, whichever is earlier.
    pub fn leased(horizon: UnixNanos, deadline: UnixNanos) -> HorizonPlan {
        HorizonPlan {
            horizon,
            floor: None,
            deadline: Some(deadline),
            planned_at: None,
        }
    }

    /// Returns the end of the reserved time or the deadline of the lease, whichever is earlier. No
    /// id at or after the returned instant may be minted.
    pub fn usable_until(&self) -> UnixNanos {
        self.deadline
            .map_or(self.horizon, |deadline| self.horizon.min(deadline))
    }

    /// Returns the floor of the node, or `None` without a floor. The floor must be stored with the
    /// first horizon.
    pub fn floor(&self) -> Option<UnixNanos> {
        self.floor
    }

    /// Returns a plan to reserve time up to `horizon`, without a floor or a deadline. Tests of
    /// stores use this function.
    #[cfg(any(test, feature = "testing"))]
    pub fn at(horizon: UnixNanos) -> HorizonPlan {
        HorizonPlan {
            horizon,
            floor: None,
            deadline: None,
            planned_at: None,
        }
    }

    /// Returns a plan to reserve time up to `horizon`, for a node that mints no ids for times below
    /// `floor`. Tests of stores use this function.
    #[cfg(any(test, feature = "testing"))]
    pub fn above_floor(horizon: UnixNanos, floor: UnixNanos) -> HorizonPlan {
        HorizonPlan {
            horizon,
            floor: Some(floor),
            deadline: None,
            planned_at: None,
        }
    }
}

/// Computes how much time the next extension of the horizon reserves. The horizon is the time up to
/// which a process may mint.
///
/// A process that is killed and restarted cannot use the rest of its reservation, and begins ahead
/// of the clock by that much. The first reservation is therefore short. Each extension doubles the
/// size, unless minting is ahead of the clock.
///
/// If the disk is slow, part of a reservation has passed when the write completes. An extension
/// therefore also reserves the time that the last extension took:
///
/// ```text
///   planned               durable
///   |-------- took --------|-- size --|       took + size is at most the window
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    size: Duration,
    window: Duration,
    /// The time that the last extension of the reserved time took, from planning it to the
    /// completed write.
    took: Duration,
}

impl Reservation {
    /// The length of the first reservation of minting time after a start.
    pub const FIRST: Duration = Duration::from_millis(100);

    /// Creates the reservation for a new session. Its extensions end at most `window` after the
    /// clock or the latest id, whichever is later.
    pub fn up_to(window: Duration) -> Reservation {
        Reservation {
            size: Reservation::FIRST.min(window),
            window,
            took: Duration::ZERO,
        }
    }

    /// Returns the length of the next extension, not counting the time that may pass while the
    /// extension is written to disk.
    pub fn size(&self) -> Duration {
        self.size
    }

    /// Returns how far the next horizon is after the latest id, or after the clock if the clock is
    /// later.
    pub(super) fn reach(&self) -> Duration {
        self.took.saturating_add(self.size).min(self.window)
    }

    /// Records the time `took` that the last extension of the horizon took, from its plan to the
    /// completed write.
    pub(super) fn took(&mut self, took: Duration) {
        self.took = took;
    }

    /// Doubles the size of the next extension, up to the window.
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
