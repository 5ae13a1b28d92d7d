//! The engine of a database, with the log in front of it.

use std::ops;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::storage::embedded::database_file::{Log, OpenFile};

/// The engine, and the log of what it has not synced.
pub(crate) struct Engine {
    engine: redb::Database,
    log: Mutex<Log>,
}

impl Engine {
    /// The engine of a file, without what stands in its log alone.
    pub(super) fn new(file: OpenFile) -> Engine {
        Engine { engine: file.engine, log: Mutex::new(file.log) }
    }

    /// Begins to write; what is written will survive a crash once it is committed.
    pub(super) fn begin_write(&self) -> Result<redb::WriteTransaction, redb::Error> {
        let mut transaction = self.engine.begin_write()?;
        // A start after a crash must not read the whole database.
        transaction.set_quick_repair(true);
        Ok(transaction)
    }

    /// The log. Whoever writes there has begun a transaction, of which there is one at a time.
    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        // Whoever panicked with it has not acknowledged what it wrote.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ops::Deref for Engine {
    type Target = redb::Database;

    fn deref(&self) -> &redb::Database {
        &self.engine
    }
}
