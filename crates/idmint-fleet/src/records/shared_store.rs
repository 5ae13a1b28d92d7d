//! Reads and writes records in the store that all nodes share, and translates its errors.

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

/// The maximum number of comparisons, and of operations, in a transaction. etcd accepts 128. Two
/// are reserved to compare the agreement and this node's own key.
pub(super) const OPERATIONS_MAX: usize = 126;

/// The maximum estimated size of a transaction that adds records, in bytes. etcd accepts 1.5 MiB.
/// The difference is needed for deletions, so that a pair with a full row can shrink.
pub(super) const BYTES_MAX: usize = 1_400_000;

/// The maximum [size](Transaction::size) of a transaction, in bytes. The difference to etcd's limit
/// is needed to compare the agreement and this node's own key.
const SIZE_MAX: usize = REQUEST_BYTES_MAX - 4_000;

/// The maximum number of times that a transaction is sent before its outcome counts as unknown.
/// Each attempt takes at most about a second, which limits the wait of callers.
const SENT_MAX: u32 = 6;

/// The pause between two attempts. All pauses together are longer than etcd needs to elect a
/// leader.
const PAUSE: Duration = Duration::from_millis(300);

/// The maximum time from sending a request until its response is journalled. A later response is
/// not returned to the caller. After the coordinator was lost, an operator waits at least this long
/// before using the journals. Then the journals contain everything that callers have received, or
/// will receive, from the lost coordinator.
pub const JOURNALLED_WITHIN: Duration = Duration::from_millis(1_500);

/// The error for new records while three quarters of etcd's space quota are used up.
pub(super) const NO_ROOM: Obstacle = Obstacle::new(
    FailureKind::Full,
    "etcd has used three quarters of its quota, and the rest is for slots; compact and defragment etcd, or raise its quota and etcd.quota",
);

// `DENIED` and `REFUSED` have the kind `Unreachable`, so that the node keeps running. A restart
// would not help if permissions are missing or a request is too large.
const DENIED: Obstacle = Obstacle::new(
    FailureKind::Unreachable,
    "etcd refuses the credentials of this node; correct etcd.user, etcd.password_file or etcd.certificate",
);

const REFUSED: Obstacle = Obstacle::new(
    FailureKind::Unreachable,
    "etcd refused the request; the log of the node has the reason",
);

/// The error if a row cannot grow any more. Its kind is `Full`, so that the node keeps running.
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

/// The store that all nodes of a fleet share, with the keys of this fleet. Also contains this
/// node's knowledge of the fleet's agreement and revisions.
#[derive(Debug)]
pub(super) struct SharedStore {
    coordinator: Arc<dyn Coordinator>,
    pub(super) keys: Keys,
    known: Arc<KnownFleet>,
    /// The reason why the last request failed, if later requests are expected to fail as well.
    /// Callers are then refused at once, instead of waiting for a coordinator that does not
    /// respond.
    failure: Mutex<Option<Obstacle>>,
    /// `false` if the last read found no hold, which would stop all series. Written by
    /// `FleetRecords::reads_hold`, and set by a draft that finds a hold. Relaxed accesses suffice,
    /// because the flag only saves a read: each transaction that issues numbers compares the hold
    /// anyway.
    pub(super) may_hold: AtomicBool,
    /// The result of the last read of the hold, or `None` before the first read. The readiness
    /// response of this node reports the hold.
    pub(super) hold_seen: Mutex<Option<HoldSeen>>,
}

/// The result of a read of the hold. A fence after a restore sets the hold, so that no numbers are
/// issued until an operator ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HoldSeen {
    /// The fleet's era at this read. Only a fence sets a hold, and each fence begins a new era. So
    /// in a later era, `is_held` is outdated.
    pub(super) era: FleetEra,
    /// `true` if there was a hold, and no operator had ended it for all series. Series that were
    /// resumed one by one do not change this flag.
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

/// The outcome of a transaction whose response arrived.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// The transaction was committed. The value is the time of the last attempt to send it.
    Committed(Asked),
    /// A comparison failed, so no write was done.
    Stale,
}

/// The error of a transaction that was not committed or whose outcome is unknown.
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

    /// Returns the reason why records can be neither read nor written now, or `None` if they can be
    /// read.
    pub(super) fn obstacle(&self) -> Option<Obstacle> {
        self.known.check().err().or(*self.failure())
    }

    /// Returns the reason why records cannot be written now, or `None` if they can. They may still
    /// be readable.
    pub(super) fn write_obstacle(&self) -> Option<Obstacle> {
        self.known.terms(self.keys.meta()).err()
    }

    fn failure(&self) -> MutexGuard<'_, Option<Obstacle>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the fleet's era as this node last read it. Each fence begins a new era.
    pub(super) fn era(&self) -> FleetEra {
        self.known.era()
    }

    /// Returns the current time. Call this before sending a request.
    pub(super) fn asking(&self) -> Asked {
        Asked(self.coordinator.time())
    }

    /// Checks that a response was journalled soon enough after its request was sent at `asked`.
    /// Call this right after writing the response to the journal.
    ///
    /// # Errors
    /// Returns [`StoreError`] if more than [`JOURNALLED_WITHIN`] has passed, because this process
    /// was suspended in the meantime.
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

    /// Returns the time from which the age of stored data is counted. `now` is the reading of this
    /// node's clock.
    ///
    /// The result is the median of the clock readings that the holders of slots have written, or
    /// `now` if that is earlier. With an even number of readings, the lower one of the two middle
    /// readings counts. Returns `None` while this node has no slot, because a wrong clock may be
    /// the reason for that.
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
    /// If no response arrives, the same transaction is sent again. If the retry is refused, an
    /// earlier copy may have been committed. `is_ours` decides that from the entries that the retry
    /// has read.
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
                // Each write creates a new revision, so its response must have a higher revision
                // than any earlier response.
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
                // This attempt was not sent, but an earlier one may still be in transit. Try again.
                Err(CoordinatorError::NotSent(_)) if is_unanswered => {}
                // This attempt was certainly not done, but an earlier one may have been.
                Err(error) if is_unanswered => {
                    return Err(NotWritten::Unknown(self.note_failure(&error)));
                }
                Err(error) => return Err(NotWritten::Refused(self.note_failure(&error))),
            }
        }
        let error = CoordinatorError::NoAnswer(format!("{SENT_MAX} requests in a row failed"));
        Err(NotWritten::Unknown(self.note_failure(&error)))
    }

    /// Commits a transaction whose loss does no harm. Returns `false` if a compared row has
    /// changed, either by another node or by an earlier attempt whose response was lost.
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

    /// Returns the error for a transaction that is too long even with a single long row. The error
    /// names this row.
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

    /// Returns [`Written::Stale`] if another write came first. Returns an error if the agreement
    /// has changed, or if this node's own key shows that its slot or the coordinator's data is
    /// lost.
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

/// `true` if the transaction is small enough for etcd.
pub(super) fn fits(transaction: &Transaction) -> bool {
    transaction.size() <= SIZE_MAX
}

/// Returns the clock reading in a slot's horizon record. Returns `None` if the record cannot be
/// decoded.
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

/// Returns the error for a row of a conjunction that cannot be decoded.
pub(super) fn unreadable_conjunction(key: &str, value: &[u8]) -> StoreError {
    of_checksum(is_whole_conjunction(key, value), key)
}

/// Returns the error for a row that cannot be decoded. If its checksum is valid, a later version
/// wrote the row. Otherwise the row is damaged.
fn of_checksum(is_whole: bool, key: &str) -> StoreError {
    match is_whole {
        true => StoreError::new(FailureKind::Disagrees, written_later(key)),
        false => damaged(key),
    }
}

/// Returns the error message for an intact value that a later version of this program has written.
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
