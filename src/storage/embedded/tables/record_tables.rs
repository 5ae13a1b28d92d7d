//! The records of ids with memory, in two tables of the database.
//!
//! Two tables and nothing beside them, so that nothing can disagree: the head of a ledger is its last row, an idempotency
//! key stands in the row of the append that it came with.

use std::sync::Arc;

use redb::{ReadOnlyTable, ReadableDatabase};

use super::anchor_table::{self, ANCHORS};
use super::append_row;
use super::append_table::{self, APPENDS};
use super::database::{Database, DatabaseError, begin_write};
use crate::conjunction::{Anchor, Pair, Tca};
use crate::ledger::{EventId, EventTime, Head, LedgerId, Link};
use crate::storage::records::{
    AnchorKey, DoneRequest, LedgerSummary, RecordPlan, RecordStore, StoredAppend, WriteError,
};
use crate::storage::store_error::StoreError;

/// The records of one database.
#[derive(Debug)]
pub(crate) struct RecordTables {
    database: Arc<Database>,
}

impl RecordTables {
    /// The records in `database`, with their tables created.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub(crate) fn open(database: Arc<Database>) -> Result<RecordTables, DatabaseError> {
        database.attempt(|engine| {
            let transaction = begin_write(engine)?;
            transaction.open_table(APPENDS)?;
            transaction.open_table(ANCHORS)?;
            Ok(transaction.commit()?)
        })?;
        Ok(RecordTables { database })
    }

    fn read_appends<T>(
        &self,
        read: impl FnOnce(&ReadOnlyTable<append_row::Name, &'static [u8]>) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        Ok(self.database.attempt(|engine| read(&engine.begin_read()?.open_table(APPENDS)?))?)
    }
}

impl RecordStore for RecordTables {
    fn write(&self, plans: &[RecordPlan]) -> Result<(), WriteError> {
        let is_written = self.database.attempt(|engine| {
            let transaction = begin_write(engine)?;
            let is_current = {
                let mut appends = transaction.open_table(APPENDS)?;
                let mut anchors = transaction.open_table(ANCHORS)?;
                all(plans, |plan| match plan {
                    RecordPlan::Append(plan) => append_table::write_append(&mut appends, plan),
                    RecordPlan::Anchor(plan) => anchor_table::write_anchor(&mut anchors, plan),
                })?
            };
            if is_current {
                transaction.commit()?
            } else {
                transaction.abort()?
            }
            Ok(is_current)
        });
        if is_written.map_err(StoreError::from)? { Ok(()) } else { Err(WriteError::Stale) }
    }

    fn head(&self, ledger: LedgerId) -> Result<Option<Head>, StoreError> {
        self.read_appends(|appends| append_table::head_of(appends, ledger))
    }

    fn ledger(&self, ledger: LedgerId) -> Result<Option<LedgerSummary>, StoreError> {
        self.read_appends(|appends| append_table::summary_of(appends, ledger))
    }

    fn ledgers(&self, after: Option<LedgerId>, count_max: usize) -> Result<Vec<LedgerSummary>, StoreError> {
        self.read_appends(|appends| append_table::summaries(appends, after, count_max))
    }

    fn chain(&self, ledger: LedgerId, after: Option<EventId>, count_max: usize) -> Result<Vec<Link>, StoreError> {
        self.read_appends(|appends| append_table::chain_of(appends, ledger, after, count_max))
    }

    fn link(&self, id: EventId) -> Result<Option<Link>, StoreError> {
        self.read_appends(|appends| append_table::link(appends, id))
    }

    fn append(&self, last: EventId) -> Result<Option<(StoredAppend, Vec<Link>)>, StoreError> {
        self.read_appends(|appends| append_table::append(appends, last))
    }

    fn requests_since(&self, since: EventTime, show: &mut dyn FnMut(DoneRequest)) -> Result<(), StoreError> {
        self.read_appends(|appends| append_table::requests_since(appends, since, show))
    }

    fn neighbours(
        &self,
        format: &str,
        times: &mut dyn Iterator<Item = (Pair, Tca)>,
    ) -> Result<Vec<Vec<Anchor>>, StoreError> {
        Ok(self.database.attempt(|engine| {
            let anchors = engine.begin_read()?.open_table(ANCHORS)?;
            times.map(|(pair, tca)| anchor_table::neighbours_of(&anchors, format, pair, tca)).collect()
        })?)
    }

    fn forget_anchors(
        &self,
        from: Option<&AnchorKey>,
        before: Tca,
        count_max: usize,
    ) -> Result<Option<AnchorKey>, StoreError> {
        Ok(self.database.attempt(|engine| {
            let transaction = begin_write(engine)?;
            let (has_changed, next) =
                anchor_table::forget(&mut transaction.open_table(ANCHORS)?, from, before, count_max)?;
            if has_changed {
                transaction.commit()?
            } else {
                transaction.abort()?
            }
            Ok(next)
        })?)
    }

    fn is_usable(&self) -> bool {
        self.database.is_usable()
    }

    fn reopen(&self) -> Result<(), StoreError> {
        Ok(self.database.reopen()?)
    }
}

/// Whether every one is, up to the first that is not.
fn all<T, E>(items: &[T], mut is: impl FnMut(&T) -> Result<bool, E>) -> Result<bool, E> {
    for item in items {
        if !is(item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
#[path = "damage_tests.rs"]
mod damage;
