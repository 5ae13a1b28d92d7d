//! Creates ledgers, appends events to them, and reads them.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use super::error::ServiceError;
use super::service::Service;
use crate::formats::{IdSource, ServedFormat};
use idmint_records::ledger::{
    Event, EventId, ImportPart, LedgerId, LedgerRequest, Link, RequestMark,
};
use idmint_storage::{
    Appended, FailureKind, LedgerSummary, Obstacle, RecordStore, RecordWriterHandle, StoreError,
    log_unreadable,
};

/// A page of a list: consecutive items after a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage<T> {
    /// The items of this page, at most as many as the limit in the request.
    pub items: Vec<T>,
    /// `true` if the list has more items after these.
    pub has_more: bool,
}

impl<T> ListPage<T> {
    /// Returns the cursor of the next page, or `None` if this is the last page. The cursor is the
    /// name of the last item on this page. The function `name` returns the name of an item.
    pub fn next(&self, name: impl Fn(&T) -> String) -> Option<String> {
        self.items.last().filter(|_| self.has_more).map(name)
    }
}

/// The maximum number of items in a page. For most lists, this number is also the default of the
/// request parameter `limit`.
pub const PAGE_LEN: usize = 1_000;

impl Service {
    /// Creates the ledger whose first event is `genesis`. The ledger is durable when this method
    /// returns.
    ///
    /// # Errors
    /// Returns [`ServiceError`] if no ledger was created, or if the outcome is unknown.
    pub async fn create_ledger(
        &self,
        genesis: Event,
        mark: Option<RequestMark>,
        import: Option<ImportPart>,
    ) -> Result<(Appended, LedgerSummary), ServiceError> {
        let of_events = self
            .formats()
            .iter()
            .find(|served| matches!(served.source(), IdSource::Events));
        if let Some(served) = of_events {
            served.check_minted()?;
        }
        let appended = self
            .append_durably(LedgerRequest::Create {
                genesis,
                mark,
                import,
            })
            .await?;
        let ledger = appended
            .links
            .first()
            .expect("a ledger begins with an event")
            .id
            .ledger();
        if let Some(served) = of_events.filter(|_| !appended.is_replayed) {
            served.counters().count_granted(1, false);
        }
        let summary = self.writer()?.read_appended(ledger).await?;
        let summary = summary.ok_or(ServiceError::UnknownLedger(ledger))?;
        Ok((appended, summary))
    }

    /// Appends events to a ledger. The ids of the events have the format `served`. The events are
    /// durable when this method returns.
    ///
    /// # Errors
    /// Returns [`ServiceError`] if no event was appended, or if the outcome is unknown.
    pub async fn append(
        &self,
        served: &ServedFormat,
        request: LedgerRequest,
    ) -> Result<Appended, ServiceError> {
        let appended = self.append_durably(request).await?;
        if !appended.is_replayed {
            let count = u64::try_from(appended.links.len()).expect("a list is shorter than 2^64");
            served.counters().count_granted(count, false);
        }
        Ok(appended)
    }

    async fn append_durably(&self, request: LedgerRequest) -> Result<Appended, ServiceError> {
        let writer = self.writer()?;
        let outcome = writer.append(request).await;
        self.counters().count_append(&outcome);
        Ok(outcome?)
    }

    /// Returns a page of at most `limit` ledgers, whose ids are above the cursor `after`. If
    /// `among` is given, only ledgers in that set are listed.
    ///
    /// # Errors
    /// Returns [`ServiceError`] if the records cannot be read.
    pub fn ledgers(
        &self,
        among: Option<&BTreeSet<LedgerId>>,
        after: Option<LedgerId>,
        limit: usize,
    ) -> Result<ListPage<LedgerSummary>, ServiceError> {
        let records = self.records()?;
        let found = match among {
            None => records.ledgers(after, limit + 1),
            Some(among) => {
                let behind = among.range((
                    after.map_or(Bound::Unbounded, Bound::Excluded),
                    Bound::Unbounded,
                ));
                behind
                    .filter_map(|ledger| records.ledger(*ledger).transpose())
                    .take(limit + 1)
                    .collect()
            }
        };
        found.map(|found| page(found, limit)).map_err(unavailable)
    }

    /// Runs `read` without blocking other requests. If the records are stored on another machine,
    /// `read` runs on a thread for blocking work. Otherwise `read` runs on this thread.
    pub async fn read_records<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Service) -> T + Send + 'static,
    ) -> T {
        if !self.has_remote_records() {
            return read(self);
        }
        self.read_aside(read).await
    }

    /// `true` if the records are stored on another machine, so that reading them waits for the
    /// network.
    pub fn has_remote_records(&self) -> bool {
        self.record_writer_handle()
            .is_some_and(|writer| writer.records().is_remote())
    }

    /// Runs `read` on a thread for blocking work.
    pub async fn read_aside<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Service) -> T + Send + 'static,
    ) -> T {
        let service = Arc::clone(self);
        tokio::task::spawn_blocking(move || read(&service))
            .await
            .expect("it does not panic, and nobody aborts it")
    }

    /// Returns the id of any existing ledger, to show as an example. If `among` is given, only
    /// ledgers in that set are considered. Returns `None` if no such ledger exists, or if the
    /// records are stored on another machine.
    pub fn any_ledger(&self, among: Option<&BTreeSet<LedgerId>>) -> Option<LedgerId> {
        let records = self.records().ok().filter(|records| !records.is_remote())?;
        match among {
            None => records
                .ledgers(None, 1)
                .ok()?
                .first()
                .map(|ledger| ledger.head.id.ledger()),
            Some(among) => among
                .iter()
                .copied()
                .find(|ledger| matches!(records.ledger(*ledger), Ok(Some(_)))),
        }
    }

    /// Returns a summary of a ledger.
    ///
    /// # Errors
    /// Returns [`ServiceError::UnknownLedger`] if the ledger does not exist, and other errors if
    /// the records cannot be read.
    pub fn ledger(&self, ledger: LedgerId) -> Result<LedgerSummary, ServiceError> {
        self.records()?
            .ledger(ledger)
            .map_err(unavailable)?
            .ok_or(ServiceError::UnknownLedger(ledger))
    }

    /// Returns a page of at most `limit` events of a ledger. The page begins with the event that
    /// follows the event `after`.
    ///
    /// # Errors
    /// Returns [`ServiceError::UnknownEvent`] if the ledger has no event `after`, and other errors
    /// if the records cannot be read.
    pub fn events(
        &self,
        ledger: LedgerId,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<ListPage<Link>, ServiceError> {
        if let Some(after) = after {
            self.event(ledger, after)?;
        }
        let found = self
            .records()?
            .chain(ledger, after, limit + 1)
            .map_err(unavailable)?;
        Ok(page(found, limit))
    }

    /// Returns an event of a ledger.
    ///
    /// # Errors
    /// Returns [`ServiceError::UnknownEvent`] if the ledger has no such event, and other errors if
    /// the records cannot be read.
    pub fn event(&self, ledger: LedgerId, event: EventId) -> Result<Link, ServiceError> {
        let records = self.records()?;
        let link = if event.ledger() == ledger {
            records.link(event).map_err(unavailable)?
        } else {
            None
        };
        link.ok_or(ServiceError::UnknownEvent { ledger, event })
    }

    pub(super) fn records(&self) -> Result<&dyn RecordStore, ServiceError> {
        self.writer().map(RecordWriterHandle::records)
    }

    /// Returns the handle of the thread that writes records.
    ///
    /// # Errors
    /// Returns [`ServiceError`] if this node does not serve records yet.
    pub(super) fn writer(&self) -> Result<&RecordWriterHandle, ServiceError> {
        self.record_writer_handle().ok_or_else(|| self.not_begun())
    }

    /// Returns the error for a request that needs stored records while this node does not serve
    /// records yet.
    pub(super) fn not_begun(&self) -> ServiceError {
        match self.session() {
            Err(refusal) => ServiceError::Refused(refusal),
            Ok(_) => ServiceError::Records(STARTING.into()),
        }
    }
}

/// The reason why a node that is still starting serves no records yet, although it already mints
/// ids.
const STARTING: Obstacle = Obstacle::new(
    FailureKind::NotUsable,
    "this node is starting, and opens its records within seconds; retry",
);

/// Cuts `items` to a page of at most `len_max` items. If items were cut off, the page says that the
/// list continues.
pub(super) fn page<T>(mut items: Vec<T>, len_max: usize) -> ListPage<T> {
    let has_more = items.len() > len_max;
    items.truncate(len_max);
    ListPage { items, has_more }
}

pub(super) fn unavailable(error: StoreError) -> ServiceError {
    ServiceError::Records(log_unreadable(&error))
}
