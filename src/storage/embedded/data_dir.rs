//! The folder that holds everything one process keeps, and the lock that keeps others out.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tracing::warn;

use super::file_place::{Displaced, FilePlace};
use super::file_system::{FILE_MODE, MachineFiles, create_folder};
use crate::storage::failure::FailureKind;
use crate::storage::files::{FolderLock, FolderLockError};

/// The name of the database in its folder.
pub(crate) const DATABASE_NAME: &str = "idmint.redb";

/// Which of the two state files are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoundFiles {
    /// Neither: a first start.
    Nothing,
    /// The horizon alone: a first start that ended before the database was created.
    HorizonOnly,
    /// The database alone. The horizon is created first, so it has been lost.
    DatabaseOnly,
    /// Both: an ordinary start.
    Both,
}

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataDirError {
    /// Another process works in the folder. Nothing was touched.
    #[error(transparent)]
    Locked(FolderLockError),
    /// The folder cannot be made, read, locked or written.
    #[error("cannot {step} {}; storage.data_dir must be a folder that this user may write to", .path.display())]
    NotUsable {
        /// The path that failed.
        path: PathBuf,
        /// What was tried, as a verb.
        step: &'static str,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
}

impl DataDirError {
    /// What kind of failure this is.
    pub(crate) fn failure_kind(&self) -> FailureKind {
        match self {
            Self::Locked(_) => FailureKind::Locked,
            Self::NotUsable { cause, .. } => FailureKind::of_io(cause),
        }
    }
}

/// A folder that this process alone works in, for as long as the value lives.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
    /// Held, never read again: closing it gives the folder free.
    _lock: FolderLock,
    lock_place: FilePlace,
}

impl DataDir {
    /// Creates the folder if need be, locks it, and tries whether a file in it can be written and synced.
    ///
    /// A full disk is no reason to refuse a folder that already has a horizon: raising it needs no new space.
    ///
    /// # Errors
    /// [`DataDirError::Locked`] and [`DataDirError::NotUsable`].
    pub(crate) fn open(path: &Path) -> Result<DataDir, DataDirError> {
        let refused = |step| {
            move |cause| DataDirError::NotUsable {
                path: path.to_owned(),
                step,
                cause,
            }
        };
        create_folder(&MachineFiles, path).map_err(refused("create the folder"))?;
        let lock = FolderLock::take(path).map_err(|error| match error {
            FolderLockError::NotLocked { path, step, cause } => {
                DataDirError::NotUsable { path, step, cause }
            }
            held @ FolderLockError::Held { .. } => DataDirError::Locked(held),
        })?;
        let lock_place = FilePlace::of(lock.file(), lock.path()).map_err(refused("look into"))?;
        let data_dir = DataDir {
            path: path.to_owned(),
            _lock: lock,
            lock_place,
        };
        let has_horizon = data_dir.find()?.has_horizon();
        match probe(path) {
            Ok(()) => Ok(data_dir),
            Err(cause) if FailureKind::of_io(&cause) == FailureKind::Full && has_horizon => {
                warn!(path = %path.display(), "the disk under {} is full: {cause}", path.display());
                Ok(data_dir)
            }
            Err(cause) => Err(refused("write and sync a file in")(cause)),
        }
    }

    /// Which state files are there.
    ///
    /// # Errors
    /// [`DataDirError::NotUsable`] when that cannot be told. It is never guessed: taking a folder for a new one
    /// could mint ids a second time.
    pub(crate) fn find(&self) -> Result<FoundFiles, DataDirError> {
        let there = |path: PathBuf| match fs::symlink_metadata(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(cause) => Err(DataDirError::NotUsable {
                path,
                step: "look for",
                cause,
            }),
        };
        Ok(
            match (there(self.horizon_path())?, there(self.database_path())?) {
                (false, false) => FoundFiles::Nothing,
                (true, false) => FoundFiles::HorizonOnly,
                (false, true) => FoundFiles::DatabaseOnly,
                (true, true) => FoundFiles::Both,
            },
        )
    }

    /// Whether the folder is still the one that this process has locked: beside another lock, another process could work.
    ///
    /// # Errors
    /// [`Displaced`].
    pub(crate) fn check_in_place(&self) -> Result<(), Displaced> {
        self.lock_place.check()
    }

    /// Where the horizon lies.
    pub(crate) fn horizon_path(&self) -> PathBuf {
        self.path.join("horizon")
    }

    /// Where the fleet that adopts the node is noted.
    pub(crate) fn adoption_path(&self) -> PathBuf {
        self.path.join("adoption.json")
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the database lies.
    pub(crate) fn database_path(&self) -> PathBuf {
        self.path.join(DATABASE_NAME)
    }
}

impl FoundFiles {
    /// Whether the horizon is there.
    pub(crate) fn has_horizon(self) -> bool {
        matches!(self, Self::HorizonOnly | Self::Both)
    }

    /// Whether the database is there.
    pub(crate) fn has_database(self) -> bool {
        matches!(self, Self::DatabaseOnly | Self::Both)
    }
}

/// Writes, syncs and removes a file, as everything later will have to.
fn probe(folder: &Path) -> io::Result<()> {
    let path = folder.join("probe");
    let created = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE_MODE)
        .open(&path);
    let written = created.and_then(|mut file| {
        file.write_all(b"idmint")?;
        file.sync_all()
    });
    let removed = fs::remove_file(&path);
    written?;
    removed?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    #[test]
    fn a_folder_is_created_with_those_above_it_and_left_clean() {
        let root = folder();
        let path = root.path().join("a/b/c");
        let data_dir = DataDir::open(&path).expect("the folder is usable");
        assert_eq!(
            data_dir.find().expect("the folder is readable"),
            FoundFiles::Nothing
        );
        let names: Vec<_> = fs::read_dir(&path)
            .expect("the folder is there")
            .flatten()
            .map(|e| e.file_name())
            .collect();
        assert_eq!(names, ["lock"]);
    }

    #[test]
    fn a_second_open_is_locked_and_names_the_holder_until_the_first_is_gone() {
        let root = folder();
        let first = DataDir::open(root.path()).expect("the folder is free");
        let error = DataDir::open(root.path()).expect_err("the folder is taken");
        assert_eq!(error.failure_kind(), FailureKind::Locked);
        assert!(
            error
                .to_string()
                .contains(&format!("process {}", std::process::id())),
            "{error}"
        );
        for unreadable in ["", "somebody"] {
            fs::write(root.path().join("lock"), unreadable)
                .expect("the lock is for those who ask for it");
            let error = DataDir::open(root.path()).expect_err("the folder is taken");
            assert!(
                error.to_string().contains("in use by another process;"),
                "{error}"
            );
        }

        drop(first);
        DataDir::open(root.path()).expect("the folder is free again");
    }

    #[test]
    fn a_path_that_is_a_file_or_lies_under_one_is_not_usable() {
        let root = folder();
        let file = root.path().join("file");
        fs::write(&file, "").expect("the file is written");
        for path in [file.clone(), file.join("below")] {
            let error = DataDir::open(&path).expect_err("a file is no folder");
            assert_eq!(error.failure_kind(), FailureKind::NotUsable);
            assert!(
                error.to_string().contains(&path.display().to_string()),
                "{error}"
            );
        }
        assert_eq!(fs::read(&file).expect("the file is still there"), b"");
    }

    #[test]
    fn a_folder_in_which_no_file_can_be_made_is_not_usable() {
        let root = folder();
        // A folder in the way of the probe stands for any reason; permissions would not stop a test run as root.
        fs::create_dir(root.path().join("probe")).expect("the obstacle is made");
        let error = DataDir::open(root.path()).expect_err("the probe cannot be written");
        assert_eq!(error.failure_kind(), FailureKind::NotUsable);
    }

    #[test]
    fn a_folder_that_cannot_be_looked_into_is_an_error_and_not_a_first_start() {
        let root = folder();
        let path = root.path().join("data");
        let data_dir = DataDir::open(&path).expect("the folder is usable");
        fs::rename(&path, root.path().join("moved")).expect("the folder is moved");
        // A file in its place stands for any reason; permissions would not stop a test run as root.
        fs::write(&path, "").expect("the obstacle is made");
        let error = data_dir.find().expect_err("nobody can tell what is there");
        assert_eq!(error.failure_kind(), FailureKind::NotUsable);
        assert!(
            error.to_string().contains("look for") && error.to_string().contains("horizon"),
            "{error}"
        );
    }

    #[test]
    fn a_dangling_link_counts_as_a_file_that_is_there() {
        let root = folder();
        std::os::unix::fs::symlink("/nowhere/horizon", root.path().join("horizon"))
            .expect("the link is made");
        let data_dir = DataDir::open(root.path()).expect("the folder is usable");
        assert_eq!(
            data_dir.find().expect("the folder is readable"),
            FoundFiles::HorizonOnly
        );
    }
}
