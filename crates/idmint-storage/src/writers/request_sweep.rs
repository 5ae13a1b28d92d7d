//! The sweep, a background task that removes old idempotency keys of requests. Each step removes a
//! few thousand keys.

use std::time::Duration;

use crate::failure::StoreError;
use crate::records::{RecordStore, remembered_since};
use idmint_core::time::Clock;
use idmint_records::ledger::EventTime;

/// The pause between two sweeps that remove old request keys. A sweep removes all keys of the days
/// that are old enough. An hour is short enough, because keys expire a whole day at a time.
const PAUSE: Duration = Duration::from_hours(1);

/// The pause between two steps of the sweep that removes old request keys. During the pause, the
/// thread writes the records of queued requests.
const STEP_PAUSE: Duration = Duration::from_millis(100);

/// The number of request keys that are removed in one step. A step takes some milliseconds, and
/// removes more keys than are added until the next step.
const STEP_LEN: usize = 5_000;

/// The state of the sweep that removes old request keys.
#[derive(Debug, Default)]
pub(super) struct RequestSweep {
    /// The value of [`Clock::runs_for`] at which the next removal of old request keys is due.
    due: Duration,
}

impl RequestSweep {
    /// Removes the next few thousand old request keys, if a step of the sweep is due.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store failed. The next call repeats the step.
    pub(super) fn step(
        &mut self,
        records: &dyn RecordStore,
        clock: &Clock,
    ) -> Result<(), StoreError> {
        if clock.runs_for() < self.due {
            return Ok(());
        }
        let Some(now) = records.judging_time(clock.now())? else {
            return Ok(());
        };
        let micros = EventTime::from_micros(now.get() / 1_000)
            .expect("64 bits of nanoseconds are fewer microseconds");
        let has_forgotten = records.forget_requests(remembered_since(micros), STEP_LEN)?;
        self.due = clock.runs_for() + if has_forgotten { STEP_PAUSE } else { PAUSE };
        Ok(())
    }
}
