//! Report counts that are not stored yet.
//!
//! Most reports join a stored conjunction, which needs no write. Counting them should not need a
//! write either, so counts are collected in memory and written every few seconds. A crash may lose
//! the counts of those seconds, which is acceptable.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::failure::StoreError;
use crate::records::{AnchorKey, StoredConjunction};
use idmint_core::time::UnixNanos;
use idmint_records::conjunction::{Pair, ReportCount, Seen, Tca};

/// The maximum number of conjunctions whose report counts are collected in memory. If it is
/// reached, reports of further conjunctions are not counted until the next write.
const WAITING_MAX: usize = 20_000;

/// The interval at which collected counts are written.
const WRITE_EVERY: Duration = Duration::from_secs(10);

/// The maximum time that a reader waits for the end of a write.
const WRITE_AWAITED_MAX: Duration = Duration::from_secs(2);

/// The maximum number of reads in [`ReportTallies::read_between_writes`]. A write takes
/// milliseconds, and the next one begins seconds later, so the second read is nearly always
/// undisturbed.
const READS_MAX: usize = 3;

/// The report counts that are not stored yet, by conjunction.
#[derive(Debug, Default)]
pub struct ReportTallies {
    gathered: Mutex<Gathered>,
    has_written: Condvar,
}

#[derive(Debug, Default)]
struct Gathered {
    waiting: HashMap<AnchorKey, ReportCount>,
    /// The report counts that are being written to the store. It is unknown whether they are
    /// already stored.
    writing: HashMap<AnchorKey, ReportCount>,
    /// The number of writes of report counts to the store that have begun.
    writes: u64,
}

impl Gathered {
    fn is_writing(&self) -> bool {
        !self.writing.is_empty()
    }
}

impl ReportTallies {
    /// Counts one report of a stored conjunction. `anchor` is the time of closest approach in the
    /// first report of the conjunction. Returns `false`, without counting the report, if memory
    /// already holds the counts of too many other conjunctions.
    pub fn count(&self, format: &str, pair: Pair, anchor: Tca, seen: Seen) -> bool {
        let Gathered {
            waiting, writing, ..
        } = &mut *self.gathered();
        let key = AnchorKey {
            format: format.to_owned(),
            pair,
            tca: anchor,
        };
        let is_full = waiting.len() + writing.len() >= WAITING_MAX;
        match waiting.get_mut(&key) {
            Some(report_count) => *report_count = report_count.followed_by(ReportCount::of(seen)),
            None if is_full => return false,
            None => drop(waiting.insert(key, ReportCount::of(seen))),
        }
        true
    }

    /// Runs `read`, which reads conjunctions from the store and [completes](Self::complete) them,
    /// and returns its result. `read` runs again if counts were written in the meantime, because
    /// it may then have counted a report twice or not at all.
    ///
    /// This method blocks for at most two seconds if the store is slow. After that, the returned
    /// counts may miss or repeat the reports of the last ten seconds.
    pub fn read_between_writes<T>(&self, mut read: impl FnMut() -> T) -> T {
        for _ in 1..READS_MAX {
            let writes = self.writes_after_the_current_one();
            let found = read();
            if self.gathered().writes == writes {
                return found;
            }
        }
        read()
    }

    /// `true` while counts are being written, so that
    /// [`read_between_writes`](Self::read_between_writes) would block.
    pub fn is_writing(&self) -> bool {
        self.gathered().is_writing()
    }

    /// Waits at most 2 s until no counts are being written. Returns the number of begun writes.
    fn writes_after_the_current_one(&self) -> u64 {
        self.has_written
            .wait_timeout_while(self.gathered(), WRITE_AWAITED_MAX, |gathered| {
                gathered.is_writing()
            })
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .writes
    }

    /// Adds the reports that are counted only in memory to the report count of `stored`, a
    /// conjunction that was read from the store. Call this method within
    /// [`read_between_writes`](Self::read_between_writes).
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

    /// Writes the report counts that were collected in memory, if any, by calling `store`.
    ///
    /// # Errors
    /// Returns [`StoreError`] if `store` failed. The counts stay in memory for the next write.
    pub(super) fn write(
        &self,
        store: impl FnOnce(&[(AnchorKey, ReportCount)]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let report_counts: Vec<(AnchorKey, ReportCount)> = {
            let mut gathered = self.gathered();
            if gathered.waiting.is_empty() {
                return Ok(());
            }
            gathered.writing = std::mem::take(&mut gathered.waiting);
            gathered.writes += 1;
            let counts = gathered.writing.iter();
            counts.map(|(key, count)| (key.clone(), *count)).collect()
        };
        let written = store(&report_counts);
        let mut gathered = self.gathered();
        let counts = std::mem::take(&mut gathered.writing);
        if written.is_err() {
            for (key, earlier) in counts {
                let waiting = gathered.waiting.entry(key);
                waiting
                    .and_modify(|later| *later = earlier.followed_by(*later))
                    .or_insert(earlier);
            }
        }
        drop(gathered);
        self.has_written.notify_all();
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;
    use std::thread;

    use super::*;
    use crate::failure::FailureKind;
    use idmint_records::conjunction::Anchor;

    const PAIR: Pair = Pair {
        primary: 1,
        secondary: 2,
    };

    fn count_one(tallies: &ReportTallies) {
        let seen = Seen {
            at: UnixNanos::default(),
            tca: Tca(7),
        };
        tallies.count("mine", PAIR, Tca(7), seen);
    }

    /// A store that holds the count of a single conjunction.
    #[derive(Default)]
    struct OneCount(Mutex<Option<ReportCount>>);

    impl OneCount {
        fn add(&self, counts: &[(AnchorKey, ReportCount)]) {
            let mut stored = self.0.lock().expect("no panic");
            for (_, later) in counts {
                *stored = Some(stored.map_or(*later, |earlier| earlier.followed_by(*later)));
            }
        }

        fn row(&self) -> StoredConjunction {
            StoredConjunction {
                pair: PAIR,
                anchor: Anchor {
                    tca: Tca(7),
                    rank: 0,
                },
                report_count: *self.0.lock().expect("no panic"),
            }
        }
    }

    fn completed(tallies: &ReportTallies, mut row: StoredConjunction) -> u64 {
        tallies.complete("mine", &mut row);
        row.report_count
            .map_or(0, |report_count| report_count.count)
    }

    #[test]
    fn a_count_that_is_written_after_the_row_was_read_is_not_lost() {
        let (tallies, store, mut reads) = (ReportTallies::default(), OneCount::default(), 0);
        count_one(&tallies);
        let count = tallies.read_between_writes(|| {
            reads += 1;
            let row = store.row();
            tallies
                .write(|counts| {
                    assert!(tallies.is_writing());
                    store.add(counts);
                    Ok(())
                })
                .expect("the store works");
            assert!(!tallies.is_writing());
            completed(&tallies, row)
        });
        assert_eq!((count, reads), (1, 2));
    }

    #[test]
    fn counts_that_could_not_be_written_are_written_later() {
        let (tallies, store) = (ReportTallies::default(), OneCount::default());
        count_one(&tallies);
        let full = StoreError::new(FailureKind::Full, "there is no space");
        tallies.write(|_| Err(full)).expect_err("the disk is full");
        count_one(&tallies);
        assert_eq!(completed(&tallies, store.row()), 2);
        let written = tallies.write(|counts| {
            store.add(counts);
            Ok(())
        });
        written.expect("the store works");
        assert_eq!(completed(&tallies, store.row()), 2);
    }

    #[test]
    fn a_report_is_counted_once_while_counts_are_being_written() {
        for _ in 0..100 {
            let (tallies, store) = (ReportTallies::default(), OneCount::default());
            count_one(&tallies);
            let (begun, has_begun) = sync_channel(0);
            thread::scope(|scope| {
                let mut reader = None;
                let written = tallies.write(|counts| {
                    store.add(counts);
                    reader = Some(scope.spawn(|| {
                        begun.send(()).expect("it waits");
                        tallies.read_between_writes(|| completed(&tallies, store.row()))
                    }));
                    // At this moment the counts are already in the store, and also still in memory,
                    // because the write has not ended. The reader must not count them twice.
                    has_begun.recv().expect("the reader has begun");
                    (0..100).for_each(|_| thread::yield_now());
                    Ok(())
                });
                written.expect("the store works");
                assert_eq!(reader.expect("it began").join().expect("no panic"), 1);
            });
        }
    }
}
