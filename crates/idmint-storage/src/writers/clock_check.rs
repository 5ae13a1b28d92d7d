//! Checks whether this process may use its clock to timestamp events and to remove old records.

use std::time::Duration;

use idmint_core::minting::Refusal;
use idmint_core::time::Clock;

/// After its start, a process deletes no old records for this duration. If its clock is wrong, the
/// fleet or an operator can notice that before records are lost.
pub(super) const NOTHING_FORGOTTEN_FOR: Duration = Duration::from_mins(5);

/// The maximum time by which the clock may be behind the fleet when events are appended. The
/// request key of an append is kept for at least 24 hours from the time on this clock. A clock that
/// is behind shortens this period by the difference. A few hours would be harmless, so one hour
/// leaves a margin.
const BEHIND_MAX: Duration = Duration::from_hours(1);

/// Checks whether events may be timestamped with this clock. The check is necessary because the
/// time of an event cannot be corrected later.
///
/// # Errors
/// Returns [`Refusal::ClockJumped`] if the clock shows a time before this program was built, or
/// [`Refusal::ClockAheadOfFleet`] if the clock is ahead of the fleet.
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

/// Checks whether events may be appended to ledgers with this clock. The idempotency key of an
/// append is stored under the day that this clock shows. If the clock is days behind, the other
/// nodes soon remove the key as too old, and a retry of the request would append a second time.
///
/// # Errors
/// Returns the errors of [`check_clock`], or [`Refusal::ClockBehindFleet`] if the clock is more
/// than [`BEHIND_MAX`] behind the fleet.
pub(super) fn check_append_clock(clock: &Clock) -> Result<(), Refusal> {
    check_clock(clock)?;
    match clock.behind_fleet() {
        Some(behind) if behind > BEHIND_MAX => Err(Refusal::ClockBehindFleet { behind }),
        Some(_) | None => Ok(()),
    }
}

/// `true` if the clock may be used to decide which records are old enough to be removed. Records
/// that were removed because of a wrong clock cannot be restored by correcting the clock.
pub(super) fn may_forget(clock: &Clock) -> bool {
    clock.runs_for() >= NOTHING_FORGOTTEN_FOR && check_clock(clock).is_ok()
}
