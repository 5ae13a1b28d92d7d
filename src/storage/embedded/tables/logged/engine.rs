//! The engine of a database, with the log in front of it: what the log has is durable, and shows in the tables before anybody
//! reads them again.
//!
//! A commit has a number. The tables note the number of the last one that was synced there; all after it stand in the log.

use std::io;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use redb::{ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use super::logged_rows;
use super::pending::{Pending, begin_write, commit_unsynced};
use crate::storage::embedded::database_file::{CommitLog, OpenFile};
use crate::storage::embedded::horizon::CommitMark;

/// The number of the last commit that was synced in the tables, or a lower one.
pub(in crate::storage::embedded::tables) const COMMITS: TableDefinition<'_, (), u64> =
    TableDefinition::new("commits");

/// Of a commit with so many bytes in the log, some 90 appends of one event, callers are told before the tables take it. Of a
/// longer one they are told later: a reader meanwhile would wait for it.
const TAKEN_LATER_MAX: usize = 16 << 10;

/// Once so many bytes of the log are in a transaction it is committed, though nobody reads: a reader waits for it, which
/// is about a millisecond.
const OPEN_MAX: usize = 64 << 10;

/// The engine, and the log of what it has not synced.
pub(crate) struct Engine {
    /// Closed before the engine is.
    pending: Mutex<Pending>,
    engine: redb::Database,
    /// Locked before what is pending, where both are.
    log: Mutex<NumberedLog>,
}

struct NumberedLog {
    log: CommitLog,
    /// Raised once a commit is synced, before anybody is told of it.
    mark: Arc<CommitMark>,
    /// The number of the last commit.
    last: u64,
    /// The number that the tables note.
    noted: u64,
}

/// Commits that callers were told of, and that a file does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("ends with commit {last}, and commit {acknowledged} was acknowledged")]
pub(crate) struct LostEnd {
    last: u64,
    acknowledged: u64,
}

impl Engine {
    /// The engine of a file, with what stands in its log alone. That goes on standing there: syncing the tables may need room,
    /// and a start must not fail because the disk is full.
    ///
    /// # Errors
    /// [`LostEnd`], with nothing written; what the engine or the disk says.
    pub(in crate::storage::embedded::tables) fn open(
        file: OpenFile,
        mark: Arc<CommitMark>,
    ) -> Result<Engine, redb::Error> {
        let OpenFile { engine, mut log } = file;
        let transaction = begin_write(&engine)?;
        let noted = transaction
            .open_table(COMMITS)?
            .get(())?
            .map_or(0, |number| number.value());
        let acknowledged = mark.number();
        let entries = log.recover(noted, |last| match last < acknowledged {
            true => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                LostEnd { last, acknowledged },
            )),
            false => Ok(()),
        })?;
        let last = entries.last().map_or(noted, |entry| entry.number);
        mark.raise(last);
        if entries.is_empty() {
            transaction.abort()?;
        } else {
            entries
                .iter()
                .try_for_each(|entry| logged_rows::write(&transaction, &entry.content))?;
            commit_unsynced(transaction)?;
            tracing::info!("{} commits were in the log alone", entries.len());
        }
        let log = Mutex::new(NumberedLog {
            log,
            mark,
            last,
            noted,
        });
        Ok(Engine {
            pending: Mutex::default(),
            engine,
            log,
        })
    }

    /// The number of the last commit that is durable.
    pub(in crate::storage::embedded::tables) fn last_commit(&self) -> Result<u64, redb::Error> {
        Ok(self.log()?.last)
    }

    /// Begins to read what is durable.
    pub(in crate::storage::embedded::tables) fn begin_read(
        &self,
    ) -> Result<ReadTransaction, redb::Error> {
        self.pending()?.commit(&self.engine)?;
        Ok(self.engine.begin_read()?)
    }

    /// Looks at what is durable, on behalf of what will be written next. Readers and writers wait for that: it is short.
    pub(in crate::storage::embedded::tables) fn look<T>(
        &self,
        look: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, redb::Error> {
        // Nobody is writing in a transaction of his own.
        let _log = self.log()?;
        look(self.pending()?.take(&self.engine)?)
    }

    /// Begins to write, on top of what is durable, once nobody else does.
    pub(in crate::storage::embedded::tables) fn begin_write(
        &self,
    ) -> Result<Writing<'_>, redb::Error> {
        self.begin_write_with(self.log()?)
    }

    fn begin_write_with<'a>(
        &'a self,
        log: MutexGuard<'a, NumberedLog>,
    ) -> Result<Writing<'a>, redb::Error> {
        self.pending()?.close(&self.engine)?;
        Ok(Writing {
            engine: self,
            transaction: begin_write(&self.engine)?,
            log,
        })
    }

    /// Commits [rows](logged_rows) if they may be written on top of what is durable, and returns whether they may. They will
    /// then survive a crash, and the next reader sees them.
    pub(in crate::storage::embedded::tables) fn commit_logged(
        &self,
        rows: &[u8],
        may_write: impl FnOnce(&WriteTransaction) -> Result<bool, redb::Error>,
    ) -> Result<bool, redb::Error> {
        let mut log = self.log()?;
        if rows.len() > TAKEN_LATER_MAX || !log.log.has_room(rows.len()) {
            let writing = self.begin_write_with(log)?;
            let may_write = may_write(&writing)?;
            if may_write {
                writing.commit_logged(rows)?
            } else {
                writing.abort()?
            }
            return Ok(may_write);
        }
        if !may_write(self.pending()?.take(&self.engine)?)? {
            return Ok(false);
        }
        log.append(rows)?;
        self.pending()?.add(rows);
        Ok(true)
    }

    /// Has the tables take what was committed, while callers read that it was.
    ///
    /// # Errors
    /// What the tables say, now and from now on: a reader must not be told what was before.
    pub(in crate::storage::embedded::tables) fn apply_pending(&self) -> Result<(), redb::Error> {
        let mut pending = self.pending()?;
        if pending.waits() {
            pending.take(&self.engine)?;
        }
        if pending.len() >= OPEN_MAX {
            pending.commit(&self.engine)
        } else {
            Ok(())
        }
    }

    /// A thread that panicked with it may have left a commit in the log that the tables do not have: nothing is written on top of it.
    fn log(&self) -> Result<MutexGuard<'_, NumberedLog>, redb::Error> {
        Ok(self.log.lock().map_err(panicked)?)
    }

    /// A thread that panicked with it may have left the tables without what callers were told of: nothing is read from them.
    fn pending(&self) -> Result<MutexGuard<'_, Pending>, redb::Error> {
        Ok(self.pending.lock().map_err(panicked)?)
    }

    /// Syncs the tables, so that a start need not read the log.
    fn close(&self) -> Result<(), redb::Error> {
        let writing = self.begin_write()?;
        if writing.log.noted == writing.log.last {
            writing.abort()
        } else {
            writing.commit()
        }
    }
}

fn panicked<T>(_: PoisonError<T>) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "its pages make no sense, open it again",
    )
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Where this fails, the next start reads the log.
        if !thread::panicking() {
            let _ = self.close();
        }
    }
}

impl NumberedLog {
    /// Adds a commit, which will survive a crash when this returns.
    fn append(&mut self, rows: &[u8]) -> Result<(), redb::Error> {
        let number = self.last + 1;
        self.log.append(number, rows)?;
        self.last = number;
        self.mark.raise(number);
        Ok(())
    }
}

/// A transaction that writes, and the log, which belongs to it.
pub(in crate::storage::embedded::tables) struct Writing<'a> {
    engine: &'a Engine,
    transaction: WriteTransaction,
    log: MutexGuard<'a, NumberedLog>,
}

impl<'a> Writing<'a> {
    /// Commits what will survive a crash when this returns, with the tables synced.
    pub(in crate::storage::embedded::tables) fn commit(self) -> Result<(), redb::Error> {
        let last = self.log.last;
        self.sync(last).map(drop)
    }

    /// Commits rows that will survive a crash when this returns, with the tables synced if the log has no room for them.
    fn commit_logged(mut self, rows: &[u8]) -> Result<(), redb::Error> {
        logged_rows::write(&self.transaction, rows)?;
        if !self.log.log.has_room(rows.len()) {
            let number = self.log.last + 1;
            return Ok(self.sync(number)?.log.restart(number)?);
        }
        self.log.append(rows)?;
        commit_unsynced(self.transaction).inspect_err(|error| {
            // What the log has is told again.
            if let Ok(mut pending) = self.engine.pending() {
                pending.fail(error);
            }
        })
    }

    /// Gives up what was written.
    pub(in crate::storage::embedded::tables) fn abort(self) -> Result<(), redb::Error> {
        Ok(self.transaction.abort()?)
    }

    /// Commits the transaction and all before it, synced, and notes the number of the last commit that is in the tables then.
    fn sync(self, number: u64) -> Result<MutexGuard<'a, NumberedLog>, redb::Error> {
        let Writing {
            transaction,
            mut log,
            ..
        } = self;
        transaction.open_table(COMMITS)?.insert((), number)?;
        transaction.commit()?;
        (log.last, log.noted) = (number, number);
        log.mark.raise(number);
        Ok(log)
    }
}

impl Deref for Writing<'_> {
    type Target = WriteTransaction;

    fn deref(&self) -> &WriteTransaction {
        &self.transaction
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
