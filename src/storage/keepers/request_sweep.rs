//! Old keys of requests are forgotten, a few at a time.

use std::time::Duration;

use crate::ledger::EventTime;
use crate::storage::failure::StoreError;
use crate::storage::records::{RecordStore, remembered_since};
use crate::time::Clock;

/// How long one sweep rests before the next: what is forgotten is a day at a time.
const PAUSE: Duration = Duration::from_hours(1);

/// The rest between two steps of a sweep, in which others write.
const STEP_PAUSE: Duration = Duration::from_millis(100);

/// Keys forgotten in one step, which takes some milliseconds. More than are added in the time of a step.
const STEP_LEN: usize = 5_000;

/// Forgets the keys of requests that are old.
#[derive(Debug, Default)]
pub(super) struct RequestSweep {
    /// When the next step may be done, as the clock runs.
    due: Duration,
}

impl RequestSweep {
    /// Forgets the next few, if it is time.
    ///
    /// # Errors
    /// [`StoreError`]; the step is then done again.
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
