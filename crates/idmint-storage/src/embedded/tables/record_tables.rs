//! The tables of the records: appends of events to ledgers, anchors and numbers. Other tables are
//! indexes, such as those of requests and of anchors by time.
//!
//! Decisions are based on the tables of appends, anchors and numbers. The indexes only help to find
//! rows in these tables. The last row of a ledger has its last event, and the row of an append
//! contains the idempotency key of its request. The table of requests only locates the row of a
//! key. The response to a repeated request is read from that row, which must contain the same key.

use std::path::Path;
use std::sync::Arc;

use redb::{ReadTransaction, TableHandle, WriteTransaction};

use super::anchor_table::ANCHORS;
use super::append_table::APPENDS;
use super::backup;
use super::database::{Database, DatabaseError};
use super::external_table::{BY_EXTERNAL, EXTERNALS};
use super::form_table;
use super::hold_table;
use super::logged::{self, Engine};
use super::number_tables::{self, NUMBER_KEYS, NUMBERS, VOIDS};
use super::register_table::REGISTER;
use super::request_table::REQUESTS;
use crate::embedded::database_file::OtherLayout;
use crate::failure::{FailureKind, Obstacle, StoreError};
use crate::records::{BackedUp, RecordPlan, RecordStore, WriteError};

/// The records of one database.
#[derive(Debug)]
pub(crate) struct RecordTables {
    pub(super) database: Arc<Database>,
    /// `true` if a hold was in force when the tables were opened. A hold stops series from issuing
    /// numbers after a restore.
    pub(in crate::embedded) may_hold: bool,
}

impl RecordTables {
    /// Opens the records in `database`. If the tables of records do not exist, creates them. An
    /// earlier start may have failed to create them because the disk was full.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the database cannot be read or written.
    pub(crate) fn open(database: Arc<Database>) -> Result<RecordTables, DatabaseError> {
        database.attempt(make_tables)?;
        let may_hold = database.attempt(|engine| hold_table::may_hold(&engine.begin_read()?))?;
        Ok(RecordTables { database, may_hold })
    }

    /// Reads durable data in a new read transaction.
    pub(super) fn read<T>(
        &self,
        read: impl Fn(&ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        Ok(self
            .database
            .attempt_read(|engine| read(&engine.begin_read()?))?)
    }

    /// Reads durable data in the write transaction that the engine keeps open for the next write,
    /// and does not commit it. Other readers and writers have to wait.
    pub(super) fn look<T>(
        &self,
        look: impl Fn(&WriteTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        Ok(self.database.attempt_read(|engine| engine.look(&look))?)
    }

    /// Changes tables with the function `change`, in one transaction. The change is durable when
    /// this method returns.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        Ok(self.database.attempt_write(|engine| {
            let transaction = engine.begin_write()?;
            let changed = change(&transaction)?;
            transaction.commit()?;
            Ok(changed)
        })?)
    }
}

impl RecordStore for RecordTables {
    fn write(&self, plans: &[RecordPlan]) -> Result<(), WriteError> {
        if plans.is_empty() {
            return Ok(());
        }
        let forms = match plans.iter().any(RecordPlan::has_form) {
            true => self
                .look(|transaction| form_table::changes_of(transaction, plans))
                .map_err(WriteError::NotWritten)?,
            false => Vec::new(),
        };
        let rows = logged::bytes_of(plans, &forms);
        let replaced: Vec<_> = plans.iter().filter_map(RecordPlan::replaces).collect();
        let is_written = self.database.attempt_write(|engine| {
            let all_hold = |transaction: &_| {
                Ok(logged::all_hold(transaction, plans)?
                    && form_table::changes_of(transaction, plans)? == forms)
            };
            if replaced.is_empty() {
                return engine.commit_logged(&rows, all_hold);
            }
            engine.commit_synced(&rows, |transaction| {
                let may_write = all_hold(transaction)?;
                if may_write {
                    number_tables::remove(transaction, &replaced)?;
                    form_table::remove(transaction, &replaced)?;
                }
                Ok(may_write)
            })
        });
        if is_written.map_err(StoreError::from)? {
            Ok(())
        } else {
            Err(WriteError::Stale)
        }
    }

    fn apply_pending(&self) -> Result<(), StoreError> {
        Ok(self.database.attempt(Engine::apply_pending)?)
    }

    fn back_up(&self, folder: &Path) -> Result<BackedUp, StoreError> {
        if self.database.is_in_memory() {
            let advice = "the memory engine stores nothing to back up";
            return Err(StoreError::new(FailureKind::NotUsable, advice));
        }
        Ok(backup::copy(&self.database, folder)?)
    }

    fn obstacle(&self) -> Option<Obstacle> {
        self.database.obstacle().map(Obstacle::of_kind)
    }

    fn reopen(&self) -> Result<(), StoreError> {
        Ok(self.database.reopen()?)
    }

    fn holds_numbers(&self) -> bool {
        self.may_hold && self.read(hold_table::may_hold).unwrap_or(true)
    }
}

/// Creates the tables in a new database. A database of an earlier version may lack the tables of
/// numbers. They are created when the first row is written to them.
fn make_tables(engine: &Engine) -> Result<(), redb::Error> {
    let there: Vec<String> = engine
        .begin_read()?
        .list_tables()?
        .map(|table| table.name().to_owned())
        .collect();
    let is_there = |name: &&str| there.iter().any(|there| there == name);
    match [
        APPENDS.name(),
        REQUESTS.name(),
        ANCHORS.name(),
        REGISTER.name(),
    ]
    .iter()
    .filter(|name| is_there(name))
    .count()
    {
        4 => return Ok(()),
        0 => {}
        _ => return Err(OtherLayout::Earlier.into()),
    }
    let transaction = engine.begin_write()?;
    transaction.open_table(APPENDS)?;
    transaction.open_table(REQUESTS)?;
    transaction.open_table(ANCHORS)?;
    transaction.open_table(REGISTER)?;
    transaction.open_table(EXTERNALS)?;
    transaction.open_table(BY_EXTERNAL)?;
    transaction.open_table(NUMBERS)?;
    transaction.open_table(NUMBER_KEYS)?;
    transaction.open_table(VOIDS)?;
    transaction.commit()
}

#[cfg(test)]
#[path = "damage_tests.rs"]
mod damage;
