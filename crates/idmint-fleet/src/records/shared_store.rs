//! Reads and writes records in the store that all nodes share, and translates the errors of that
//! store.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;

use super::keys::Keys;
use super::known_fleet::{FleetEra, KnownFleet, Terms};
use super::rows::{is_whole, is_whole_conjunction};
use crate::coordinator::{
    Coordinator, CoordinatorError, KeyValue, Outcome, REQUEST_BYTES_MAX, Range, Revision, Snapshot,
    Transaction, Write,
};
use idmint_core::time::UnixNanos;
use idmint_records::conjunction::Pair;
use idmint_storage::{FailureKind, Obstacle, StoreError};

/// The maximum number of comparisons, and of operations, in a transaction. etcd accepts 128, of
/// which two are reserved for comparing the fleet's settings (`meta`) and this node's own key.
pub(super) const OPERATIONS_MAX: usize = 126;

/// The maximum estimated size of a transaction that adds records, in bytes. etcd accepts 1.5 MiB.
/// The rest leaves room for deletions, so that a pair of objects with a full row can shrink.
pub(super) const BYTES_MAX: usize = 1_400_000;

/// The maximum [size](Transaction::size) of a transaction, in bytes. The rest of etcd's limit is
/// for comparing the fleet's settings and this node's own key.
const SIZE_MAX: usize = REQUEST_BYTES_MAX - 4_000;

/// The maximum number of times that the same transaction is sent before its outcome counts as
/// unknown. Each attempt takes about one second at most, so callers do not wait too long.
const SENT_MAX: u32 = 6;

/// The pause between two attempts to send a transaction. All pauses together are longer than etcd
/// needs to elect a leader.
const PAUSE: Duration = Duration::from_millis(300);

/// The maximum time from sending a request until its response is journalled. Later responses are
/// not returned to callers. If a coordinator was lost, an operator waits at least this long before
/// using the journals. From then on, the journals contain everything that callers have received or
/// will receive from the lost coordinator.
pub const JOURNALLED_WITHIN: Duration = Duration::from_millis(1_500);

/// The reason why records are refused when three quarters of etcd's space quota are used up.
pub(super) const NO_ROOM: Obstacle = Obstacle::new(
    FailureKind::Full,
    "etcd has used three quarters of its quota, and the rest is for slots; compact and defragment etcd, or raise its quota and etcd.quota",
);

// etcd's refusals `DENIED` and `REFUSED` have the kind `Unreachable`, so that the node keeps
// running. A restart does not help if permissions are missing or a request is too large.
const DENIED: Obstacle = Obstacle::new(
    FailureKind::Unreachable,
    "etcd refuses the credentials of this node; correct etcd.user, etcd.password_file or etcd.certificate",
);

const REFUSED: Obstacle = Obstacle::new(
    FailureKind::Unreachable,
    "etcd refused the request; the log of the node has the reason",
);

/// The reason why a row cannot grow. Its kind is `Full`, so that the node keeps running.
const ROW_FULL: Obstacle = Obstacle::new(
    FailureKind::Full,
    "a pair of objects has as many conjunctions as fit into etcd, about 116 000; conjunction.retention deletes old ones; the log names the pair",
);

const AGREEMENT_CHANGED: Obstacle = Obstacle::new(
    FailureKind::Unreachable,
    "the fleet was fenced, has a new format, or adopts a node, and this node reads that within seconds; retry",
);

const PAUSED: Obstacle = Obstacle::new(
    FailureKind::Unreachable,
    "this process was paused after etcd answered, and etcd may have been restored since; retry",
);

/// The store that all nodes of a fleet share, with the keys of this fleet, and with the fleet's
/// settings and revisions as this node last saw them.
#[derive(Debug)]
pub(super) struct SharedStore {
    coordinator: Arc<dyn Coordinator>,
    pub(super) keys: Keys,
    known: Arc<KnownFleet>,
    /// The reason why the last request failed, if later requests are expected to fail as well. With
    /// this reason, callers are refused at once instead of waiting for a coordinator that does not
    /// respond.
    failure: Mutex<Option<Obstacle>>,
    /// `false` if the last read found no hold on numbers (a stop of all series). Written by
    /// `FleetRecords::reads_hold`, and set by a draft that finds a hold. Relaxed, because the flag
    /// only saves a read. Each transaction that issues numbers compares the hold anyway.
    pub(super) may_hold: AtomicBool,
    /// The result of the last read of the hold on numbers (a stop of all series after a restore),
    /// or `None` before the first read. This node's readiness response reports the hold.
    pub(super) hold_seen: Mutex<Option<HoldSeen>>,
}

/// The result of a read of the hold on numbers. The operator's command `fence-restore` sets the
/// hold after a restore, so that no numbers are issued until an operator ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HoldSeen {
    /// The fleet's era (the time since the last `fence-restore` command) at this read. Only that
    /// command sets a hold, and it begins a new era. So in a later era, `is_held` is outdated.
    pub(super) era: FleetEra,
    /// `true` if all series were stopped after a restore, and not resumed all at once.
    pub(super) is_held: bool,
    /// The time at which the read of the hold was sent.
    pub(super) at: Asked,
}

/// The time at which a request was sent, measured by [`Coordinator::time`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked(Duration);

impl Asked {
    /// Returns the time from this request to `now`.
    pub(super) fn age(self, now: Asked) -> Duration {
        now.0.saturating_sub(self.0)
    }
}

/// The outcome of a transaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// The transaction was committed. The value is the time at which the transaction was sent, or
    /// sent again for the last time.
    Committed(Asked),
    /// A comparison failed, so no write was done.
    Stale,
}

/// The error of a transaction that was not committed, or whose outcome is unknown.
#[derive(Debug)]
pub(super) enum NotWritten {
    /// The transaction was certainly not committed.
    Refused(StoreError),
    /// The transaction may have been committed.
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
            failure: Mutex::default(),
            may_hold: AtomicBool::new(true),
            hold_seen: Mutex::default(),
        }
    }

    /// Returns the reason why records can currently be neither read nor written, or `None` if
    /// records can be read.
    pub(super) fn obstacle(&self) -> Option<Obstacle> {
        self.known.check().err().or(*self.failure())
    }

    /// Returns the reason why records cannot be written now, or `None` if records can be written.
    /// Records that cannot be written may still be readable.
    pub(super) fn write_obstacle(&self) -> Option<Obstacle> {
        self.known.terms(self.keys.meta()).err()
    }

    fn failure(&self) -> MutexGuard<'_, Option<Obstacle>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the fleet's era as this node last read it. A new era begins when an operator runs
    /// `fence-restore` after a restore.
    pub(super) fn era(&self) -> FleetEra {
        self.known.era()
    }

    /// Returns the current time. Call this before sending a request.
    pub(super) fn asking(&self) -> Asked {
        Asked(self.coordinator.time())
    }

    /// Checks that this node's journal received a response soon enough after the request was sent
    /// at `asked`. Call this right after writing the response to the journal.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the response took longer than [`JOURNALLED_WITHIN`], because this
    /// process was suspended in the meantime.
    pub(super) fn check_in_time(&self, asked: Asked) -> Result<(), StoreError> {
        if asked.age(self.asking()) <= JOURNALLED_WITHIN {
            return Ok(());
        }
        Err(PAUSED.into())
    }

    /// Checks whether the coordinator responds again.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the coordinator does not respond.
    pub(super) fn look_again(&self) -> Result<(), StoreError> {
        self.ask(&[Range::one(self.keys.meta())]).map(drop)
    }

    /// Reads several ranges at a single revision.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the read fails. No request is sent if the coordinator did not
    /// respond to the last request, or has lost acknowledged data.
    pub(super) fn read(&self, ranges: &[Range]) -> Result<Vec<Vec<KeyValue>>, StoreError> {
        match self.obstacle() {
            Some(obstacle) => Err(obstacle.into()),
            None => Ok(self.ask(ranges)?.ranges),
        }
    }

    /// Reads one range.
    ///
    /// # Errors
    /// Returns the errors of [`SharedStore::read`].
    pub(super) fn read_range(&self, range: Range) -> Result<Vec<KeyValue>, StoreError> {
        Ok(self.read(&[range])?.pop().unwrap_or_default())
    }

    /// Reads one key. Returns `None` if the key does not exist.
    ///
    /// # Errors
    /// Returns the errors of [`SharedStore::read`].
    pub(super) fn read_key(&self, key: String) -> Result<Option<KeyValue>, StoreError> {
        Ok(self.read_range(Range::one(key))?.pop())
    }

    /// Returns the time that counts as now when the age of stored data is computed. `now` is the
    /// reading of this node's clock.
    ///
    /// The result is the median of the clock readings that slot holders have written, or `now` if
    /// that is earlier. The lower of two middle readings counts as the median. Returns `None` while
    /// this node has no slot, because it may have been refused a slot for its wrong clock.
    ///
    /// # Errors
    /// Returns the errors of [`SharedStore::read`].
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

    /// Commits a transaction if its comparisons hold and the fleet's agreement has not changed.
    ///
    /// If no response arrives, the same transaction is sent again. If a later attempt is refused,
    /// an earlier attempt may have been committed. `is_ours` decides whether it was, from the
    /// entries that the refused attempt found.
    ///
    /// # Errors
    /// Returns [`NotWritten`] if the transaction was not committed, or if its outcome is unknown.
    pub(super) fn write(
        &self,
        mut transaction: Transaction,
        is_ours: impl Fn(&Snapshot) -> bool,
    ) -> Result<Written, NotWritten> {
        if !fits(&transaction) {
            return Err(NotWritten::Refused(self.too_long(&transaction)));
        }
        let terms = self
            .known
            .terms(self.keys.meta())
            .map_err(|obstacle| NotWritten::Refused(obstacle.into()))?;
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
            let (asked, highest, term) = (self.asking(), self.known.highest(), self.known.term());
            match self.coordinator.commit(&transaction) {
                // Each write creates a new revision, so the response must have a higher revision
                // than all earlier responses.
                Ok(Outcome::Committed(written)) => {
                    self.known
                        .see_written(highest, written.revision)
                        .and_then(|()| self.known.see_term(term, written.term))
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
                        .and_then(|()| self.known.see_term(term, snapshot.term))
                        .map_err(refused)?;
                    if is_unanswered && is_ours(&snapshot) {
                        return Ok(self.note(Written::Committed(asked)));
                    }
                    return self.refused(&terms, &snapshot).map_err(refused);
                }
                Err(CoordinatorError::NoAnswer(_)) => is_unanswered = true,
                // This attempt was not sent, but an earlier attempt may still be in transit, so try
                // again.
                Err(CoordinatorError::NotSent(_)) if is_unanswered => {}
                // This attempt was certainly not applied, but an earlier attempt may have been
                // applied.
                Err(error) if is_unanswered => {
                    return Err(NotWritten::Unknown(self.note_failure(&error)));
                }
                Err(error) => return Err(NotWritten::Refused(self.note_failure(&error))),
            }
        }
        let error = CoordinatorError::NoAnswer(format!("{SENT_MAX} requests in a row failed"));
        Err(NotWritten::Unknown(self.note_failure(&error)))
    }

    /// Commits a transaction whose writes may get lost without harm. Returns `false` if a compared
    /// row has changed. Another node may have changed it, or an earlier attempt whose response was
    /// lost.
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

    /// Returns the error for a transaction that is too long although it has only one long row. The
    /// error names this row.
    pub(super) fn too_long(&self, transaction: &Transaction) -> StoreError {
        let rows = transaction.write.iter().filter_map(|write| match write {
            Write::Put { key, value, .. } => Some((value.len(), key)),
            Write::Delete(_) => None,
        });
        let (_, key) = rows.max().expect("only values can be that long");
        let row = match self.keys.pair_of(key) {
            Some((format, Pair { primary, secondary })) => {
                format!("the conjunctions of the objects {primary} and {secondary} ({format})")
            }
            None => format!("the value of {key}"),
        };
        let size = transaction.size();
        let text = format!(
            "{row} need a request of {size} bytes to etcd, and the limit is {BYTES_MAX}; delete old conjunctions with \
             conjunction.retention"
        );
        StoreError::because(ROW_FULL, text)
    }

    /// Returns [`Written::Stale`] if a transaction was refused because another write came first.
    /// Returns an error if the fleet's shared settings (`meta`) have changed, or if the key that
    /// this node regularly rewrites shows that its slot or the coordinator's data is lost.
    fn refused(&self, terms: &Terms, snapshot: &Snapshot) -> Result<Written, StoreError> {
        self.note(());
        let (_, found) = snapshot
            .ranges
            .split_at(snapshot.ranges.len() - terms.compare.len());
        let meta = found.first().and_then(|meta| meta.first());
        if meta.map_or(Revision::ABSENT, |meta| meta.modified) != terms.meta {
            return Err(AGREEMENT_CHANGED.into());
        }
        if let Some(horizon) = found.get(1) {
            self.known.see_own_key(snapshot.revision, horizon.first())?;
        }
        Ok(Written::Stale)
    }

    fn ask(&self, ranges: &[Range]) -> Result<Snapshot, StoreError> {
        let (highest, term) = (self.known.highest(), self.known.term());
        match self.coordinator.read(ranges) {
            Ok(snapshot) => {
                self.known.see(highest, snapshot.revision)?;
                self.known.see_term(term, snapshot.term)?;
                Ok(self.note(snapshot))
            }
            Err(error) => Err(self.note_failure(&error)),
        }
    }

    fn note<T>(&self, answer: T) -> T {
        *self.failure() = None;
        answer
    }

    fn note_failure(&self, error: &CoordinatorError) -> StoreError {
        let (obstacle, lasts) = match error {
            CoordinatorError::NoAnswer(_) | CoordinatorError::NotSent(_) => {
                (Obstacle::of_kind(FailureKind::Unreachable), true)
            }
            CoordinatorError::Denied(_) => (DENIED, true),
            CoordinatorError::Full(_) => (NO_ROOM, false),
            CoordinatorError::Refused(_) => (REFUSED, false),
        };
        *self.failure() = lasts.then_some(obstacle);
        StoreError::because(obstacle, error.to_string())
    }
}

/// `true` if etcd does not refuse the transaction for its size.
pub(super) fn fits(transaction: &Transaction) -> bool {
    transaction.size() <= SIZE_MAX
}

/// Returns the clock reading of the node that wrote `horizon`, the record of a slot's reserved
/// time. Returns `None` if the record cannot be decoded.
fn clock_of(horizon: &KeyValue) -> Option<UnixNanos> {
    #[derive(Deserialize)]
    struct Shown {
        wall_ms: u64,
    }
    let shown: Shown = serde_json::from_slice(&horizon.value).ok()?;
    Some(UnixNanos::new(shown.wall_ms.checked_mul(1_000_000)?))
}

/// Returns the error for a row that cannot be decoded.
pub(super) fn unreadable(key: &str, value: &[u8]) -> StoreError {
    of_checksum(is_whole(key, value), key)
}

/// Returns the error for an undecodable row of a conjunction (a close approach of two objects).
pub(super) fn unreadable_conjunction(key: &str, value: &[u8]) -> StoreError {
    of_checksum(is_whole_conjunction(key, value), key)
}

/// Returns the error for a row that cannot be decoded. If the checksum is right, a later version
/// wrote the row. Otherwise the row is damaged.
fn of_checksum(is_whole: bool, key: &str) -> StoreError {
    match is_whole {
        true => StoreError::new(FailureKind::Disagrees, written_later(key)),
        false => damaged(key),
    }
}

/// Returns the error message for a value that is intact but was written by a later version of this
/// program.
pub(crate) fn written_later(what: &str) -> String {
    format!(
        "{what} was written by a later version of this program: start that version, or a later one, on every node of the fleet"
    )
}

/// Returns the error for a key whose value is damaged.
pub(super) fn damaged(key: &str) -> StoreError {
    StoreError::new(
        FailureKind::Damaged,
        format!("the value of {key} in etcd is corrupted"),
    )
}
