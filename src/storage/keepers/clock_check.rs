//! What the clock of this process may be used for: to give events a time, and to forget what is old.

use std::time::Duration;

use crate::minting::Refusal;
use crate::time::Clock;

/// How long after its start a process forgets nothing: time to find out that the clock is wrong, for the fleet or for whoever
/// reads the log.
pub(super) const NOTHING_FORGOTTEN_FOR: Duration = Duration::from_mins(5);

/// Whether events can be given the time of this clock: a chain would carry a false year for ever.
///
/// # Errors
/// [`Refusal::ClockJumped`] and [`Refusal::ClockAheadOfFleet`].
pub(super) fn check_clock(clock: &Clock) -> Result<(), Refusal> {
    if clock.estimates_before_build() {
        return Err(Refusal::ClockJumped {
            shown: clock.now().into(),
        });
    }
    match clock.ahead_of_fleet() {
        Some(ahead) => Err(Refusal::ClockAheadOfFleet { ahead }),
        None => Ok(()),
    }
}

/// Whether anything may be forgotten by this clock: what is forgotten by a wrong one does not come back when it is set right.
pub(super) fn may_forget(clock: &Clock) -> bool {
    clock.runs_for() >= NOTHING_FORGOTTEN_FOR && check_clock(clock).is_ok()
}
