//! The transactional database: opened, created and asked so that a damaged file is an error and never a panic.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::{fmt, io};

use redb::{Key, ReadOnlyTable, ReadTransaction, TableDefinition, TableError, Value};

use super::logged::{Engine, LostEnd};
#[cfg(test)]
use crate::storage::embedded::block_file::BlockFile;
use crate::storage::embedded::data_dir::DataDir;
use crate::storage::embedded::database_file::{self, OtherLayout};
use crate::storage::embedded::file_place::{Displaced, FilePlace};
use crate::storage::embedded::file_system::{FILE_MODE, MachineFiles, rename_durably};
use crate::storage::embedded::horizon::CommitMark;
use crate::storage::failure::{FailureKind, StoreError};

/// How much of the database is kept in memory.
const CACHE_BYTES: usize = 32 << 20;

/// The length of the log in blocks: 2 MiB, some 12 000 appends. What stands in it is written again at a start.
pub(in crate::storage::embedded) const LOG_LEN: u32 = 512;

/// Why the database cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    /// The file is not what was written. It was not repaired; a good copy is needed. The horizon is no part of it.
    #[error(
        "the database {} is damaged ({what}); put a good copy in its place, and leave the horizon beside it \
         as it is", .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// The file is sound, and of a version that this program does not read. It is as it was.
    #[error("the database {} {layout}; never delete this folder: it is the record that keeps ids unique", .path.display())]
    OtherLayout {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        layout: OtherLayout,
    },
    /// The file is sound, and older than what callers were told of. It is as it was.
    #[error(
        "the database {} {lost}: it is an older copy, or its end was lost; put the newest copy in its place; without one, and \
         without what was acknowledged since, start with --floor and an instant at or above which no id was ever issued",
        .path.display()
    )]
    EndLost {
        /// The file.
        path: PathBuf,
        /// What is missing.
        lost: LostEnd,
    },
    /// Another program has the file open.
    #[error("the database {} is open in another program; stop that program", .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file was removed or replaced, so that nothing written to it will be found.
    #[error(transparent)]
    Displaced(#[from] Displaced),
    /// The disk refused. What was being written is there whole or not at all.
    #[error("cannot read or write the database {}; see to the disk, start again", .path.display())]
    NotUsable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
}

impl DatabaseError {
    /// What kind of failure this is.
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
    /// Empty only while it is being dropped, and after it could not be opened again.
    engine: RwLock<Option<Engine>>,
    /// Opens the engine again.
    open: Box<Opener>,
    path: PathBuf,
    /// `None` in memory.
    place: Option<FilePlace>,
    /// Whether the disk has refused something since it was opened.
    has_failed: AtomicBool,
    /// The lock of the folder that the file lies in, given free only after the file is closed.
    _folder: Option<Arc<DataDir>>,
}

type Opener = dyn Fn() -> Result<Engine, redb::Error> + Send + Sync;

impl Database {
    /// Opens an existing database file, which must have every commit up to that of this mark.
    ///
    /// # Errors
    /// Every variant of [`DatabaseError`].
    pub(crate) fn open(path: &Path, mark: Arc<CommitMark>) -> Result<Database, DatabaseError> {
        let open = opener_of(path, mark);
        let engine = catch_panic(path, &open)?;
        Database::with_engine(engine, Box::new(open), path).in_place()
    }

    /// Creates a database file, durable when it returns. Its commits raise this mark.
    ///
    /// It is made under another name and renamed, so a crash leaves no half-made file that looks damaged.
    ///
    /// # Errors
    /// [`DatabaseError::NotUsable`].
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
        Database::with_engine(engine, Box::new(opener_of(path, mark)), path).in_place()
    }

    /// A database that is gone with the process. Errors call it `memory`.
    ///
    /// # Errors
    /// [`DatabaseError::NotUsable`].
    #[cfg(test)]
    pub(crate) fn in_memory() -> Result<Database, DatabaseError> {
        let disk = crate::storage::embedded::simulation::SimulatedDisk::holding(&[], 0);
        Database::over(Arc::new(disk), LOG_LEN, "memory")
    }

    /// A database in a file that is not on a disk, now and each time it is opened again; made new, with a log of so many
    /// blocks, if that is empty.
    #[cfg(test)]
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
            Box::new(open),
            &path,
        ))
    }

    fn with_engine(engine: Engine, open: Box<Opener>, path: &Path) -> Database {
        let (engine, path, has_failed) = (
            RwLock::new(Some(engine)),
            path.to_owned(),
            AtomicBool::new(false),
        );
        Database {
            engine,
            open,
            path,
            place: None,
            has_failed,
            _folder: None,
        }
    }

    /// The same, of a file whose place is watched from now on.
    fn in_place(mut self) -> Result<Database, DatabaseError> {
        let place = FilePlace::at(&self.path);
        self.place = Some(place.map_err(|cause| DatabaseError::NotUsable {
            path: self.path.clone(),
            cause,
        })?);
        Ok(self)
    }

    /// The same, with the lock of its folder: nobody else may work there while anybody has this database.
    pub(crate) fn locked_by(mut self, folder: Arc<DataDir>) -> Database {
        self._folder = Some(folder);
        self
    }

    /// Whether the next start would find the file that is written to.
    ///
    /// # Errors
    /// [`Displaced`].
    pub(crate) fn check_in_place(&self) -> Result<(), Displaced> {
        self.place.as_ref().map_or(Ok(()), FilePlace::check)
    }

    /// Closes the file and opens it again: the engine refuses everything after an error of the disk, however brief.
    ///
    /// # Errors
    /// Every variant of [`DatabaseError`]; the database then stays closed until this succeeds.
    pub(crate) fn reopen(&self) -> Result<(), DatabaseError> {
        let mut engine = self.engine.write().unwrap_or_else(PoisonError::into_inner);
        let _ = catch_panic(&self.path, || {
            drop(engine.take());
            Ok(())
        });
        *engine = Some(catch_panic(&self.path, &self.open)?);
        self.has_failed.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the disk has refused nothing since the database was opened; if it has, only opening it again helps.
    pub(crate) fn is_usable(&self) -> bool {
        !self.has_failed.load(Ordering::Relaxed)
    }

    /// The file, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Does `work` on the engine.
    ///
    /// # Errors
    /// What `work` returns, told apart; [`DatabaseError::Displaced`] whatever it did, since only what the next start finds
    /// may be answered; a panic of the engine is [`DatabaseError::Damaged`], because the engine trusts
    /// what it reads back and stops when the pages make no sense.
    pub(crate) fn attempt<T>(
        &self,
        work: impl FnOnce(&Engine) -> Result<T, redb::Error>,
    ) -> Result<T, DatabaseError> {
        let engine = self.engine.read().unwrap_or_else(PoisonError::into_inner);
        let done = catch_panic(&self.path, || match &*engine {
            Some(engine) => work(engine),
            None => Err(redb::Error::DatabaseClosed),
        });
        if let Err(DatabaseError::NotUsable { .. }) = done {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        let done = done?;
        self.check_in_place()?;
        Ok(done)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Database").field(&self.path).finish()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Closing writes, which on a damaged file may panic; there is nobody left to tell.
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
    // Unwind safety: nothing of ours is changed by `work`, and the engine marks itself unusable when it unwinds.
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

/// What of ours stands behind an error of the disk.
fn reason<E: std::error::Error + Copy + 'static>(error: &io::Error) -> Option<E> {
    error.get_ref()?.downcast_ref().copied()
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(panic.downcast_ref::<&str>().copied());
    format!(
        "its pages make no sense: {}",
        text.unwrap_or("the engine gave no reason")
    )
}

/// A table to read; `None` if it was never made.
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
    use super::*;

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
