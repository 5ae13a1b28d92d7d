//! A backup that is sent to another process instead of being kept in a folder.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use super::data_dir::DATABASE_NAME;
use crate::failure::{FailureKind, StoreError};
use crate::records::{BackedUp, RecordStore};

/// The name of a temporary folder within the data folder. The copy of the database is made in it.
const FOLDER: &str = "backup.new";

/// A copy of the database that exists until this value is dropped.
///
/// The copy is made in the data folder, because a container may have no other folder that is
/// writable. The file is unlinked while it is open, so the operating system frees its space when
/// the value is dropped or the process is killed.
#[derive(Debug)]
pub struct SentBackup {
    /// The numbers of records in the copy.
    pub backed_up: BackedUp,
    /// The database file, at its beginning.
    pub database: File,
    /// The length of the database file in bytes.
    pub len: u64,
}

impl SentBackup {
    /// Copies the records of the node that uses the data folder `data_dir`.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the disk has no room for a second database, or if the copy failed.
    pub fn of(records: &dyn RecordStore, data_dir: &Path) -> Result<SentBackup, StoreError> {
        let failed = |cause: io::Error| StoreError::new(FailureKind::of_io(&cause), cause);
        SentBackup::remove_unfinished(data_dir).map_err(failed)?;
        check_room(data_dir)?;
        let folder = data_dir.join(FOLDER);
        let copied = records.back_up(&folder).and_then(|backed_up| {
            let database = File::open(folder.join(DATABASE_NAME)).map_err(failed)?;
            let len = database.metadata().map_err(failed)?.len();
            Ok(SentBackup {
                backed_up,
                database,
                len,
            })
        });
        SentBackup::remove_unfinished(data_dir).map_err(failed)?;
        copied
    }

    /// Removes an unfinished copy of the database that a killed process left in the data folder.
    ///
    /// # Errors
    /// Returns any error of the file system.
    pub fn remove_unfinished(data_dir: &Path) -> io::Result<()> {
        match fs::remove_dir_all(data_dir.join(FOLDER)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// Checks that the disk has room for a copy of the database. Otherwise the copy would fill the
/// disk, and the running node could not append events until the copy fails and is removed.
fn check_room(data_dir: &Path) -> Result<(), StoreError> {
    let failed = |cause: io::Error| StoreError::new(FailureKind::of_io(&cause), cause);
    let needed = fs::metadata(data_dir.join(DATABASE_NAME))
        .map_err(failed)?
        .len();
    let space = rustix::fs::statvfs(data_dir).map_err(|error| failed(error.into()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if free > needed {
        return Ok(());
    }
    let text = format!(
        "a copy needs {needed} bytes in {}, and {free} are free; free some space, or name a folder on another disk",
        data_dir.display()
    );
    Err(StoreError::new(FailureKind::Full, text))
}
