//! Ledgers: created, appended to, and read.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use super::error::ServiceError;
use super::service::Service;
use crate::ledger::{Event, EventId, ImportPart, LedgerId, LedgerRequest, Link, RequestMark};
use crate::service::formats::{IdSource, ServedFormat};
use crate::storage::{
    Appended, LedgerSummary, RecordError, RecordKeeper, RecordStore, StoreError, log_unreadable,
};

/// Some of a list, from some place on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// So many at the most: [`PAGE_LEN`], unless a caller wants fewer.
    pub items: Vec<T>,
    /// Whether there are more behind the last one.
    pub has_more: bool,
}

impl<T> Page<T> {
    /// By which name to ask for more behind the last one, if there is more.
    pub fn next(&self, name: impl Fn(&T) -> String) -> Option<String> {
        self.items.last().filter(|_| self.has_more).map(name)
    }
}

/// How many ledgers or events are listed at once.
pub const PAGE_LEN: usize = 1_000;

impl Service {
    /// Creates the ledger that begins with this event; what comes back is durable.
    ///
    /// # Errors
    /// [`ServiceError`]: nothing was created, or that is not known.
    pub async fn create_ledger(
        &self,
        genesis: Event,
        mark: Option<RequestMark>,
        import: Option<ImportPart>,
    ) -> Result<(Appended, LedgerSummary), ServiceError> {
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
        let keeper = self.record_keeper().ok_or_else(|| self.not_begun())?;
        let summary = keeper
            .read_aside(move |records| records.ledger(ledger))
            .await;
        let summary = summary
            .map_err(unavailable)?
            .ok_or(ServiceError::UnknownLedger(ledger))?;
        let of_events = self
            .formats()
            .iter()
            .find(|served| matches!(served.source(), IdSource::Events));
        if let Some(served) = of_events.filter(|_| !appended.is_replayed) {
            served.counters().count_granted(1, false);
        }
        Ok((appended, summary))
    }

    /// Appends to a ledger, whose ids are of this format; what comes back is durable.
    ///
    /// # Errors
    /// [`ServiceError`]: nothing was appended, or that is not known.
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
        let keeper = self.record_keeper().ok_or_else(|| self.not_begun())?;
        let outcome = keeper.append(request).await;
        self.counters().count_append(&outcome);
        Ok(outcome?)
    }

    /// A page of all ledgers, or of those `among` these, behind `after`.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn ledgers(
        &self,
        among: Option<&BTreeSet<LedgerId>>,
        after: Option<LedgerId>,
    ) -> Result<Page<LedgerSummary>, ServiceError> {
        let records = self.records()?;
        let found = match among {
            None => records.ledgers(after, PAGE_LEN + 1),
            Some(among) => {
                let behind = among.range((
                    after.map_or(Bound::Unbounded, Bound::Excluded),
                    Bound::Unbounded,
                ));
                behind
                    .filter_map(|ledger| records.ledger(*ledger).transpose())
                    .take(PAGE_LEN + 1)
                    .collect()
            }
        };
        found
            .map(|found| page(found, PAGE_LEN))
            .map_err(unavailable)
    }

    /// Reads records where that holds up nobody: here, or, where they are on another machine, on a thread that serves no
    /// connections.
    pub async fn read_records<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Service) -> T + Send + 'static,
    ) -> T {
        if !self
            .record_keeper()
            .is_some_and(|keeper| keeper.records().is_remote())
        {
            return read(self);
        }
        let service = Arc::clone(self);
        tokio::task::spawn_blocking(move || read(&service))
            .await
            .expect("it does not panic, and nobody aborts it")
    }

    /// A ledger that there is, or one `among` these, for examples; `None` if there is none, or another machine would have to
    /// be asked.
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

    /// One ledger.
    ///
    /// # Errors
    /// [`ServiceError::UnknownLedger`] among others.
    pub fn ledger(&self, ledger: LedgerId) -> Result<LedgerSummary, ServiceError> {
        self.records()?
            .ledger(ledger)
            .map_err(unavailable)?
            .ok_or(ServiceError::UnknownLedger(ledger))
    }

    /// A page of the events of a ledger, behind the event `after`.
    ///
    /// # Errors
    /// [`ServiceError::UnknownEvent`] among others, if there is no such event.
    pub fn events(
        &self,
        ledger: LedgerId,
        after: Option<EventId>,
    ) -> Result<Page<Link>, ServiceError> {
        if let Some(after) = after {
            self.event(ledger, after)?;
        }
        let found = self
            .records()?
            .chain(ledger, after, PAGE_LEN + 1)
            .map_err(unavailable)?;
        Ok(page(found, PAGE_LEN))
    }

    /// One event of a ledger.
    ///
    /// # Errors
    /// [`ServiceError::UnknownEvent`] among others.
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
        self.record_keeper()
            .map(RecordKeeper::records)
            .ok_or_else(|| self.not_begun())
    }

    /// Why nothing is stored yet.
    pub(super) fn not_begun(&self) -> ServiceError {
        match self.session() {
            Err(refusal) => ServiceError::Refused(refusal),
            Ok(_) => ServiceError::Records(RecordError::Unavailable),
        }
    }
}

/// A page of at most `len_max` items, of one more if there are more.
pub(super) fn page<T>(mut items: Vec<T>, len_max: usize) -> Page<T> {
    let has_more = items.len() > len_max;
    items.truncate(len_max);
    Page { items, has_more }
}

pub(super) fn unavailable(error: StoreError) -> ServiceError {
    ServiceError::Records(log_unreadable(&error))
}
