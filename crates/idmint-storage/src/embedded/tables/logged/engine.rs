//! The engine of a database, with a log in front of it. A commit is durable once it is in the log.
//! The commit is added to the engine's tables before the next read.
//!
//! Commits are numbered. The tables store the number of the last commit that was synced in them.
//! All later commits are in the log.

use std::io;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use redb::backends::InMemoryBackend;
use redb::{
    MultimapTableHandle, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition,
    TableHandle, WriteTransaction,
};

use super::logged_rows;
use super::pending::{Pending, begin_write, commit_unsynced};
use crate::embedded::database_file::{CommitLog, HaltingFile, OpenFile, OtherLayout};
use crate::embedded::horizon::CommitMark;

/// The table with a single row: the number of a commit. This commit and all earlier ones are synced
/// in the tables, and later commits may be synced, too.
const COMMITS: TableDefinition<'_, (), u64> = TableDefinition::new("commits");

/// The names of all tables that this version or an earlier one of the program writes.
const TABLES: [&str; 14] = [
    "anchors",
    "anchors-by-external",
    "anchors-by-time",
    "appends",
    "commits",
    "externals",
    "kept",
    "number-closed",
    "number-forms",
    "number-holds",
    "number-keys",
    "number-voids",
    "numbers",
    "requests",
];

/// The maximum size in bytes of a commit that is acknowledged before it is in the tables, enough
/// for about 90 appends of one event each. A longer commit is acknowledged only once it is in the
/// tables. Otherwise, the next reader would have to wait until all of its rows are added.
const TAKEN_LATER_MAX: usize = 16 << 10;

/// The maximum number of bytes from the log in the open transaction, which readers cannot see yet.
/// A larger transaction is committed before a reader needs it, because the reader would have to
/// wait for a long commit. Committing this many bytes takes about a millisecond.
const OPEN_MAX: usize = 64 << 10;

/// The database engine, with a log of the commits that it has not synced yet.
pub(crate) struct Engine {
    /// The commits in the log that readers of the tables cannot see yet. This field is declared
    /// first, so that its open transaction is dropped before the engine.
    pending: Mutex<Pending>,
    engine: redb::Database,
    /// The log, and the numbers of its commits. A thread that needs both locks must lock `log`
    /// before `pending`.
    log: Mutex<NumberedLog>,
    /// The file, or `None` for a database in memory.
    file: Option<Arc<HaltingFile>>,
}

struct NumberedLog {
    /// The log, or `None` for a database in memory, where commits need not survive the process.
    log: Option<CommitLog>,
    /// The number of the last commit, stored outside the database and raised between the sync and
    /// acknowledgement of a commit. If the last commit in the database has a lower number at a
    /// start, commits were lost.
    mark: Arc<CommitMark>,
    /// The number of the last commit, which may be only in the log and not in the tables yet.
    last: u64,
    /// The commit number that the table `COMMITS` stores.
    noted: u64,
}

/// The error of a file that lacks acknowledged commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("ends with commit {last}, but commit {acknowledged} was acknowledged")]
pub(crate) struct LostEnd {
    last: u64,
    acknowledged: u64,
}

impl Engine {
    /// Opens the engine of a file, and adds the commits that are only in the log to the tables. The
    /// commits also stay in the log, because syncing the tables may need space, and a full disk
    /// must not make a start fail.
    ///
    /// # Errors
    /// Returns [`LostEnd`] if acknowledged commits are missing. In that case, no row was written.
    /// Returns any other error of the engine or the disk.
    pub(in crate::embedded::tables) fn open(
        file: OpenFile,
        mark: Arc<CommitMark>,
    ) -> Result<Engine, redb::Error> {
        let OpenFile {
            engine,
            mut log,
            file,
        } = file;
        let transaction = begin_write(&engine)?;
        check_tables(&transaction)?;
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
            tracing::info!(
                "applied {} commits of the log to the database, because the last run did not end \
                 cleanly",
                entries.len()
            );
        }
        let log = Mutex::new(NumberedLog {
            log: Some(log),
            mark,
            last,
            noted,
        });
        Ok(Engine {
            pending: Mutex::default(),
            engine,
            log,
            file: Some(file),
        })
    }

    /// Creates an engine in memory. Its data is lost when the value is dropped.
    pub(in crate::embedded::tables) fn in_memory(
        builder: &redb::Builder,
    ) -> Result<Engine, redb::Error> {
        let log = NumberedLog {
            log: None,
            mark: Arc::default(),
            last: 0,
            noted: 0,
        };
        Ok(Engine {
            pending: Mutex::default(),
            engine: builder.create_with_backend(InMemoryBackend::new())?,
            log: Mutex::new(log),
            file: None,
        })
    }

    /// Returns the cause of `error`. After a disk error, the engine reports only that an earlier
    /// operation has failed. In that case, this method returns the error of the earlier operation.
    pub(in crate::embedded::tables) fn cause_of(&self, error: redb::Error) -> redb::Error {
        let first = self.file.as_ref().map(|file| file.check());
        match (error, first) {
            (redb::Error::PreviousIo, Some(Err(first))) => first.into(),
            (error, _) => error,
        }
    }

    /// Returns the number of the last durable commit.
    pub(in crate::embedded::tables) fn last_commit(&self) -> Result<u64, redb::Error> {
        Ok(self.log()?.last)
    }

    /// Begins a transaction that reads all durable data.
    pub(in crate::embedded::tables) fn begin_read(&self) -> Result<ReadTransaction, redb::Error> {
        self.pending()?.commit(&self.engine)?;
        Ok(self.engine.begin_read()?)
    }

    /// Reads durable data in the write transaction that is kept open for the next write. Other
    /// readers and writers have to wait, so the read must be short.
    pub(in crate::embedded::tables) fn look<T>(
        &self,
        look: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, redb::Error> {
        // Hold the lock of the log, so that no other thread begins a write transaction during the
        // read.
        let _log = self.log()?;
        look(self.pending()?.take(&self.engine)?)
    }

    /// Waits until no other thread is writing, and then begins a write transaction. The transaction
    /// sees all durable data.
    pub(in crate::embedded::tables) fn begin_write(&self) -> Result<Writing<'_>, redb::Error> {
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

    /// Calls `may_write` with a transaction that sees all durable data. If `may_write` returns
    /// `true`, commits `rows`, which are encoded as in [`logged_rows`]. Returns the result of
    /// `may_write`. Committed rows survive a crash, and the next reader sees them.
    pub(in crate::embedded::tables) fn commit_logged(
        &self,
        rows: &[u8],
        may_write: impl FnOnce(&WriteTransaction) -> Result<bool, redb::Error>,
    ) -> Result<bool, redb::Error> {
        let mut log = self.log()?;
        if rows.len() > TAKEN_LATER_MAX || !log.has_room(rows.len()) {
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

    /// Changes the tables through `change`, and then commits the change together with `rows`, which
    /// are encoded as in [`logged_rows`]. If `change` returns `false`, neither is committed. The
    /// commit is not added to the log, because the log can contain only new rows. When this method
    /// returns, the tables are synced and the log is empty.
    pub(in crate::embedded::tables) fn commit_synced(
        &self,
        rows: &[u8],
        change: impl FnOnce(&WriteTransaction) -> Result<bool, redb::Error>,
    ) -> Result<bool, redb::Error> {
        let writing = self.begin_write()?;
        if !change(&writing)? {
            writing.abort()?;
            return Ok(false);
        }
        logged_rows::write(&writing, rows)?;
        let number = writing.log.last + 1;
        writing.sync(number)?.restart()?;
        Ok(true)
    }

    /// Adds the pending commits, which are only in the log, to the open transaction of the tables,
    /// and commits that transaction if it is large. The pending commits were already acknowledged.
    ///
    /// # Errors
    /// Returns the error that the tables reported. Later calls return this error as well, because a
    /// reader must not see the data without the commits in the log.
    pub(in crate::embedded::tables) fn apply_pending(&self) -> Result<(), redb::Error> {
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

    /// Checks that the disk has room for the next commits to the log and for a sync of the tables.
    pub(in crate::embedded::tables) fn check_room(&self) -> Result<(), redb::Error> {
        let mut writing = self.begin_write()?;
        if let Some(log) = &mut writing.log.log {
            log.fill_ahead()?;
        }
        writing.commit()
    }

    /// Locks the log. Returns an error if a thread has panicked while it held the lock. The log may
    /// then contain a commit that the tables lack, and no commit may be written after it.
    fn log(&self) -> Result<MutexGuard<'_, NumberedLog>, redb::Error> {
        Ok(self.log.lock().map_err(panicked)?)
    }

    /// Locks the pending commits. Returns an error if a thread has panicked while it held the lock.
    /// The tables may then lack acknowledged commits, and must not be read.
    fn pending(&self) -> Result<MutexGuard<'_, Pending>, redb::Error> {
        Ok(self.pending.lock().map_err(panicked)?)
    }

    /// Syncs the tables, so that the next start need not apply the log.
    fn close(&self) -> Result<(), redb::Error> {
        let writing = self.begin_write()?;
        if writing.log.noted == writing.log.last {
            writing.abort()
        } else {
            writing.commit()
        }
    }
}

/// Checks that the database has no unknown table. A later version of this program has added such a
/// table, and this program would ignore its content.
fn check_tables(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    let multimaps = transaction.list_multimap_tables()?;
    let multimaps = multimaps.map(|table| table.name().to_owned());
    let tables = transaction.list_tables()?;
    let mut all = tables.map(|table| table.name().to_owned()).chain(multimaps);
    match all.find(|name| !TABLES.contains(&name.as_str())) {
        Some(name) => Err(OtherLayout::LaterContent(format!(
            "the database has the unknown table {name:?}"
        ))
        .into()),
        None => Ok(()),
    }
}

fn panicked<T>(_: PoisonError<T>) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the pages of the database are inconsistent; restart the node",
    )
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Ignore a failed sync, because the next start adds the commits in the log to the tables
        // again.
        if !thread::panicking() {
            let _ = self.close();
        }
    }
}

impl NumberedLog {
    /// `true` if the log has room for a commit of `len` bytes. Otherwise, the tables must be synced
    /// first.
    fn has_room(&self, len: usize) -> bool {
        self.log.as_ref().is_some_and(|log| log.has_room(len))
    }

    /// Empties the log. All of its commits must be in the tables and synced to disk.
    fn restart(&mut self) -> Result<(), redb::Error> {
        let last = self.last;
        Ok(self.log.as_mut().map_or(Ok(()), |log| log.restart(last))?)
    }

    /// Appends a commit to the log. The commit survives a crash once this method returns.
    fn append(&mut self, rows: &[u8]) -> Result<(), redb::Error> {
        let number = self.last + 1;
        if let Some(log) = &mut self.log {
            log.append(number, rows)?;
        }
        self.last = number;
        self.mark.raise(number);
        Ok(())
    }
}

/// A write transaction that also holds the lock on the log.
pub(in crate::embedded::tables) struct Writing<'a> {
    engine: &'a Engine,
    transaction: WriteTransaction,
    log: MutexGuard<'a, NumberedLog>,
}

impl<'a> Writing<'a> {
    /// Commits the transaction and syncs the tables. The changes survive a crash once this method
    /// returns.
    pub(in crate::embedded::tables) fn commit(self) -> Result<(), redb::Error> {
        let last = self.log.last;
        self.commit_as(last)
    }

    /// Commits the transaction and syncs the tables, like [`commit`](Self::commit). Stores `number`
    /// as the number of the last commit.
    pub(in crate::embedded::tables) fn commit_as(self, number: u64) -> Result<(), redb::Error> {
        self.sync(number).map(drop)
    }

    /// Commits `rows` to the log. The rows survive a crash once this method returns. If the log has
    /// no room for them, the tables are synced instead.
    fn commit_logged(mut self, rows: &[u8]) -> Result<(), redb::Error> {
        logged_rows::write(&self.transaction, rows)?;
        if !self.log.has_room(rows.len()) {
            let number = self.log.last + 1;
            return self.sync(number)?.restart();
        }
        self.log.append(rows)?;
        commit_unsynced(self.transaction).inspect_err(|error| {
            // The commit is in the log, but not in the tables. All later reads must return this
            // error, because they would miss the commit.
            if let Ok(mut pending) = self.engine.pending() {
                pending.fail(error);
            }
        })
    }

    /// Aborts the transaction and discards its changes.
    pub(in crate::embedded::tables) fn abort(self) -> Result<(), redb::Error> {
        Ok(self.transaction.abort()?)
    }

    /// Commits this transaction and all earlier transactions with a sync. Also stores `number` in
    /// the tables, as the number of the last commit.
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
