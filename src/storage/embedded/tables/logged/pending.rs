//! What the log has and readers of the tables do not see yet.
//!
//! A transaction of the engine stays open from one commit of the log to the next, so that a page that many of them change is
//! copied once, and its checksum computed once.

use std::borrow::Cow;
use std::io;
use std::mem;

use redb::{Durability, WriteTransaction};

use super::logged_rows;

/// What the log has and readers do not see, or why there is nothing to be seen any more.
#[derive(Default)]
pub(super) struct Pending {
    rows: Rows,
    failure: Option<(io::ErrorKind, Cow<'static, str>)>,
}

/// Rows of the log.
#[derive(Default)]
struct Rows {
    open: Option<Box<WriteTransaction>>,
    /// How many bytes of the log are in the open transaction.
    taken: usize,
    /// What stands in the log behind these.
    waiting: Vec<u8>,
}

impl Pending {
    /// Adds what the log has from now on.
    pub(super) fn add(&mut self, logged: &[u8]) {
        self.rows.waiting.extend(logged);
    }

    /// A transaction in which all is that the log has. It stays open: nobody else may write meanwhile.
    ///
    /// # Errors
    /// What the tables say, now and from now on: a reader must not be told what was before.
    pub(super) fn take(
        &mut self,
        engine: &redb::Database,
    ) -> Result<&WriteTransaction, redb::Error> {
        self.check()?;
        let Pending { rows, failure } = self;
        rows.take(engine)
            .inspect_err(|error| *failure = Some(kept(error)))
    }

    /// Has readers see all that the log has.
    ///
    /// # Errors
    /// As of [`take`](Self::take).
    pub(super) fn commit(&mut self, engine: &redb::Database) -> Result<(), redb::Error> {
        self.check()?;
        if self.len() == 0 {
            return Ok(());
        }
        let Pending { rows, failure } = self;
        rows.commit(engine)
            .inspect_err(|error| *failure = Some(kept(error)))
    }

    /// The same, and leaves no transaction open.
    ///
    /// # Errors
    /// As of [`take`](Self::take).
    pub(super) fn close(&mut self, engine: &redb::Database) -> Result<(), redb::Error> {
        self.commit(engine)?;
        Ok(self.rows.open.take().map_or(Ok(()), |open| open.abort())?)
    }

    /// How many bytes of the log readers do not see.
    pub(super) fn len(&self) -> usize {
        self.rows.taken + self.rows.waiting.len()
    }

    /// Whether some of these are in no transaction yet.
    pub(super) fn waits(&self) -> bool {
        !self.rows.waiting.is_empty()
    }

    /// Notes that the tables did not take what the log has.
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

/// What is kept of an error, to be told again.
fn kept(error: &redb::Error) -> (io::ErrorKind, Cow<'static, str>) {
    match error {
        redb::Error::Io(cause) => (cause.kind(), cause.to_string().into()),
        redb::Error::Corrupted(text) => (io::ErrorKind::InvalidData, text.clone().into()),
        error => (io::ErrorKind::Other, error.to_string().into()),
    }
}

/// Begins a transaction of the engine.
pub(super) fn begin_write(engine: &redb::Database) -> Result<WriteTransaction, redb::Error> {
    let mut transaction = engine.begin_write()?;
    // A start after a crash must not read the whole database.
    transaction.set_quick_repair(true);
    Ok(transaction)
}

/// Commits what the log has. The engine syncs it with a later commit, or when it is closed.
pub(super) fn commit_unsynced(mut transaction: WriteTransaction) -> Result<(), redb::Error> {
    transaction.set_durability(Durability::None)?;
    Ok(transaction.commit()?)
}
