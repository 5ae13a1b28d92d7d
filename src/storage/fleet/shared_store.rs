//! Reads and writes of the store that nodes share, and what their errors mean for records.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;

use super::keys::Keys;
use super::known_fleet::{FleetEra, KnownFleet, Terms};
use crate::storage::coordinator::{
    Coordinator, CoordinatorError, KeyValue, Outcome, Range, Revision, Snapshot, Transaction,
};
use crate::storage::failure::{FailureKind, StoreError};
use crate::time::UnixNanos;

/// Operations of one kind in a transaction: etcd takes 128 of each, and two compare what this node knows of its fleet.
pub(super) const OPERATIONS_MAX: usize = 126;

/// Bytes of a transaction, about: etcd takes 1.5 MiB.
pub(super) const BYTES_MAX: usize = 1_400_000;

/// How often a transaction is sent, the same each time, before its outcome is called unknown. Each time takes about a second
/// at most, so that callers are answered before they have waited too long.
const SENT_MAX: u32 = 6;

/// The pause before it is sent again: all of them together are longer than etcd takes to elect a leader.
const PAUSE: Duration = Duration::from_millis(300);

/// What callers are told is in the journal so long after it was asked for, or they are not told. An operator who has waited longer than
/// this after a coordinator was lost finds in the journals all that anybody was or will be told of it.
pub const JOURNALLED_WITHIN: Duration = Duration::from_millis(1_500);

/// The coordinator, and what of it is this fleet's.
#[derive(Debug)]
pub(super) struct SharedStore {
    coordinator: Arc<dyn Coordinator>,
    pub(super) keys: Keys,
    known: Arc<KnownFleet>,
    /// Whether it answered the last time it was asked. Written by each request; Relaxed: a hint that saves callers from
    /// waiting for what was just not there.
    answers: AtomicBool,
}

/// When something was asked for, by the [time](Coordinator::time) of the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked(Duration);

/// What became of a transaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// It is written, as was answered when it was asked for then.
    Committed(Asked),
    /// What it was decided on holds no longer; nothing is written.
    Stale,
}

/// Why a transaction was not written, or not as far as is known.
#[derive(Debug)]
pub(super) enum NotWritten {
    /// It is certainly not written.
    Refused(StoreError),
    /// It may be.
    Unknown(StoreError),
}

impl SharedStore {
    pub(super) fn new(
        coordinator: Arc<dyn Coordinator>,
        keys: Keys,
        known: Arc<KnownFleet>,
    ) -> SharedStore {
        SharedStore {
            coordinator,
            keys,
            known,
            answers: AtomicBool::new(true),
        }
    }

    /// Whether it answered the last time it was asked.
    pub(super) fn answers(&self) -> bool {
        self.answers.load(Ordering::Relaxed)
    }

    /// The era of the fleet that this node agreed with last.
    pub(super) fn era(&self) -> FleetEra {
        self.known.era()
    }

    /// Now, before something is asked for.
    pub(super) fn asking(&self) -> Asked {
        Asked(self.coordinator.time())
    }

    /// Checks that what was asked for then, and is in the journal now, was there in time.
    ///
    /// # Errors
    /// [`StoreError`]: it is older than [`JOURNALLED_WITHIN`], since this process stood still meanwhile.
    pub(super) fn check_in_time(&self, asked: Asked) -> Result<(), StoreError> {
        if self.coordinator.time().saturating_sub(asked.0) <= JOURNALLED_WITHIN {
            return Ok(());
        }
        let error = "this process stood still after the coordinator had answered, which may have been restored since";
        Err(StoreError::new(FailureKind::Unreachable, error))
    }

    /// Asks whether it answers again.
    ///
    /// # Errors
    /// [`StoreError`]: it does not.
    pub(super) fn look_again(&self) -> Result<(), StoreError> {
        self.ask(&[Range::one(self.keys.meta())]).map(drop)
    }

    /// Reads ranges at one revision.
    ///
    /// # Errors
    /// [`StoreError`]; at once while it does not answer, and while it has lost what it had acknowledged.
    pub(super) fn read(&self, ranges: &[Range]) -> Result<Vec<Vec<KeyValue>>, StoreError> {
        self.known.terms(self.keys.meta())?;
        if !self.answers() {
            let error =
                "the coordinator did not answer a moment ago; it is asked again every second";
            return Err(StoreError::new(FailureKind::Unreachable, error));
        }
        Ok(self.ask(ranges)?.ranges)
    }

    /// Reads one range.
    ///
    /// # Errors
    /// As [`SharedStore::read`].
    pub(super) fn read_range(&self, range: Range) -> Result<Vec<KeyValue>, StoreError> {
        Ok(self.read(&[range])?.pop().unwrap_or_default())
    }

    /// Reads one key.
    ///
    /// # Errors
    /// As [`SharedStore::read`].
    pub(super) fn read_key(&self, key: String) -> Result<Option<KeyValue>, StoreError> {
        Ok(self.read_range(Range::one(key))?.pop())
    }

    /// By which time what is old may be forgotten, where the clock of this node shows `now`: never a later one than the median of
    /// what the clocks of the nodes that hold a slot have written, and of two the earlier. `None` while this node has no slot,
    /// since its own clock may be the reason.
    ///
    /// # Errors
    /// As [`SharedStore::read`].
    pub(super) fn judging_time(&self, now: UnixNanos) -> Result<Option<UnixNanos>, StoreError> {
        if !self.known.has_slot() {
            return Ok(None);
        }
        let found = self.read(&self.keys.clocks())?;
        let [horizons, holders] = found.as_slice() else {
            return Ok(None);
        };
        let held: Vec<Option<&str>> = holders
            .iter()
            .map(|holder| self.keys.slot_of(&holder.key))
            .collect();
        let is_held = |horizon: &&KeyValue| held.contains(&self.keys.slot_of(&horizon.key));
        let mut clocks: Vec<UnixNanos> = horizons
            .iter()
            .filter(is_held)
            .filter_map(clock_of)
            .collect();
        clocks.sort_unstable();
        let median = clocks.len().checked_sub(1).map(|last| clocks[last / 2]);
        Ok(median.map(|median| median.min(now)))
    }

    /// Writes a transaction if what it compares still holds, and the fleet still agrees on what this node knows. Without an
    /// answer the same is sent again; `is_ours` says then, of what there is where a comparison failed, whether an earlier
    /// one has landed.
    ///
    /// # Errors
    /// [`NotWritten`].
    pub(super) fn write(
        &self,
        mut transaction: Transaction,
        is_ours: impl Fn(&Snapshot) -> bool,
    ) -> Result<Written, NotWritten> {
        let terms = self
            .known
            .terms(self.keys.meta())
            .map_err(NotWritten::Refused)?;
        transaction.otherwise.extend(
            terms
                .compare
                .iter()
                .map(|compare| Range::one(compare.key().clone())),
        );
        transaction.compare.extend(terms.compare.iter().cloned());
        let mut is_unanswered = false;
        for sent in 0..SENT_MAX {
            if sent > 0 {
                self.coordinator.wait(PAUSE);
            }
            let (asked, highest) = (self.asking(), self.known.highest());
            match self.coordinator.commit(&transaction) {
                // A write makes a revision of its own.
                Ok(Outcome::Committed(written)) => {
                    self.known
                        .see_written(highest, written.revision)
                        .map_err(NotWritten::Unknown)?;
                    return Ok(self.note(Written::Committed(asked)));
                }
                Ok(Outcome::Refused(snapshot)) => {
                    let refused = if is_unanswered {
                        NotWritten::Unknown
                    } else {
                        NotWritten::Refused
                    };
                    self.known
                        .see(highest, snapshot.revision)
                        .map_err(refused)?;
                    if is_unanswered && is_ours(&snapshot) {
                        return Ok(self.note(Written::Committed(asked)));
                    }
                    return self.refused(&terms, &snapshot).map_err(refused);
                }
                Err(CoordinatorError::NoAnswer(_)) => is_unanswered = true,
                // Not sent this time; an earlier one may still be on its way.
                Err(CoordinatorError::NotSent(_)) if is_unanswered => {}
                // When it is applied, which one before it may have been, too.
                Err(error) if is_unanswered => {
                    return Err(NotWritten::Unknown(self.note_failure(&error)));
                }
                Err(error) => return Err(NotWritten::Refused(self.note_failure(&error))),
            }
        }
        let error = CoordinatorError::NoAnswer(format!("{SENT_MAX} times in a row"));
        Err(NotWritten::Unknown(self.note_failure(&error)))
    }

    /// Writes what is not missed where another node was faster. Returns whether none was.
    pub(super) fn write_what_may_be_lost(
        &self,
        transaction: Transaction,
    ) -> Result<bool, StoreError> {
        if transaction.write.is_empty() {
            return Ok(true);
        }
        match self.write(transaction, |_| false) {
            Ok(written) => Ok(written != Written::Stale),
            Err(NotWritten::Refused(error) | NotWritten::Unknown(error)) => Err(error),
        }
    }

    /// What it means that a write was refused with this and nothing of it is there: whether to decide again.
    fn refused(&self, terms: &Terms, snapshot: &Snapshot) -> Result<Written, StoreError> {
        self.note(());
        let (_, found) = snapshot
            .ranges
            .split_at(snapshot.ranges.len() - terms.compare.len());
        let meta = found.first().and_then(|meta| meta.first());
        if meta.map_or(Revision::ABSENT, |meta| meta.modified) != terms.meta {
            let error = "the fleet has agreed on something new, which this node has not seen yet";
            return Err(StoreError::new(FailureKind::Unreachable, error));
        }
        if let Some(horizon) = found.get(1) {
            self.known.see_horizon(snapshot.revision, horizon.first())?;
        }
        Ok(Written::Stale)
    }

    fn ask(&self, ranges: &[Range]) -> Result<Snapshot, StoreError> {
        let highest = self.known.highest();
        match self.coordinator.read(ranges) {
            Ok(snapshot) => {
                self.known.see(highest, snapshot.revision)?;
                Ok(self.note(snapshot))
            }
            Err(error) => Err(self.note_failure(&error)),
        }
    }

    fn note<T>(&self, answer: T) -> T {
        self.answers.store(true, Ordering::Relaxed);
        answer
    }

    fn note_failure(&self, error: &CoordinatorError) -> StoreError {
        let kind = match error {
            CoordinatorError::NoAnswer(_) | CoordinatorError::NotSent(_) => {
                FailureKind::Unreachable
            }
            CoordinatorError::Full(_) => FailureKind::Full,
            // A user that has lost its rights, a request too large: nothing that a restart mends.
            CoordinatorError::Refused(_) => FailureKind::Unreachable,
        };
        let is_answer = matches!(
            error,
            CoordinatorError::Full(_) | CoordinatorError::Refused(_)
        );
        self.answers.store(is_answer, Ordering::Relaxed);
        StoreError::new(kind, error.to_string())
    }
}

/// What the clock of a node showed when it wrote a horizon; `None` where that is written otherwise.
fn clock_of(horizon: &KeyValue) -> Option<UnixNanos> {
    #[derive(Deserialize)]
    struct Shown {
        wall_ms: u64,
    }
    let shown: Shown = serde_json::from_slice(&horizon.value).ok()?;
    Some(UnixNanos::new(shown.wall_ms.checked_mul(1_000_000)?))
}

/// What is stored under a key is not what was written.
pub(super) fn damaged(key: &str) -> StoreError {
    StoreError::new(
        FailureKind::Damaged,
        format!("what etcd has under {key} is not what was written there"),
    )
}
