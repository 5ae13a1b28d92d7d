//! The transactional database of a node. A damaged database file causes an error and never a panic.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::{fmt, io};

use redb::{Key, ReadOnlyTable, ReadTransaction, TableDefinition, TableError, Value};

use super::logged::{Engine, LostEnd};
#[cfg(any(test, feature = "testing"))]
use crate::embedded::block_file::BlockFile;
use crate::embedded::data_dir::DataDir;
use crate::embedded::database_file::{self, OtherLayout};
use crate::embedded::file_place::{Displaced, FilePlace};
use crate::embedded::file_system::{FILE_MODE, MachineFiles, rename_durably};
use crate::embedded::horizon::CommitMark;
use crate::embedded::overlay_file::OverlayFile;
use crate::failure::{FailureKind, StoreError};

/// The cache size of the engine: 32 MiB.
const CACHE_BYTES: usize = 32 << 20;

/// The length of the commit log in blocks of 4 KiB. About 12 000 appends of one event fit into its
/// 2 MiB if they share commits, because a commit takes at least one block. A start after a crash
/// writes the commits in the log again, so a longer log would make such a start slower.
pub(in crate::embedded) const LOG_LEN: u32 = 512;

/// The error of a database that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    /// The database file is damaged and was not repaired. The operator must restore a good copy,
    /// and leave the horizon file next to it as it is.
    #[error(
        "the database {} is damaged ({what}); restore a good copy, and leave the horizon beside it as it is", .path.display()
    )]
    Damaged {
        /// The path of the database file.
        path: PathBuf,
        /// A description of the damage.
        what: String,
    },
    /// The database file is intact, but this program cannot read it because another version wrote
    /// it. No record was changed.
    #[error("the database {} {layout}; never delete this folder: it is the record that keeps ids unique", .path.display())]
    OtherLayout {
        /// The path of the database file.
        path: PathBuf,
        /// The layout of the file.
        layout: OtherLayout,
    },
    /// The database file is intact, but it lacks commits that were already acknowledged to callers.
    /// The file was not changed.
    #[error(
        "the database {} {lost}: it is an older copy, or its end was lost; restore the newest copy; if there is none, \
         those commits are lost: start with --floor and an instant at or above which no id was ever issued",
        .path.display()
    )]
    EndLost {
        /// The path of the database file.
        path: PathBuf,
        /// The last commit in the file, and the last acknowledged commit.
        lost: LostEnd,
    },
    /// Another program has the file open.
    #[error("the database {} is open in another program; stop that program", .path.display())]
    InUse {
        /// The path of the database file.
        path: PathBuf,
    },
    /// The database file was removed or replaced while it was open, so the next start would not
    /// find later writes.
    #[error(transparent)]
    Displaced(#[from] Displaced),
    /// The disk refused an operation on the database. An interrupted write is stored either
    /// completely or not at all.
    #[error("cannot read or write the database {}; check the disk, start again", .path.display())]
    NotUsable {
        /// The path of the database file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
}

impl DatabaseError {
    /// Returns the kind of failure, which determines the operator's next step.
    pub(crate) fn failure_kind(&self) -> FailureKind {
        match self {
            Self::Damaged { .. } | Self::EndLost { .. } | Self::Displaced(_) => {
                FailureKind::Damaged
            }
            Self::OtherLayout { .. } => FailureKind::Disagrees,
            Self::InUse { .. } => FailureKind::Locked,
            Self::NotUsable { cause, .. } => FailureKind::of_io(cause),
        }
    }
}

impl From<DatabaseError> for StoreError {
    fn from(error: DatabaseError) -> StoreError {
        StoreError::new(error.failure_kind(), error)
    }
}

/// An open database, in a file or in memory.
pub(crate) struct Database {
    /// The open engine. `None` while the database is being dropped, and after a failed attempt to
    /// reopen the engine.
    engine: RwLock<Option<Engine>>,
    /// Keeps the engine open during a copy of the database. Copying takes the write lock, and
    /// closing the engine the read lock. Lock `copying` before `engine` if a thread needs both.
    copying: RwLock<()>,
    /// The function that opens the engine again after an error, or `None` for a database in memory,
    /// which has no file.
    open: Option<Box<Opener>>,
    path: PathBuf,
    /// The path and inode of the file, or `None` for a database in memory.
    place: Option<FilePlace>,
    /// `true` if the disk has refused an operation since the engine was opened. The engine may
    /// then refuse everything.
    ///
    /// Written by: `attempt`, `open_again`, while they hold the lock of `engine`. Read by:
    /// `obstacle`, `attempt_read`, `reopen`. Ordering: `Relaxed`, because the lock orders all
    /// accesses that matter.
    has_failed: AtomicBool,
    /// `true` if the disk was full at the last write. The database can still be read.
    ///
    /// Written by: `attempt`, and by `reopen` after a successful write. Read by: `obstacle`,
    /// `attempt_read`, `attempt_write`, `reopen`. Ordering: `Relaxed`, because the lock of `engine`
    /// orders all accesses that matter.
    is_full: AtomicBool,
    /// The lock on the data folder. The lock must be released only after the database file is
    /// closed.
    _folder: Option<Arc<DataDir>>,
}

type Opener = dyn Fn() -> Result<Engine, redb::Error> + Send + Sync;

impl Database {
    /// Opens an existing database file. The file must contain every commit up to the number in
    /// `mark`, which is stored outside the file.
    ///
    /// # Errors
    /// Returns any variant of [`DatabaseError`].
    pub(crate) fn open(path: &Path, mark: Arc<CommitMark>) -> Result<Database, DatabaseError> {
        let open = opener_of(path, mark);
        let engine = catch_panic(path, &open)?;
        Database::with_engine(engine, Some(Box::new(open)), path).in_place()
    }

    /// Opens an existing database file without changing or locking it. Everything that is written
    /// stays in memory. The file must have every commit up to the number in `mark`.
    ///
    /// # Errors
    /// Returns any variant of [`DatabaseError`]. Another process may write to the file at the same
    /// time. The file can then look damaged.
    pub(crate) fn open_overlaid(
        path: &Path,
        mark: Arc<CommitMark>,
    ) -> Result<Database, DatabaseError> {
        let engine = catch_panic(path, || {
            let file = Arc::new(OverlayFile::open(path)?);
            Engine::open(database_file::open(file, path, &builder())?, mark)
        })?;
        Ok(Database::with_engine(engine, None, path))
    }

    /// Creates a database file, which is durable when this function returns. Later commits store
    /// their number in the commit mark `mark`.
    ///
    /// The file is created under a temporary name and then renamed. So a crash does not leave an
    /// incomplete file, which would look damaged.
    ///
    /// # Errors
    /// Returns [`DatabaseError::NotUsable`] if the disk refuses.
    pub(crate) fn create(path: &Path, mark: Arc<CommitMark>) -> Result<Database, DatabaseError> {
        let unfinished = path.with_extension("new");
        let engine = catch_panic(path, || {
            match fs::remove_file(&unfinished) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(FILE_MODE)
                .open(&unfinished)?;
            database_file::keep_others_out(&file)?;
            let file = database_file::create(Arc::new(file), LOG_LEN, &builder())?;
            let engine = Engine::open(file, Arc::clone(&mark))?;
            rename_durably(&MachineFiles, &unfinished, path)?;
            Ok(engine)
        })?;
        Database::with_engine(engine, Some(Box::new(opener_of(path, mark))), path).in_place()
    }

    /// Creates a database in memory. The database is lost when the value is dropped. Error messages
    /// give its path as `memory`.
    ///
    /// # Errors
    /// Returns [`DatabaseError::NotUsable`] if the engine cannot be created.
    pub(crate) fn in_memory() -> Result<Database, DatabaseError> {
        let path = Path::new("memory");
        let engine = catch_panic(path, || Engine::in_memory(&builder()))?;
        Ok(Database::with_engine(engine, None, path))
    }

    /// Creates a database for tests on a new simulated disk.
    ///
    /// # Errors
    /// Returns [`DatabaseError::NotUsable`] if the engine cannot be created.
    #[cfg(test)]
    pub(crate) fn on_simulated_disk() -> Result<Database, DatabaseError> {
        let disk = crate::embedded::simulation::SimulatedDisk::holding(&[], 0);
        Database::over(Arc::new(disk), LOG_LEN, "simulated")
    }

    /// Opens a database in `file`, for example on a simulated disk. If `file` is empty, a database
    /// with a log of `log_len` blocks is created. Each reopen uses the same `file`.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn over(
        file: Arc<dyn BlockFile>,
        log_len: u32,
        name: &str,
    ) -> Result<Database, DatabaseError> {
        let path = PathBuf::from(name);
        let opened_path = path.clone();
        let mark = Arc::<CommitMark>::default();
        let open = move || {
            let opened = match file.len_in_blocks()? {
                0 => database_file::create(Arc::clone(&file), log_len, &builder())?,
                _ => database_file::open(Arc::clone(&file), &opened_path, &builder())?,
            };
            Engine::open(opened, Arc::clone(&mark))
        };
        Ok(Database::with_engine(
            catch_panic(&path, &open)?,
            Some(Box::new(open)),
            &path,
        ))
    }

    fn with_engine(engine: Engine, open: Option<Box<Opener>>, path: &Path) -> Database {
        Database {
            engine: RwLock::new(Some(engine)),
            open,
            path: path.to_owned(),
            place: None,
            copying: RwLock::default(),
            has_failed: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            _folder: None,
        }
    }

    /// Stores the path and inode of the database file. Later operations use them to check that the
    /// file was not replaced.
    fn in_place(mut self) -> Result<Database, DatabaseError> {
        let place = FilePlace::at(&self.path);
        self.place = Some(place.map_err(|cause| DatabaseError::NotUsable {
            path: self.path.clone(),
            cause,
        })?);
        Ok(self)
    }

    /// Attaches the lock on the data folder to this database. As long as the database exists, no
    /// other process may use the folder.
    pub(crate) fn locked_by(mut self, folder: Arc<DataDir>) -> Database {
        self._folder = Some(folder);
        self
    }

    /// Checks that the next start would find the file to which this process writes.
    ///
    /// # Errors
    /// Returns [`Displaced`] if the file was removed or replaced.
    pub(crate) fn check_in_place(&self) -> Result<(), Displaced> {
        self.place.as_ref().map_or(Ok(()), FilePlace::check)
    }

    /// Closes the file and opens it again. A reopen is necessary because the engine refuses all
    /// operations after a disk error, even if the error was temporary. If the disk was full, also
    /// checks that the disk has room for the next commits.
    ///
    /// # Errors
    /// Returns any variant of [`DatabaseError`]. The database then stays closed until a later call
    /// succeeds. If the only problem is that the disk has no room, the database can still be read.
    /// Returns [`DatabaseError::NotUsable`] at once during a [copy](Self::begin_copy).
    pub(crate) fn reopen(&self) -> Result<(), DatabaseError> {
        let was_full = self.is_full.load(Ordering::Relaxed);
        if !was_full || self.has_failed.load(Ordering::Relaxed) {
            let _no_copy = self.keep_copies_out()?;
            let mut engine = self.engine.write().unwrap_or_else(PoisonError::into_inner);
            self.open_again(&mut engine)?;
        }
        if was_full {
            self.attempt(Engine::check_room)?;
            self.is_full.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns a guard for copying the whole database. Until the guard is dropped, no thread closes
    /// the engine in order to reopen it.
    pub(crate) fn begin_copy(&self) -> RwLockWriteGuard<'_, ()> {
        self.copying.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a guard that prevents copies of the database, so that the engine can be closed.
    ///
    /// # Errors
    /// Returns [`DatabaseError::NotUsable`] during a copy. This method does not wait for the copy.
    /// A thread that waits to close the engine blocks all readers, because the lock of the engine
    /// then admits none.
    fn keep_copies_out(&self) -> Result<RwLockReadGuard<'_, ()>, DatabaseError> {
        match self.copying.try_read() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let kind = match self.is_full.load(Ordering::Relaxed) {
                    true => io::ErrorKind::StorageFull,
                    false => io::ErrorKind::ResourceBusy,
                };
                let what = "the database cannot be opened again during a backup";
                Err(DatabaseError::NotUsable {
                    path: self.path.clone(),
                    cause: io::Error::new(kind, what),
                })
            }
        }
    }

    fn open_again(&self, engine: &mut Option<Engine>) -> Result<(), DatabaseError> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        let _ = catch_panic(&self.path, || {
            drop(engine.take());
            Ok(())
        });
        *engine = Some(catch_panic(&self.path, open)?);
        self.has_failed.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the reason why the database cannot be written until a [`reopen`](Self::reopen)
    /// succeeds, or `None` if it can be written.
    pub(crate) fn obstacle(&self) -> Option<FailureKind> {
        if self.is_full.load(Ordering::Relaxed) {
            return Some(FailureKind::Full);
        }
        let has_failed = self.has_failed.load(Ordering::Relaxed);
        has_failed.then_some(FailureKind::NotUsable)
    }

    /// `true` if the database is lost when the process ends.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.open.is_none()
    }

    /// Returns the path of the file, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` on the engine, and converts errors and panics.
    ///
    /// # Errors
    /// Returns the error of `work` as a [`DatabaseError`]. A panic of the engine is
    /// [`DatabaseError::Damaged`], because the engine trusts the pages that it reads, and panics if
    /// they are inconsistent. Returns [`DatabaseError::Displaced`] if the file was removed or
    /// replaced, even if `work` succeeded, because the next start would not find the result.
    pub(crate) fn attempt<T>(
        &self,
        work: impl FnOnce(&Engine) -> Result<T, redb::Error>,
    ) -> Result<T, DatabaseError> {
        let engine = self.engine.read().unwrap_or_else(PoisonError::into_inner);
        let done = catch_panic(&self.path, || match &*engine {
            Some(engine) => work(engine).map_err(|error| engine.cause_of(error)),
            None => Err(redb::Error::DatabaseClosed),
        });
        if let Err(DatabaseError::NotUsable { cause, .. }) = &done {
            self.has_failed.store(true, Ordering::Relaxed);
            if FailureKind::of_io(cause) == FailureKind::Full {
                self.is_full.store(true, Ordering::Relaxed);
            }
        }
        let done = done?;
        self.check_in_place()?;
        Ok(done)
    }

    /// Reads from the engine. If a write to a full disk has made the engine unusable, opens the
    /// engine again first.
    ///
    /// # Errors
    /// Returns the errors of [`attempt`](Self::attempt).
    pub(crate) fn attempt_read<T>(
        &self,
        read: impl Fn(&Engine) -> Result<T, redb::Error>,
    ) -> Result<T, DatabaseError> {
        match self.attempt(&read) {
            Err(error @ DatabaseError::NotUsable { .. }) => {
                if !self.is_full.load(Ordering::Relaxed) {
                    return Err(error);
                }
                let no_copy = self.keep_copies_out()?;
                let mut engine = self.engine.write().unwrap_or_else(PoisonError::into_inner);
                // Another thread may have opened the engine again while this thread waited for the
                // lock.
                if self.has_failed.load(Ordering::Relaxed) {
                    self.open_again(&mut engine)?;
                }
                drop((engine, no_copy));
                self.attempt(read)
            }
            done => done,
        }
    }

    /// Writes to the engine. If the disk was full at the last write, returns an error without
    /// trying.
    ///
    /// # Errors
    /// Returns the errors of [`attempt`](Self::attempt).
    pub(crate) fn attempt_write<T>(
        &self,
        write: impl FnOnce(&Engine) -> Result<T, redb::Error>,
    ) -> Result<T, DatabaseError> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(DatabaseError::NotUsable {
                path: self.path.clone(),
                cause: io::ErrorKind::StorageFull.into(),
            });
        }
        self.attempt(write)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Database").field(&self.path).finish()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Closing the database writes to the file, and may panic if the file is damaged. An error
        // is ignored, because no caller is left to handle it.
        let _ = catch_panic(&self.path, || {
            drop(
                self.engine
                    .write()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take(),
            );
            Ok(())
        });
    }
}

fn opener_of(
    path: &Path,
    mark: Arc<CommitMark>,
) -> impl Fn() -> Result<Engine, redb::Error> + Send + Sync + 'static {
    let path = path.to_owned();
    move || {
        let file = database_file::open_locked(&path)?;
        Engine::open(
            database_file::open(Arc::new(file), &path, &builder())?,
            Arc::clone(&mark),
        )
    }
}

fn builder() -> redb::Builder {
    let mut builder = redb::Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn catch_panic<T>(
    path: &Path,
    work: impl FnOnce() -> Result<T, redb::Error>,
) -> Result<T, DatabaseError> {
    // `AssertUnwindSafe` is correct because `work` does not change any state of this program. The
    // engine marks itself unusable when it unwinds.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|error| explain(path, error)),
        Err(panic) => Err(DatabaseError::Damaged {
            path: path.to_owned(),
            what: text_of(&*panic),
        }),
    }
}

fn explain(path: &Path, error: redb::Error) -> DatabaseError {
    let path = path.to_owned();
    match error {
        redb::Error::DatabaseAlreadyOpen => DatabaseError::InUse { path },
        redb::Error::Io(cause) if is_about_the_bytes(&cause) => {
            match (reason(&cause), reason(&cause)) {
                (Some(layout), _) => DatabaseError::OtherLayout { path, layout },
                (_, Some(lost)) => DatabaseError::EndLost { path, lost },
                (None, None) => DatabaseError::Damaged {
                    path,
                    what: cause.to_string(),
                },
            }
        }
        redb::Error::Io(cause) => DatabaseError::NotUsable { path, cause },
        redb::Error::Corrupted(_)
        | redb::Error::UpgradeRequired(_)
        | redb::Error::RepairAborted
        | redb::Error::TableTypeMismatch { .. }
        | redb::Error::TableIsMultimap(_)
        | redb::Error::TypeDefinitionChanged { .. } => DatabaseError::Damaged {
            path,
            what: error.to_string(),
        },
        other => DatabaseError::NotUsable {
            path,
            cause: io::Error::other(other.to_string()),
        },
    }
}

fn is_about_the_bytes(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
    )
}

/// Returns the error of type `E` that is wrapped in this I/O error, or `None` if there is none.
fn reason<E: std::error::Error + Clone + 'static>(error: &io::Error) -> Option<E> {
    error.get_ref()?.downcast_ref().cloned()
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(panic.downcast_ref::<&str>().copied());
    format!(
        "its pages are inconsistent: {}",
        text.unwrap_or("the engine gave no reason")
    )
}

/// Returns the error for a row that cannot be decoded. If `is_whole` is `true`, the checksum of the
/// row is right, so a later version has written the row. `what` begins the message with a subject
/// and a verb, such as `the numbers of acme up to 7 are`.
pub(super) fn unreadable(is_whole: bool, what: &str) -> redb::Error {
    match is_whole {
        true => {
            OtherLayout::LaterContent(format!("{what} in a form that this version cannot read"))
                .into()
        }
        false => redb::Error::Corrupted(format!("{what} corrupted")),
    }
}

/// Opens a table for reading, or returns `None` if the table does not exist.
pub(super) fn if_there<K: Key + 'static, V: Value + 'static>(
    transaction: &ReadTransaction,
    table: TableDefinition<'_, K, V>,
) -> Result<Option<ReadOnlyTable<K, V>>, redb::Error> {
    match transaction.open_table(table) {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::embedded::simulation::{Fault, SimulatedDisk};

    /// The error code of Linux for a full disk.
    const ENOSPC: i32 = 28;

    #[test]
    fn nobody_waits_for_a_copy_to_open_a_full_database_again() {
        let disk = Arc::new(SimulatedDisk::holding(&[], 0));
        let file = Arc::clone(&disk) as Arc<dyn BlockFile>;
        let database = Database::over(file, LOG_LEN, "full").expect("an empty disk");
        disk.fail_after(0, Fault::Error(ENOSPC));
        let written = database.attempt(|engine| engine.begin_write()?.commit());
        written.expect_err("the disk is full");
        let database = &database;
        let (begun, has_begun) = channel();
        let (may_end, end) = channel::<()>();
        let (reopened, was_reopened) = channel();
        let (is_read, was_read) = channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                let copy = database.begin_copy();
                let engine = database.engine.read().expect("no panic");
                begun.send(()).expect("it waits");
                let _ = end.recv();
                drop((engine, copy));
            });
            has_begun.recv().expect("the copy has begun");
            scope.spawn(move || reopened.send(database.reopen().is_err()));
            let reopens = was_reopened.recv_timeout(Duration::from_secs(60));
            scope.spawn(move || {
                let _ = database.attempt_read(|engine| engine.begin_read().map(drop));
                is_read.send(())
            });
            let reads = was_read.recv_timeout(Duration::from_secs(60));
            drop(may_end);
            assert_eq!(reopens, Ok(true), "the engine is in use");
            assert_eq!(reads, Ok(()), "no read waits for the copy");
        });
        database.reopen().expect("the copy has ended");
    }

    fn reason(content: &[u8]) -> DatabaseError {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("idmint.redb");
        fs::write(&path, content).expect("the file is written");
        Database::open(&path, Arc::default()).expect_err("the file is no database")
    }

    #[test]
    fn an_empty_foreign_or_cut_file_is_damaged_and_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("idmint.redb");
        drop(Database::create(&path, Arc::default()).expect("the database is created"));
        let whole = fs::read(&path).expect("the file is readable");

        for content in [
            &b""[..],
            b"SQLite format 3\0 and so on",
            &whole[..whole.len() / 2],
            &whole[..100],
        ] {
            let error = reason(content);
            assert_eq!(
                error.failure_kind(),
                FailureKind::Damaged,
                "{} bytes: {error}",
                content.len()
            );
            assert!(error.to_string().contains("idmint.redb"), "{error}");
        }
    }

    #[test]
    fn a_panic_of_the_engine_is_an_error() {
        let database = Database::in_memory().expect("memory suffices");
        let error = database
            .attempt::<()>(|_| panic!("page 7 is out of range"))
            .expect_err("the work panicked");
        assert_eq!(error.failure_kind(), FailureKind::Damaged);
        assert!(
            error.to_string().contains("page 7 is out of range"),
            "{error}"
        );
    }

    #[test]
    fn a_half_made_file_of_an_earlier_start_is_replaced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("idmint.redb");
        fs::write(folder.path().join("idmint.new"), [0; 5000]).expect("the leftover is written");
        drop(Database::create(&path, Arc::default()).expect("the database is created"));
        Database::open(&path, Arc::default()).expect("the database opens");
        assert!(!folder.path().join("idmint.new").exists());
    }

    #[test]
    fn a_database_that_is_open_is_in_use() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("idmint.redb");
        let _open = Database::create(&path, Arc::default()).expect("the database is created");
        assert!(matches!(
            Database::open(&path, Arc::default()),
            Err(DatabaseError::InUse { .. })
        ));
    }
}
