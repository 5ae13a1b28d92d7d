//! What an engine does with records: the seam between those who decide and those who store.

use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use super::done_request::DoneRequest;
use super::number_store::NumberStore;
use super::record_plan::RecordPlan;
use super::register::{AnchorKey, ListRange, StoredConjunction, TalliedAnchor};
use super::stored_append::StoredAppend;
use super::written_day::WrittenDay;
use crate::conjunction::{Anchor, ExternalId, Pair, ReportTally, Tca};
use crate::ledger::{EventId, EventTime, Head, KeyHash, LedgerId, Link};
use crate::storage::failure::{FailureKind, StoreError};
use crate::time::UnixNanos;

/// The records of a store, in whichever engine. Clones are the same records.
pub type Records = Arc<dyn RecordStore>;

/// The events of every ledger, the anchors of every pair, and the numbers of every series.
///
/// Reads show what is durable, or will be before a later write of this process is. They wait for the disk at most, or,
/// where the store [is remote](RecordStore::is_remote), for another machine; they may be called from any thread.
/// Every read fails with a [`StoreError`] when the store is damaged or refuses.
pub trait RecordStore: NumberStore + Debug + Send + Sync {
    /// How many of these plans, from the first on, can be written at once; at least one if there is any.
    fn fitting(&self, plans: &[RecordPlan]) -> usize {
        plans.len()
    }

    /// Stores plans in their order, all of them or none, and returns when they will survive a crash. No more than
    /// [fit](Self::fitting).
    ///
    /// Whether what they were decided on still holds is asked inside the transaction that writes them: the head of the
    /// ledger or of the series, the anchors near a new one, or that a number is not void. An engine that several processes
    /// write to asks the same of the keys of requests, which [`request`](Self::request) and [`given_to`](NumberStore::given_to)
    /// tell of.
    ///
    /// # Errors
    /// [`WriteError`].
    fn write(&self, plans: &[RecordPlan]) -> Result<(), WriteError>;

    /// Does what [`write`](Self::write) has left for when its callers have been told. A reader before that does it.
    ///
    /// # Errors
    /// [`StoreError`]; what was written is durable all the same.
    fn apply_pending(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// The last event of a ledger; `None` if there is no such ledger.
    ///
    /// # Errors
    /// [`StoreError`].
    fn head(&self, ledger: LedgerId) -> Result<Option<Head>, StoreError>;

    /// A ledger; `None` if there is no such ledger.
    ///
    /// # Errors
    /// [`StoreError`].
    fn ledger(&self, ledger: LedgerId) -> Result<Option<LedgerSummary>, StoreError>;

    /// Ledgers in the order of their ids, those above `after`, at most `count_max`.
    ///
    /// # Errors
    /// [`StoreError`].
    fn ledgers(
        &self,
        after: Option<LedgerId>,
        count_max: usize,
    ) -> Result<Vec<LedgerSummary>, StoreError>;

    /// The events of a ledger after one of them, or from the first, at most `count_max`.
    ///
    /// # Errors
    /// [`StoreError`].
    fn chain(
        &self,
        ledger: LedgerId,
        after: Option<EventId>,
        count_max: usize,
    ) -> Result<Vec<Link>, StoreError>;

    /// An event of a ledger; `None` if it is not there.
    ///
    /// # Errors
    /// [`StoreError`].
    fn link(&self, id: EventId) -> Result<Option<Link>, StoreError>;

    /// The append whose last event is `last`, and its events in their chain; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    fn append(&self, last: EventId) -> Result<Option<(StoredAppend, Vec<Link>)>, StoreError>;

    /// The last request with this key; `None` if there is none, or none that is not forgotten.
    ///
    /// # Errors
    /// [`StoreError`].
    fn request(&self, key: KeyHash) -> Result<Option<DoneRequest>, StoreError> {
        Ok(self.requests(&[key])?.pop().flatten())
    }

    /// The same of each of these keys.
    ///
    /// # Errors
    /// [`StoreError`].
    fn requests(&self, keys: &[KeyHash]) -> Result<Vec<Option<DoneRequest>>, StoreError>;

    /// Forgets `count_max` keys of requests that were recorded before that time, a day of them at a time, and never those of
    /// the last three days of which there are any. Returns whether there were such.
    ///
    /// # Errors
    /// [`StoreError`].
    fn forget_requests(&self, since: EventTime, count_max: usize) -> Result<bool, StoreError>;

    /// Days of which there are keys of requests: the last three at least, if there are so many.
    ///
    /// # Errors
    /// [`StoreError`].
    fn request_days(&self) -> Result<Vec<WrittenDay>, StoreError>;

    /// By which time what is kept may be judged to be old, where the clock of this process shows `now`: by an earlier one, where
    /// others write here whose clocks show an earlier one; `None` where that cannot be known yet.
    ///
    /// # Errors
    /// [`StoreError`].
    fn judging_time(&self, now: UnixNanos) -> Result<Option<UnixNanos>, StoreError> {
        Ok(Some(now))
    }

    /// For each of these times of a pair the anchors in its [neighbourhood](Tca::neighbourhood), by their times.
    ///
    /// # Errors
    /// [`StoreError`].
    fn neighbours(
        &self,
        format: &str,
        times: &mut dyn Iterator<Item = (Pair, Tca)>,
    ) -> Result<Vec<Vec<Anchor>>, StoreError>;

    /// For each of these spans of time of a pair its anchors within, by their times.
    ///
    /// # Errors
    /// [`StoreError`].
    fn anchors_within(
        &self,
        format: &str,
        spans: &mut dyn Iterator<Item = (Pair, RangeInclusive<Tca>)>,
    ) -> Result<Vec<Vec<Anchor>>, StoreError>;

    /// Conjunctions by time, at most `count_max`.
    ///
    /// # Errors
    /// [`StoreError`].
    fn conjunctions(
        &self,
        range: &ListRange,
        count_max: usize,
    ) -> Result<Vec<StoredConjunction>, StoreError>;

    /// Adds to what is known of the reports of conjunctions; of anchors that are not stored nothing is kept.
    ///
    /// # Errors
    /// [`StoreError`]; whether it is stored is unknown.
    fn add_reports(&self, tallies: &[(AnchorKey, ReportTally)]) -> Result<(), StoreError>;

    /// Keeps ids of other originators beside anchors, of each the first [so many](ExternalId::COUNT_MAX), and returns when they
    /// will survive a crash. Of anchors that are not stored nothing is kept.
    ///
    /// # Errors
    /// [`StoreError`]; whether they are stored is unknown.
    fn add_externals(&self, externals: &[(AnchorKey, ExternalId)]) -> Result<(), StoreError>;

    /// Of each of these anchors the ids of other originators, in the order in which they came.
    ///
    /// # Errors
    /// [`StoreError`].
    fn externals(&self, anchors: &[AnchorKey]) -> Result<Vec<Vec<ExternalId>>, StoreError>;

    /// The anchors of a format that an id of another originator is kept beside, at most `count_max`, the latest first.
    ///
    /// # Errors
    /// [`StoreError`].
    fn anchors_of_external(
        &self,
        format: &str,
        external: &ExternalId,
        count_max: usize,
    ) -> Result<Vec<AnchorKey>, StoreError>;

    /// Anchors behind that one, at most `count_max`: format after format, and of each from the latest time to the earliest.
    ///
    /// # Errors
    /// [`StoreError`].
    fn anchors(
        &self,
        after: Option<&AnchorKey>,
        count_max: usize,
    ) -> Result<Vec<TalliedAnchor>, StoreError>;

    /// Forgets anchors, and what is kept beside them, but for those whose reports were counted since they were read.
    ///
    /// # Errors
    /// [`StoreError`]; whether they are forgotten is unknown.
    fn forget_anchors(&self, old: &[TalliedAnchor]) -> Result<(), StoreError>;

    /// Copies everything but the horizon to a folder that is empty, or made; durable when this returns. It is as it was at
    /// one moment, whatever is written meanwhile.
    ///
    /// # Errors
    /// [`StoreError`]; what is in the folder is then no copy.
    fn back_up(&self, folder: &Path) -> Result<BackedUp, StoreError>;

    /// Why nothing can be read or written until the store is opened again; `None` if it can.
    fn obstacle(&self) -> Option<FailureKind>;

    /// Closes the store and opens it again, after an error of the disk.
    ///
    /// # Errors
    /// [`StoreError`]; it then stays closed until this succeeds.
    fn reopen(&self) -> Result<(), StoreError>;

    /// Whether plans are refused for want of room, while all else goes on: what is forgotten makes room.
    fn lacks_room(&self) -> bool {
        false
    }

    /// Whether reads wait for another machine: they are then not made on a thread that serves connections.
    fn is_remote(&self) -> bool {
        false
    }
}

/// Why plans were not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// What a plan was decided on holds no longer. None of the plans was written: decide again.
    #[error("a record was written meanwhile")]
    Stale,
    /// The store refuses, and none of the plans was written.
    #[error(transparent)]
    NotWritten(StoreError),
    /// The store is damaged or refuses; whether the plans are stored is unknown.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a copy holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackedUp {
    /// Appends of all ledgers.
    pub appends: u64,
    /// Conjunctions of all formats.
    pub conjunctions: u64,
    /// Numbers of all series.
    pub numbers: u64,
}

/// A ledger as a list shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerSummary {
    /// Its first event.
    pub genesis: EventId,
    /// Its last event.
    pub head: Head,
}
