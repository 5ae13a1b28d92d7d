//! What an engine does with records: the seam between those who decide and those who store.

use std::fmt::Debug;
use std::sync::Arc;

use super::record_plan::RecordPlan;
use super::stored_append::{DoneRequest, StoredAppend};
use crate::conjunction::{Anchor, Pair, Tca};
use crate::ledger::{EventId, EventTime, Head, LedgerId, Link};
use crate::storage::store_error::StoreError;

/// The records of a store, in whichever engine. Clones are the same records.
pub type Records = Arc<dyn RecordStore>;

/// The events of every ledger and the anchors of every pair.
///
/// Reads show what is durable, or will be before a later write of this process is. They wait for the disk at most,
/// and may be called from any thread. Every read fails with a [`StoreError`] when the store is damaged or refuses.
pub trait RecordStore: Debug + Send + Sync {
    /// Stores plans in their order, all of them or none, and returns when they will survive a crash.
    ///
    /// Whether what they were decided on still holds is asked inside the transaction that writes them: the head of the
    /// ledger, or the anchors near a new one. An engine that several processes write to asks the same of the keys of
    /// requests, which [`requests_since`](Self::requests_since) tells of.
    ///
    /// # Errors
    /// [`WriteError`].
    fn write(&self, plans: &[RecordPlan]) -> Result<(), WriteError>;

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

    /// Ledgers in the order of their ids, those above `after`, at most so many.
    ///
    /// # Errors
    /// [`StoreError`].
    fn ledgers(&self, after: Option<LedgerId>, count_max: usize) -> Result<Vec<LedgerSummary>, StoreError>;

    /// The events of a ledger after one of them, or from the first, at most so many.
    ///
    /// # Errors
    /// [`StoreError`].
    fn chain(&self, ledger: LedgerId, after: Option<EventId>, count_max: usize) -> Result<Vec<Link>, StoreError>;

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

    /// Shows the requests with a key that were done since, in no order.
    ///
    /// # Errors
    /// [`StoreError`]; some may have been shown.
    fn requests_since(&self, since: EventTime, show: &mut dyn FnMut(DoneRequest)) -> Result<(), StoreError>;

    /// For each of these times of a pair the anchors in its [neighbourhood](Tca::neighbourhood), by their times.
    ///
    /// # Errors
    /// [`StoreError`].
    fn neighbours(
        &self,
        format: &str,
        times: &mut dyn Iterator<Item = (Pair, Tca)>,
    ) -> Result<Vec<Vec<Anchor>>, StoreError>;

    /// Looks at so many anchors in their order, from a key or the first, and forgets those before an instant. Returns
    /// where to go on; `None` at the end.
    ///
    /// # Errors
    /// [`StoreError`].
    fn forget_anchors(
        &self,
        from: Option<&AnchorKey>,
        before: Tca,
        count_max: usize,
    ) -> Result<Option<AnchorKey>, StoreError>;

    /// Whether nothing was refused since the store was opened; if something was, only opening it again helps.
    fn is_usable(&self) -> bool;

    /// Closes the store and opens it again, after an error of the disk.
    ///
    /// # Errors
    /// [`StoreError`]; it then stays closed until this succeeds.
    fn reopen(&self) -> Result<(), StoreError>;
}

/// Why plans were not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// What a plan was decided on holds no longer. None of the plans was written: decide again.
    #[error("a record was written meanwhile")]
    Stale,
    /// The store is damaged or refuses; whether the plans are stored is unknown.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A ledger as a list shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerSummary {
    /// Its first event.
    pub genesis: EventId,
    /// Its last event.
    pub head: Head,
}

/// What an anchor is stored under. Anchors are in the order of format, pair and time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AnchorKey {
    /// The name of the format.
    pub format: String,
    /// The objects.
    pub pair: Pair,
    /// The time of the anchor.
    pub tca: Tca,
}

impl AnchorKey {
    /// A key that none is below.
    pub(in crate::storage) fn first() -> AnchorKey {
        AnchorKey { format: String::new(), pair: Pair { primary: 0, secondary: 0 }, tca: Tca(i64::MIN) }
    }
}
