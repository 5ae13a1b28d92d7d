//! Reports that are counted and not stored yet.
//!
//! Most reports join without a write, and their counts shall not cost one: they gather here, and are written some seconds
//! later. They are hints, which a crash can set back by that.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::conjunction::{Pair, ReportTally, Seen, Tca};
use crate::storage::failure::StoreError;
use crate::storage::records::{AnchorKey, RecordStore, StoredConjunction};
use crate::time::UnixNanos;

/// Conjunctions whose reports gather; those of further ones are not counted until the next write.
const WAITING_MAX: usize = 20_000;

/// How long reports gather.
const WRITE_EVERY: Duration = Duration::from_secs(10);

/// What is not stored yet of the reports of each conjunction.
#[derive(Debug, Default)]
pub struct ReportTallies {
    gathered: Mutex<Gathered>,
}

#[derive(Debug, Default)]
struct Gathered {
    waiting: HashMap<AnchorKey, ReportTally>,
    /// What is being written. A reader meanwhile may count it twice: it may be stored already.
    writing: HashMap<AnchorKey, ReportTally>,
}

impl ReportTallies {
    /// Counts a report of the anchor of a pair.
    pub fn count(&self, format: &str, pair: Pair, anchor: Tca, seen: Seen) {
        let waiting = &mut self.gathered().waiting;
        let key = AnchorKey {
            format: format.to_owned(),
            pair,
            tca: anchor,
        };
        let is_full = waiting.len() >= WAITING_MAX;
        match waiting.get_mut(&key) {
            Some(tally) => *tally = tally.followed_by(ReportTally::of(seen)),
            None if is_full => {}
            None => drop(waiting.insert(key, ReportTally::of(seen))),
        }
    }

    /// Adds what is not stored yet to a conjunction that was read.
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
            stored.tally = Some(
                stored
                    .tally
                    .map_or(*later, |earlier| earlier.followed_by(*later)),
            );
        }
    }

    /// Stores what has gathered.
    ///
    /// # Errors
    /// [`StoreError`]; it is then counted no more.
    pub(super) fn write(&self, records: &dyn RecordStore) -> Result<(), StoreError> {
        let tallies: Vec<(AnchorKey, ReportTally)> = {
            let mut gathered = self.gathered();
            gathered.writing = std::mem::take(&mut gathered.waiting);
            gathered
                .writing
                .iter()
                .map(|(key, tally)| (key.clone(), *tally))
                .collect()
        };
        let written = if tallies.is_empty() {
            Ok(())
        } else {
            records.add_reports(&tallies)
        };
        self.gathered().writing.clear();
        written
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        // Whoever panicked with it had changed a whole entry.
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When reports are written next.
#[derive(Debug, Default)]
pub(super) struct WriteTime(UnixNanos);

impl WriteTime {
    /// Whether it has come; the next one is then some seconds later.
    pub(super) fn has_come(&mut self, now: UnixNanos) -> bool {
        let has_come = now >= self.0;
        if has_come {
            self.0 = now.after(WRITE_EVERY);
        }
        has_come
    }
}
