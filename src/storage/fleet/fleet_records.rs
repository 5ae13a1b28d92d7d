//! The records of a fleet, as an engine.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::journal::AppendJournal;
use super::keys::Keys;
use super::known_fleet::{FleetEra, KnownFleet};
use super::numbers::Found;
use super::room::Room;
use super::rows::Attempt;
use super::shared_store::{Asked, NotWritten, OPERATIONS_MAX, SharedStore, Written};
use super::transaction_draft::{TransactionDraft, fitting, has_landed, journalled};
use crate::conjunction::{Anchor, ExternalId, Pair, ReportTally, Tca};
use crate::ledger::{
    EventId, EventTime, GivenNumbers, Head, KeyHash, LedgerId, Link, SeriesHead, SeriesName,
    VoidedNumber,
};
use crate::storage::coordinator::{Coordinator, MemoryCoordinator};
use crate::storage::etcd::Namespace;
use crate::storage::failure::{FailureKind, StoreError};
use crate::storage::records::{
    AnchorKey, BackedUp, DoneRequest, LedgerSummary, ListRange, NumberRecord, NumberStore,
    RecordPlan, RecordStore, SeriesSummary, StoredAppend, StoredConjunction, TalliedAnchor,
    WriteError, WrittenDay,
};
use crate::time::UnixNanos;

/// Records that the nodes of a fleet share.
pub struct FleetRecords {
    store: SharedStore,
    room: Arc<Room>,
    /// Tells this process from all others.
    process: u64,
    /// The attempts of this process so far. Relaxed: each only has to differ from the others.
    attempts: AtomicU64,
    /// Of a node; none where nobody is answered.
    journal: Option<AppendJournal>,
    /// Whether no other process writes here, so that only the clock of this one counts.
    is_alone: bool,
}

impl FleetRecords {
    /// The records of a namespace. `process` is drawn at random for each process; `known` is what this node knows of the fleet, and
    /// `room` whether more can be written.
    pub fn new(
        coordinator: Arc<dyn Coordinator>,
        namespace: &Namespace,
        known: Arc<KnownFleet>,
        room: Arc<Room>,
        process: u64,
    ) -> FleetRecords {
        let store = SharedStore::new(coordinator, Keys::of(namespace), known);
        FleetRecords {
            store,
            room,
            process,
            attempts: AtomicU64::new(0),
            journal: None,
            is_alone: false,
        }
    }

    /// Records of one process, which are gone with the value.
    #[must_use]
    pub fn in_memory() -> FleetRecords {
        let coordinator = Arc::new(MemoryCoordinator::unbounded());
        let shared = FleetRecords::new(
            coordinator,
            &Namespace::default(),
            Arc::default(),
            Arc::default(),
            0,
        );
        FleetRecords {
            is_alone: true,
            ..shared
        }
    }

    /// The same, which keep what answers rest on in a journal, if there is one.
    #[must_use]
    pub fn with_journal(self, journal: Option<AppendJournal>) -> FleetRecords {
        FleetRecords { journal, ..self }
    }

    fn attempt(&self) -> Attempt {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        Attempt(u128::from(self.process) << 64 | u128::from(number))
    }

    /// Keeps rows in the journal, all of which are committed: what is told now rests on them.
    fn keep<'a>(&self, era: FleetEra, rows: impl IntoIterator<Item = (&'a str, &'a [u8])>) {
        if let Some(journal) = &self.journal {
            journal.keep(era, &rows.into_iter().collect::<Vec<_>>());
        }
    }

    /// Keeps rows that were asked for then. They may be told if they are in the journal so early that an operator who restores the
    /// coordinator finds them there.
    ///
    /// # Errors
    /// [`StoreError`]: this process stood still meanwhile. Without a journal nothing comes back, however early it is told.
    fn keep_in_time<'a>(
        &self,
        asked: Asked,
        era: FleetEra,
        rows: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<(), StoreError> {
        self.keep(era, rows);
        self.journal
            .as_ref()
            .map_or(Ok(()), |_| self.store.check_in_time(asked))
    }
}

impl RecordStore for FleetRecords {
    fn fitting(&self, plans: &[RecordPlan]) -> usize {
        if self.is_alone {
            plans.len()
        } else {
            fitting(plans)
        }
    }

    fn write(&self, plans: &[RecordPlan]) -> Result<(), WriteError> {
        assert_eq!(
            self.fitting(plans),
            plans.len(),
            "a caller writes no more than fits into a transaction"
        );
        if plans.is_empty() {
            return Ok(());
        }
        if self.room.is_scarce() {
            let error = "three quarters of etcd's quota are used; what is left is for slots";
            return Err(WriteError::NotWritten(StoreError::new(
                FailureKind::Full,
                error,
            )));
        }
        let lacks = |key: &str| {
            self.journal
                .as_ref()
                .is_some_and(|journal| journal.lacks(key))
        };
        let mut round = TransactionDraft::read(&self.store, self.attempt(), plans, &lacks)
            .map_err(WriteError::NotWritten)?;
        if !plans.iter().all(|plan| round.add(plan)) {
            return Err(WriteError::Stale);
        }
        let (transaction, era) = (round.transaction(), self.store.era());
        // Before the commit: else, where node after node is killed behind one, nobody would have those in the middle.
        self.keep(era, round.predecessors());
        match self.store.write(transaction.clone(), |stored| {
            has_landed(&transaction, stored)
        }) {
            Ok(Written::Committed(asked)) => {
                let rows = journalled(&self.store.keys, &transaction);
                self.keep_in_time(asked, era, rows)
                    .map_err(WriteError::Store)
            }
            Ok(Written::Stale) => Err(WriteError::Stale),
            Err(NotWritten::Refused(error)) => Err(WriteError::NotWritten(error)),
            Err(NotWritten::Unknown(error)) => Err(WriteError::Store(error)),
        }
    }

    fn head(&self, ledger: LedgerId) -> Result<Option<Head>, StoreError> {
        Ok(self.store.ledger(ledger)?.map(|ledger| ledger.head))
    }

    fn ledger(&self, ledger: LedgerId) -> Result<Option<LedgerSummary>, StoreError> {
        self.store.ledger(ledger)
    }

    fn ledgers(
        &self,
        after: Option<LedgerId>,
        count_max: usize,
    ) -> Result<Vec<LedgerSummary>, StoreError> {
        self.store.ledgers(after, count_max)
    }

    fn chain(
        &self,
        ledger: LedgerId,
        after: Option<EventId>,
        count_max: usize,
    ) -> Result<Vec<Link>, StoreError> {
        self.store.chain(ledger, after, count_max)
    }

    fn link(&self, id: EventId) -> Result<Option<Link>, StoreError> {
        self.store.link(id)
    }

    fn append(&self, last: EventId) -> Result<Option<(StoredAppend, Vec<Link>)>, StoreError> {
        let (asked, era) = (self.store.asking(), self.store.era());
        let Some(found) = self.store.append(last)? else {
            return Ok(None);
        };
        self.keep_in_time(
            asked,
            era,
            [(found.row.key.as_str(), found.row.value.as_slice())],
        )?;
        Ok(Some((found.append, found.links)))
    }

    fn requests(&self, keys: &[KeyHash]) -> Result<Vec<Option<DoneRequest>>, StoreError> {
        self.store.requests(keys)
    }

    fn forget_requests(&self, since: EventTime, count_max: usize) -> Result<bool, StoreError> {
        self.store.forget_requests(since, count_max)
    }

    fn request_days(&self) -> Result<Vec<WrittenDay>, StoreError> {
        self.store.first_and_last_days()
    }

    fn judging_time(&self, now: UnixNanos) -> Result<Option<UnixNanos>, StoreError> {
        if self.is_alone {
            Ok(Some(now))
        } else {
            self.store.judging_time(now)
        }
    }

    fn neighbours(
        &self,
        format: &str,
        times: &mut dyn Iterator<Item = (Pair, Tca)>,
    ) -> Result<Vec<Vec<Anchor>>, StoreError> {
        self.anchors_within(
            format,
            &mut times.map(|(pair, tca)| (pair, tca.neighbourhood())),
        )
    }

    fn anchors_within(
        &self,
        format: &str,
        spans: &mut dyn Iterator<Item = (Pair, RangeInclusive<Tca>)>,
    ) -> Result<Vec<Vec<Anchor>>, StoreError> {
        let spans: Vec<_> = spans.collect();
        let mut within = Vec::with_capacity(spans.len());
        for some in spans.chunks(OPERATIONS_MAX) {
            let (asked, era) = (self.store.asking(), self.store.era());
            let (anchors, rows) = self.store.anchors_within(format, some)?;
            self.keep_in_time(
                asked,
                era,
                rows.iter()
                    .map(|row| (row.key.as_str(), row.value.as_slice())),
            )?;
            within.extend(anchors);
        }
        Ok(within)
    }

    fn conjunctions(
        &self,
        range: &ListRange,
        count_max: usize,
    ) -> Result<Vec<StoredConjunction>, StoreError> {
        self.store.conjunctions(range, count_max)
    }

    fn add_reports(&self, tallies: &[(AnchorKey, ReportTally)]) -> Result<(), StoreError> {
        self.store.add_reports(tallies)
    }

    fn anchors(
        &self,
        after: Option<&AnchorKey>,
        count_max: usize,
    ) -> Result<Vec<TalliedAnchor>, StoreError> {
        self.store.anchors(after, count_max)
    }

    fn forget_anchors(&self, old: &[TalliedAnchor]) -> Result<(), StoreError> {
        self.store.forget_anchors(old, || self.attempt())
    }

    fn add_externals(&self, externals: &[(AnchorKey, ExternalId)]) -> Result<(), StoreError> {
        self.store.add_externals(externals)
    }

    fn externals(&self, anchors: &[AnchorKey]) -> Result<Vec<Vec<ExternalId>>, StoreError> {
        Ok(self
            .store
            .beside(anchors.iter())?
            .into_iter()
            .map(|beside| beside.externals)
            .collect())
    }

    fn anchors_of_external(
        &self,
        format: &str,
        external: &ExternalId,
        count_max: usize,
    ) -> Result<Vec<AnchorKey>, StoreError> {
        self.store.anchors_of_external(format, external, count_max)
    }

    fn back_up(&self, _: &Path) -> Result<BackedUp, StoreError> {
        let advice = match self.is_alone {
            true => "nothing is kept in memory that a backup could restore",
            false => {
                "etcd keeps the records of a fleet: back it up by its own snapshots (docs/OPERATIONS.md)"
            }
        };
        Err(StoreError::new(FailureKind::NotUsable, advice))
    }

    fn obstacle(&self) -> Option<FailureKind> {
        (!self.store.answers()).then_some(FailureKind::Unreachable)
    }

    fn reopen(&self) -> Result<(), StoreError> {
        self.store.look_again()
    }

    fn lacks_room(&self) -> bool {
        self.room.is_scarce()
    }

    fn is_remote(&self) -> bool {
        !self.is_alone
    }
}

impl NumberStore for FleetRecords {
    fn series_head(&self, series: &SeriesName) -> Result<Option<SeriesHead>, StoreError> {
        let summary = self.store.series_summary(series)?;
        Ok(summary.map(|series| SeriesHead {
            last: series.last,
            recorded: series.updated,
        }))
    }

    fn series(
        &self,
        after: Option<&SeriesName>,
        count_max: usize,
    ) -> Result<Vec<SeriesSummary>, StoreError> {
        self.store.series(after, count_max)
    }

    fn given(
        &self,
        series: &SeriesName,
        from: u64,
        count_max: usize,
    ) -> Result<Vec<GivenNumbers>, StoreError> {
        self.store.given(series, from, count_max)
    }

    fn given_to(
        &self,
        keys: &[(SeriesName, KeyHash)],
    ) -> Result<Vec<Option<GivenNumbers>>, StoreError> {
        let (asked, era) = (self.store.asking(), self.store.era());
        let Found { found, rows } = self.store.given_to(keys)?;
        self.keep_in_time(
            asked,
            era,
            rows.iter()
                .map(|row| (row.key.as_str(), row.value.as_slice())),
        )?;
        Ok(found)
    }

    fn number(&self, series: &SeriesName, number: u64) -> Result<Option<NumberRecord>, StoreError> {
        let (asked, era) = (self.store.asking(), self.store.era());
        let Some(Found { found, rows }) = self.store.number(series, number)? else {
            return Ok(None);
        };
        self.keep_in_time(
            asked,
            era,
            rows.iter()
                .map(|row| (row.key.as_str(), row.value.as_slice())),
        )?;
        Ok(Some(found))
    }

    fn voids(
        &self,
        series: &SeriesName,
        numbers: RangeInclusive<u64>,
    ) -> Result<Vec<VoidedNumber>, StoreError> {
        self.store.voids(series, &numbers)
    }
}

impl fmt::Debug for FleetRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetRecords")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "fleet_records_tests.rs"]
mod tests;
