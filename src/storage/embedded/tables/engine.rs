//! The engine of a database, with the log in front of it: what the log has is durable, and shows in the tables before anybody
//! reads them again.
//!
//! A commit has a number. The tables note the number of the last one that was synced there; all after it stand in the log.

use std::borrow::Cow;
use std::io;
use std::mem;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use redb::{Durability, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use super::logged_rows::{LoggedRows, Written};
use crate::storage::embedded::database_file::{Log, OpenFile};

/// The number of the last commit that was synced in the tables, or a lower one.
pub(super) const COMMITS: TableDefinition<'_, (), u64> = TableDefinition::new("commits");

/// Of a commit with so many bytes in the log, some 90 appends of one event, callers are told before the tables take it, and
/// whoever reads meanwhile waits for about a millisecond. Of a longer one they are told later, and nobody waits.
const SETTLED_LATER_MAX: usize = 16 << 10;

/// The engine, and the log of what it has not synced.
pub(crate) struct Engine {
    /// Closed before the engine is.
    unsettled: Mutex<Unsettled>,
    engine: redb::Database,
    log: Mutex<NumberedLog>,
}

/// What the log has and the tables do not show yet.
enum Unsettled {
    Nothing,
    Commit(Box<WriteTransaction>, Written),
    /// A commit that the tables did not take: they say nothing any more.
    Failed(io::ErrorKind, Cow<'static, str>),
}

impl Unsettled {
    /// What is left when the tables have taken a commit of the log, or have not.
    fn after(taken: &Result<(), redb::Error>) -> Unsettled {
        match taken {
            Ok(()) => Unsettled::Nothing,
            Err(redb::Error::Io(cause)) => Unsettled::Failed(cause.kind(), cause.to_string().into()),
            Err(redb::Error::Corrupted(text)) => Unsettled::Failed(io::ErrorKind::InvalidData, text.clone().into()),
            Err(error) => Unsettled::Failed(io::ErrorKind::Other, error.to_string().into()),
        }
    }
}

struct NumberedLog {
    log: Log,
    /// The number of the last commit.
    last: u64,
    /// The number that the tables note.
    noted: u64,
}

impl Engine {
    /// The engine of a file, with what stands in its log alone. That goes on standing there: syncing the tables may need room,
    /// and a start must not fail because the disk is full.
    pub(super) fn open(file: OpenFile) -> Result<Engine, redb::Error> {
        let OpenFile { engine, mut log } = file;
        let transaction = begin_write(&engine)?;
        let noted = transaction.open_table(COMMITS)?.get(())?.map_or(0, |number| number.value());
        let entries = log.recover(noted)?;
        let last = entries.last().map_or(noted, |entry| entry.number);
        if entries.is_empty() {
            transaction.abort()?;
        } else {
            let mut rows = LoggedRows::of(&transaction);
            entries.iter().try_for_each(|entry| rows.write_again(&entry.content))?;
            let written = rows.written();
            commit_unsynced(transaction, &written)?;
            tracing::info!("{} commits were in the log alone", entries.len());
        }
        let log = Mutex::new(NumberedLog { log, last, noted });
        Ok(Engine { unsettled: Mutex::new(Unsettled::Nothing), engine, log })
    }

    /// Begins to read what is durable.
    pub(super) fn begin_read(&self) -> Result<ReadTransaction, redb::Error> {
        self.settle()?;
        Ok(self.engine.begin_read()?)
    }

    /// Begins to write, on top of what is durable, once nobody else does.
    pub(super) fn begin_write(&self) -> Result<Writing<'_>, redb::Error> {
        let log = self.log();
        // A commit that is not settled is a transaction of the engine, which has one at a time.
        self.settle()?;
        Ok(Writing { engine: self, transaction: begin_write(&self.engine)?, log })
    }

    /// Has the tables take what the log has.
    ///
    /// # Errors
    /// What the tables say, now and from now on: a reader must not be told what was before.
    pub(super) fn settle(&self) -> Result<(), redb::Error> {
        let mut unsettled = self.unsettled();
        if let Unsettled::Nothing = *unsettled {
            return Ok(());
        }
        let panicked = Unsettled::Failed(io::ErrorKind::InvalidData, "its pages make no sense".into());
        let settled = match mem::replace(&mut *unsettled, panicked) {
            Unsettled::Nothing => Ok(()),
            Unsettled::Commit(transaction, written) => commit_unsynced(*transaction, &written),
            Unsettled::Failed(kind, text) => Err(io::Error::new(kind, text).into()),
        };
        *unsettled = Unsettled::after(&settled);
        settled
    }

    fn log(&self) -> MutexGuard<'_, NumberedLog> {
        // Whoever panicked with it has not acknowledged what it wrote.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unsettled(&self) -> MutexGuard<'_, Unsettled> {
        // Whoever panicked with it has left that it failed.
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs the tables, so that a start need not read the log.
    fn close(&self) -> Result<(), redb::Error> {
        let writing = self.begin_write()?;
        if writing.log.noted == writing.log.last { writing.abort() } else { writing.commit() }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Where this fails, the next start reads the log.
        if !thread::panicking() {
            let _ = self.close();
        }
    }
}

/// A transaction that writes, and the log, which belongs to it.
pub(super) struct Writing<'a> {
    engine: &'a Engine,
    transaction: WriteTransaction,
    log: MutexGuard<'a, NumberedLog>,
}

impl<'a> Writing<'a> {
    /// Commits what will survive a crash when this returns, with the tables synced.
    pub(super) fn commit(self) -> Result<(), redb::Error> {
        let last = self.log.last;
        self.sync(last).map(drop)
    }

    /// Commits rows that will survive a crash when this returns. Whoever reads next sees them; where they are few, the tables
    /// take them then, unless they [have](Engine::settle) before.
    pub(super) fn commit_logged(mut self, mut written: Written) -> Result<(), redb::Error> {
        let number = self.log.last + 1;
        if !self.log.log.has_room(written.log.len()) {
            written.write_lookups(&self.transaction)?;
            return Ok(self.sync(number)?.log.restart(number)?);
        }
        let may_wait = written.log.len() <= SETTLED_LATER_MAX;
        self.log.log.append(number, mem::take(&mut written.log))?;
        self.log.last = number;
        if may_wait {
            *self.engine.unsettled() = Unsettled::Commit(Box::new(self.transaction), written);
            return Ok(());
        }
        let taken = commit_unsynced(self.transaction, &written);
        *self.engine.unsettled() = Unsettled::after(&taken);
        taken
    }

    /// Gives up what was written.
    pub(super) fn abort(self) -> Result<(), redb::Error> {
        Ok(self.transaction.abort()?)
    }

    /// Commits the transaction and all before it, synced, and notes the number of the last commit that is in the tables then.
    fn sync(self, number: u64) -> Result<MutexGuard<'a, NumberedLog>, redb::Error> {
        let Writing { transaction, mut log, .. } = self;
        transaction.open_table(COMMITS)?.insert((), number)?;
        transaction.commit()?;
        (log.last, log.noted) = (number, number);
        Ok(log)
    }
}

impl Deref for Writing<'_> {
    type Target = WriteTransaction;

    fn deref(&self) -> &WriteTransaction {
        &self.transaction
    }
}

fn begin_write(engine: &redb::Database) -> Result<WriteTransaction, redb::Error> {
    let mut transaction = engine.begin_write()?;
    // A start after a crash must not read the whole database.
    transaction.set_quick_repair(true);
    Ok(transaction)
}

/// Commits what the log has. The engine syncs it with a later commit, or when it is closed.
fn commit_unsynced(mut transaction: WriteTransaction, written: &Written) -> Result<(), redb::Error> {
    written.write_lookups(&transaction)?;
    transaction.set_durability(Durability::None)?;
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::conjunction::{Pair, ReportTally, Seen, Tca};
    use crate::ledger::AppendPlan;
    use crate::storage::embedded::tables::request_table::REQUESTS;
    use crate::storage::embedded::tables::{Database, RecordTables};
    use crate::storage::failure::FailureKind;
    use crate::storage::records::{AnchorKey, ListRange, RecordPlan, RecordStore};
    use crate::storage::samples::{NOW, anchor, append, create, links, near, plan, write, write_ledger};
    use crate::time::UnixNanos;

    fn in_memory() -> (Arc<Database>, RecordTables) {
        let database = Arc::new(Database::in_memory().expect("memory suffices"));
        (Arc::clone(&database), RecordTables::open(database).expect("it is new"))
    }

    #[test]
    fn what_the_tables_do_not_take_is_no_reason_to_show_what_was_before() {
        let (database, records) = in_memory();
        let plans = write_ledger(&records, "genesis", 10);
        let spoil = |engine: &Engine| {
            let transaction = engine.begin_write()?;
            transaction.delete_table(REQUESTS)?;
            transaction.open_table(TableDefinition::<u32, u32>::new("requests"))?;
            transaction.commit()
        };
        database.attempt(spoil).expect("the database works");
        let next = plan(&append(plans[0].ledger(), &["next"], 30), Some(plans[2].head()), NOW + 3_000_000);
        records.write(&[RecordPlan::Append(next.clone())]).expect("the log has it");
        for _ in 0..3 {
            records.head(next.ledger()).expect_err("the tables have another head than was acknowledged");
            records.settle().expect_err("the tables do not take it");
            records.write(&[anchor(0, 0)]).expect_err("nothing is written on top of it");
        }
        assert_eq!(records.obstacle(), Some(FailureKind::NotUsable), "it must be opened again");
    }

    #[test]
    fn readers_wait_for_a_short_commit_alone() {
        let (database, records) = in_memory();
        let is_unsettled = || {
            let is_unsettled = |engine: &Engine| Ok(matches!(*engine.unsettled(), Unsettled::Commit(..)));
            database.attempt(is_unsettled).expect("the database works")
        };
        let genesis = plan(&create("genesis", 1), None, NOW);
        let mut plans = vec![genesis];
        for (count, waits) in [(1, true), (50, true), (400, false), (1, true)] {
            // The first append of all creates the ledger.
            let first = if plans.len() == 1 { 0 } else { plans.len() };
            for _ in 0..count {
                let key = 1_000 + u128::try_from(plans.len()).expect("small");
                let request = append(plans[0].ledger(), &["next"], key);
                plans.push(plan(&request, plans.last().map(AppendPlan::head), NOW + 1_000_000));
            }
            write(&records, &plans[first..]);
            assert_eq!(is_unsettled(), waits, "{count} appends");
            assert_eq!(records.head(plans[0].ledger()).expect("readable"), plans.last().map(AppendPlan::head));
            assert!(!is_unsettled());
        }
    }

    #[test]
    fn rows_of_the_log_that_the_tables_have_already_stay_as_they_are() {
        let (database, records) = in_memory();
        let plans = write_ledger(&records, "genesis", 10);
        records.write(&[anchor(0, 0), anchor(5_000_000, 0)]).expect("they are far apart");
        let pair = Pair { primary: 1, secondary: 2 };
        let key = AnchorKey { format: "conjunction".to_owned(), pair, tca: Tca(0) };
        let reports = ReportTally::of(Seen { at: UnixNanos::new(7), tca: Tca(9) });
        records.add_reports(&[(key, reports)]).expect("writable");
        // As the engine leaves it that is closed after a panic: synced, and without a note of that.
        let forget_number = |engine: &Engine| {
            let Writing { transaction, mut log, .. } = engine.begin_write()?;
            transaction.open_table(COMMITS)?.insert((), 0)?;
            log.noted = log.last;
            Ok(transaction.commit()?)
        };
        database.attempt(forget_number).expect("the database works");
        let times = Tca(i64::MIN)..=Tca(i64::MAX);
        let all = ListRange { format: "conjunction".to_owned(), times, after: None, latest_first: false };
        for _ in 0..2 {
            database.reopen().expect("every row of the log is there already");
            assert_eq!(records.chain(plans[0].ledger(), None, 99).expect("readable"), links(&plans));
            assert_eq!(near(&records, 0), [(0, 0)]);
            let listed = records.conjunctions(&all, 9).expect("readable");
            assert_eq!(listed.iter().map(|listed| listed.tally).collect::<Vec<_>>(), [Some(reports), None]);
        }
    }
}
