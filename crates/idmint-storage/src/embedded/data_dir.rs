//! The data folder, which has all state of one process, and the lock that keeps other processes out
//! of the folder.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tracing::warn;

use super::file_place::{Displaced, FilePlace};
use super::file_system::{FILE_MODE, FOLDER_MODE, MachineFiles, create_folder};
use crate::failure::FailureKind;
use crate::files::{FolderLock, FolderLockError};

/// The file name of the database.
pub(crate) const DATABASE_NAME: &str = "idmint.redb";

/// The state files of a node that exist in its data folder. The two state files are the horizon and
/// the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoundFiles {
    /// Neither file exists, as at a first start.
    Nothing,
    /// Only the file with the horizon exists. Either the first start of the node ended before it
    /// created the database, or the database was lost.
    HorizonOnly,
    /// Only the database exists. A first start creates the file with the horizon first. So either
    /// that file was lost, or the database was restored from a backup, which has no horizon.
    DatabaseOnly,
    /// Both files exist, as at every later start.
    Both,
}

/// The error of a folder that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataDirError {
    /// Another process holds the lock on the folder. The folder was not changed.
    #[error(transparent)]
    Locked(FolderLockError),
    /// The folder cannot be created, read, locked or written.
    #[error("cannot {step} {}; storage.data_dir must be a folder that this user may write to", .path.display())]
    NotUsable {
        /// The path that failed.
        path: PathBuf,
        /// The operation that failed, as a verb.
        step: &'static str,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
}

impl DataDirError {
    /// Returns the kind of failure, which determines the operator's next step.
    pub(crate) fn failure_kind(&self) -> FailureKind {
        match self {
            Self::Locked(_) => FailureKind::Locked,
            Self::NotUsable { cause, .. } => FailureKind::of_io(cause),
        }
    }
}

/// A data folder that is locked for this process until this value is dropped.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
    /// The lock on the folder, which is released when this value is dropped.
    _lock: FolderLock,
    lock_place: FilePlace,
}

impl DataDir {
    /// Locks the folder, and creates it if it is missing. Checks that a file in it can be written
    /// and synced.
    ///
    /// A full disk is accepted if the folder already has a horizon file, because overwriting that
    /// file needs no additional space.
    ///
    /// # Errors
    /// Returns [`DataDirError::Locked`] if another process holds the lock, and
    /// [`DataDirError::NotUsable`] if the folder cannot be created, locked or written.
    pub(crate) fn open(path: &Path) -> Result<DataDir, DataDirError> {
        let refused = |step| {
            move |cause| DataDirError::NotUsable {
                path: path.to_owned(),
                step,
                cause,
            }
        };
        let is_new = !path.exists();
        create_folder(&MachineFiles, path).map_err(refused("create the folder"))?;
        if is_new {
            let made = fs::metadata(path).and_then(|made| check_owner(&made, FOLDER_MODE));
            made.map_err(refused("use the new folder"))?;
        }
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
                warn!(path = %path.display(), "the disk under {} is full ({cause}); free space outside the \
                    folder, and delete nothing in it", path.display());
                Ok(data_dir)
            }
            Err(cause) => Err(refused("write and sync a file in")(cause)),
        }
    }

    /// Returns the state files that exist.
    ///
    /// # Errors
    /// Returns [`DataDirError::NotUsable`] if the lookup of a file fails. Treating such a file as
    /// missing would be unsafe, because ids could be minted twice in a used folder.
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

    /// Checks that the lock file in the folder is still the file that this process has locked. If
    /// the file was replaced, another process could lock the new one and use the folder.
    ///
    /// # Errors
    /// Returns [`Displaced`] if the lock file was removed or replaced.
    pub(crate) fn check_in_place(&self) -> Result<(), Displaced> {
        self.lock_place.check()
    }

    /// Returns the path of the horizon file.
    pub(crate) fn horizon_path(&self) -> PathBuf {
        self.path.join("horizon")
    }

    /// Returns the path of the adoption note.
    pub(crate) fn adoption_path(&self) -> PathBuf {
        self.path.join("adoption.json")
    }

    /// Returns the path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the database.
    pub(crate) fn database_path(&self) -> PathBuf {
        self.path.join(DATABASE_NAME)
    }
}

impl FoundFiles {
    /// `true` if the horizon file exists.
    pub(crate) fn has_horizon(self) -> bool {
        matches!(self, Self::HorizonOnly | Self::Both)
    }

    /// `true` if the database exists.
    pub(crate) fn has_database(self) -> bool {
        matches!(self, Self::DatabaseOnly | Self::Both)
    }
}

/// Checks that a new file or folder has all permissions in `mode`. The umask of the process may
/// have removed some of these permissions.
fn check_owner(made: &Metadata, mode: u32) -> io::Result<()> {
    let left = made.mode() & 0o7777;
    if left & mode == mode {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the umask of this process gave the new file or folder mode {left:04o} instead of {mode:04o}; run \
         chmod {mode:04o}, and start with another umask, such as 0077"
    )))
}

/// Checks that the folder is writable, by writing, syncing and removing a file.
fn probe(folder: &Path) -> io::Result<()> {
    let path = folder.join("probe");
    let created = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE_MODE)
        .open(&path);
    let written = created.and_then(|mut file| {
        check_owner(&file.metadata()?, FILE_MODE)?;
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
        // A folder at the path of the probe file makes writing fail. Missing permissions would not
        // have that effect if the test runs as root.
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
        // A file at the path of the folder makes every lookup fail. Missing permissions would not
        // have that effect if the test runs as root.
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
