//! Report counts that are not stored yet.
//!
//! Most reports join a stored conjunction, which needs no write. Counting them should not need a
//! write either, so counts are collected in memory and written every few seconds. A crash may lose
//! the counts of those seconds, which is acceptable.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::failure::StoreError;
use crate::records::{AnchorKey, RecordStore, StoredConjunction};
use idmint_core::time::UnixNanos;
use idmint_records::conjunction::{Pair, ReportCount, Seen, Tca};

/// The maximum number of conjunctions whose report counts are collected in memory. If it is
/// reached, reports of further conjunctions are not counted until the next write.
const WAITING_MAX: usize = 20_000;

/// The interval at which collected counts are written.
const WRITE_EVERY: Duration = Duration::from_secs(10);

/// The report counts that are not stored yet, by conjunction.
#[derive(Debug, Default)]
pub struct ReportTallies {
    gathered: Mutex<Gathered>,
}

#[derive(Debug, Default)]
struct Gathered {
    waiting: HashMap<AnchorKey, ReportCount>,
    /// The report counts that are being written to the store. They may already be stored, so a
    /// concurrent reader may count them twice.
    writing: HashMap<AnchorKey, ReportCount>,
}

impl ReportTallies {
    /// Counts one report that was assigned to a stored conjunction. `anchor` is the time of the
    /// conjunction's anchor (first report).
    pub fn count(&self, format: &str, pair: Pair, anchor: Tca, seen: Seen) {
        let waiting = &mut self.gathered().waiting;
        let key = AnchorKey {
            format: format.to_owned(),
            pair,
            tca: anchor,
        };
        let is_full = waiting.len() >= WAITING_MAX;
        match waiting.get_mut(&key) {
            Some(report_count) => *report_count = report_count.followed_by(ReportCount::of(seen)),
            None if is_full => {}
            None => drop(waiting.insert(key, ReportCount::of(seen))),
        }
    }

    /// Adds the reports that were counted in memory but not stored yet to the report count of
    /// `stored`, a conjunction that was read from the store.
    pub fn complete(&self, format: &str, stored: &mut StoredConjunction) {
        let key = AnchorKey {
            format: format.to_owned(),
            pair: stored.pair,
            tca: stored.anchor.tca,
        };
        let gathered = self.gathered();
        for later in [gathered.writing.get(&key), gathered.waiting.get(&key)]
            .into_iter()
            .flatten()
        {
            stored.report_count = Some(
                stored
                    .report_count
                    .map_or(*later, |earlier| earlier.followed_by(*later)),
            );
        }
    }

    /// Writes the report counts that were collected in memory to the store.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store failed. The counts are then lost.
    pub(super) fn write(&self, records: &dyn RecordStore) -> Result<(), StoreError> {
        let report_counts: Vec<(AnchorKey, ReportCount)> = {
            let mut gathered = self.gathered();
            gathered.writing = std::mem::take(&mut gathered.waiting);
            gathered
                .writing
                .iter()
                .map(|(key, report_count)| (key.clone(), *report_count))
                .collect()
        };
        let written = if report_counts.is_empty() {
            Ok(())
        } else {
            records.add_reports(&report_counts)
        };
        self.gathered().writing.clear();
        written
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        // A thread that panics while holding the lock leaves only complete entries, so the lock can
        // be used even if it is poisoned.
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time at which the next write of the collected counts is due.
#[derive(Debug, Default)]
pub(super) struct WriteTime(UnixNanos);

impl WriteTime {
    /// `true` if the write of the collected counts is due at `now`. In that case, the next write
    /// becomes due ten seconds later.
    pub(super) fn has_come(&mut self, now: UnixNanos) -> bool {
        let has_come = now >= self.0;
        if has_come {
            self.0 = now.after(WRITE_EVERY);
        }
        has_come
    }
}
