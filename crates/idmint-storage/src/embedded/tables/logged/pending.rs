//! Commits that are in the log, but that readers of the tables cannot see yet.
//!
//! One transaction of the engine stays open across several commits to the log. If many of them
//! change the same page, the page is copied once, and its checksum is computed once.

use std::borrow::Cow;
use std::io;
use std::mem;

use redb::{Durability, WriteTransaction};

use super::logged_rows;

/// The commits in the write-ahead log that readers of the database tables cannot see yet, or the
/// error after which the tables must not be read.
#[derive(Default)]
pub(super) struct Pending {
    rows: Rows,
    failure: Option<(io::ErrorKind, Cow<'static, str>)>,
}

/// The rows in the commit log that readers of the tables cannot see yet.
#[derive(Default)]
struct Rows {
    open: Option<Box<WriteTransaction>>,
    /// The number of bytes that were added from the commit log to the open transaction.
    taken: usize,
    /// The rows in the log that still have to be added to the open transaction.
    waiting: Vec<u8>,
}

impl Pending {
    /// Adds rows that were appended to the commit log, so that the next reader of the tables sees
    /// these rows.
    pub(super) fn add(&mut self, logged: &[u8]) {
        self.rows.waiting.extend(logged);
    }

    /// Returns an open transaction that contains all rows in the log. The transaction stays open,
    /// and no other write transaction may begin in the meantime.
    ///
    /// # Errors
    /// Returns the error that the tables reported. Later calls return this error as well, because a
    /// reader must not see the data without the commits in the log.
    pub(super) fn take(
        &mut self,
        engine: &redb::Database,
    ) -> Result<&WriteTransaction, redb::Error> {
        self.check()?;
        let Pending { rows, failure } = self;
        rows.take(engine)
            .inspect_err(|error| *failure = Some(kept(error)))
    }

    /// Commits the open transaction and the rows that wait in the log, so that readers see them.
    ///
    /// # Errors
    /// Returns the errors of [`take`](Self::take).
    pub(super) fn commit(&mut self, engine: &redb::Database) -> Result<(), redb::Error> {
        self.check()?;
        if self.len() == 0 {
            return Ok(());
        }
        let Pending { rows, failure } = self;
        rows.commit(engine)
            .inspect_err(|error| *failure = Some(kept(error)))
    }

    /// Commits the open transaction of the engine, with all rows of the log, so that readers of the
    /// tables see these rows. Leaves no transaction open.
    ///
    /// # Errors
    /// Returns the errors of [`take`](Self::take).
    pub(super) fn close(&mut self, engine: &redb::Database) -> Result<(), redb::Error> {
        self.commit(engine)?;
        Ok(self.rows.open.take().map_or(Ok(()), |open| open.abort())?)
    }

    /// Returns the number of bytes in the log that readers cannot see yet.
    pub(super) fn len(&self) -> usize {
        self.rows.taken + self.rows.waiting.len()
    }

    /// `true` if some rows in the log still have to be added to the open transaction.
    pub(super) fn waits(&self) -> bool {
        !self.rows.waiting.is_empty()
    }

    /// Records that a commit is in the log but could not be added to the tables. All later reads
    /// fail.
    pub(super) fn fail(&mut self, error: &redb::Error) {
        self.failure = Some(kept(error));
    }

    fn check(&self) -> Result<(), redb::Error> {
        self.failure.as_ref().map_or(Ok(()), |(kind, text)| {
            Err(io::Error::new(*kind, text.clone()).into())
        })
    }
}

impl Rows {
    fn take(&mut self, engine: &redb::Database) -> Result<&WriteTransaction, redb::Error> {
        let open = match self.open.take() {
            Some(open) => open,
            None => Box::new(begin_write(engine)?),
        };
        logged_rows::write(&open, &self.waiting)?;
        self.taken += self.waiting.len();
        self.waiting.clear();
        Ok(self.open.insert(open))
    }

    fn commit(&mut self, engine: &redb::Database) -> Result<(), redb::Error> {
        self.take(engine)?;
        mem::take(self)
            .open
            .map_or(Ok(()), |open| commit_unsynced(*open))
    }
}

/// Returns the kind and text of an error that cannot be cloned, for the I/O errors of later calls.
fn kept(error: &redb::Error) -> (io::ErrorKind, Cow<'static, str>) {
    match error {
        redb::Error::Io(cause) => (cause.kind(), cause.to_string().into()),
        redb::Error::Corrupted(text) => (io::ErrorKind::InvalidData, text.clone().into()),
        error => (io::ErrorKind::Other, error.to_string().into()),
    }
}

/// Begins a write transaction of the engine.
pub(super) fn begin_write(engine: &redb::Database) -> Result<WriteTransaction, redb::Error> {
    let mut transaction = engine.begin_write()?;
    // With quick repair, a start after a crash need not read the whole database.
    transaction.set_quick_repair(true);
    Ok(transaction)
}

/// Commits a transaction without a sync. A crash loses no row, because the rows are also in the
/// log. The engine syncs the transaction with a later commit, or when the database is closed.
pub(super) fn commit_unsynced(mut transaction: WriteTransaction) -> Result<(), redb::Error> {
    transaction.set_durability(Durability::None)?;
    Ok(transaction.commit()?)
}
