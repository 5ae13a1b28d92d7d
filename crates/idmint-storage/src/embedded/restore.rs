//! Restores a backup to an empty data folder. The next start on the folder then needs a floor.
//!
//! ```text
//! 1. lock the folder, which must be empty
//! 2. write the note `restored` with the floor
//! 3. write the database as `idmint.new`, sync it, and check it
//! 4. rename it to `idmint.redb`
//! ```
//!
//! A backup has no horizon, so a restored folder has a database, a note and no horizon. The first
//! start writes a horizon at the stated floor, and then removes the note. If a restore is killed,
//! its note remains without a database, and a start is refused instead of treating the folder as
//! new.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracing::{info, warn};

use super::backup_archive::{ArchiveError, read_archive};
use super::data_dir::{DATABASE_NAME, DataDir, DataDirError, FoundFiles};
use super::file_system::{FileSystem, MachineFiles, rename_durably};
use super::tables::{Database, DatabaseError};
use crate::engine::StatedFloor;
use crate::failure::{FailureKind, StoreError};
use crate::files::CheckedFile;
use idmint_core::time::UnixNanos;

/// The file name of the note that a restore leaves in the data folder.
const NOTE_NAME: &str = "restored";

/// The file names that are ignored when a restore checks that the folder is empty: the lock, the
/// folder `lost+found` of a new ext4 volume, and the files that a killed start or restore leaves.
const NOT_CONTENT: [&str; 4] = ["lock", "lost+found", "probe", NOTE_NAME];

/// The reason why a backup cannot be restored to a folder, or why a start is refused because of a
/// restore.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreError {
    /// The folder is not empty.
    #[error("{} is not empty, it has {name:?}: restore to an empty or new folder", .folder.display())]
    NotEmpty {
        /// The path of the folder.
        folder: PathBuf,
        /// The name of a file in the folder.
        name: String,
    },
    /// The folder cannot be locked or written.
    #[error(transparent)]
    Folder(#[from] DataDirError),
    /// The archive cannot be used.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The database in the archive cannot be opened.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A restore is running, or was killed.
    #[error(
        "a restore to {} has not ended: if it was interrupted, run `idmint restore` again", .folder.display()
    )]
    Interrupted {
        /// The path of the folder.
        folder: PathBuf,
    },
    /// A backup was restored to the folder, but no floor was stated for the start.
    #[error(
        "{} was restored from a backup, which does not show the latest ids: start once with --floor {floor}, or with \
         IDMINT_FLOOR={floor}", .folder.display()
    )]
    FloorNeeded {
        /// The path of the folder.
        folder: PathBuf,
        /// The floor that the restore has printed.
        floor: UnixNanos,
    },
    /// The floor in `--floor` or in the environment variable `IDMINT_FLOOR` is too low, for example
    /// because it was made for an earlier restore.
    #[error(
        "the floor is {stated}, but the restore to {} needs {floor} or later: start with --floor {floor}, or set \
         IDMINT_FLOOR={floor}", .folder.display()
    )]
    FloorTooLow {
        /// The path of the folder.
        folder: PathBuf,
        /// The stated floor.
        stated: UnixNanos,
        /// The floor that the restore has printed.
        floor: UnixNanos,
    },
    /// The environment variable `IDMINT_FLOOR` states a floor for the start after a restore, but
    /// the folder is empty.
    #[error(
        "IDMINT_FLOOR is set for a restore, but {} is empty: run `idmint restore` first, or start without IDMINT_FLOOR",
        .folder.display()
    )]
    NothingRestored {
        /// The path of the folder.
        folder: PathBuf,
    },
    /// The note cannot be read, written or removed.
    #[error("cannot {step} the note {}; check the disk", .path.display())]
    Note {
        /// The path of the note.
        path: PathBuf,
        /// The operation that failed, as a verb.
        step: &'static str,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
}

impl RestoreError {
    /// Returns the kind of failure, which determines the operator's next step.
    pub(crate) fn failure_kind(&self) -> FailureKind {
        match self {
            Self::NotEmpty { .. }
            | Self::Interrupted { .. }
            | Self::FloorNeeded { .. }
            | Self::FloorTooLow { .. }
            | Self::NothingRestored { .. } => FailureKind::Disagrees,
            Self::Folder(error) => error.failure_kind(),
            Self::Archive(ArchiveError::NotRead(cause) | ArchiveError::NotWritten(cause)) => {
                FailureKind::of_io(cause)
            }
            Self::Archive(_) => FailureKind::Damaged,
            Self::Database(error) => error.failure_kind(),
            Self::Note { cause, .. } if cause.kind() == ErrorKind::InvalidData => {
                FailureKind::Damaged
            }
            Self::Note { cause, .. } => FailureKind::of_io(cause),
        }
    }
}

impl From<RestoreError> for StoreError {
    fn from(error: RestoreError) -> StoreError {
        StoreError::new(error.failure_kind(), error)
    }
}

/// Restores the database in `archive` to the folder `dir`, which must be empty or new. The database
/// is durable when this function returns, and the next start needs a floor.
///
/// `floor` is an instant at or above which the node of the backup certainly issued no id.
///
/// # Errors
/// Returns [`StoreError`] if the folder is not empty or in use, or if the archive is incomplete,
/// damaged or not a backup. The folder is then as empty as before.
pub fn restore(dir: &Path, archive: &mut impl Read, floor: UnixNanos) -> Result<(), StoreError> {
    // Check before the lock file is created, so that a folder of another program stays unchanged.
    check_empty(dir)?;
    let data_dir = DataDir::open(dir).map_err(RestoreError::from)?;
    check_empty(dir)?;
    let note = RestoreNote::of(dir);
    note.write(floor)?;
    let unfinished = data_dir.database_path().with_extension("new");
    let restored = put_database(archive, &unfinished, &data_dir.database_path());
    if restored.is_err() {
        // Remove the note of the restore last. If the removal of another file fails, the note
        // stays, so the next start is refused.
        let is_removed = fs::remove_file(&unfinished)
            .map_or_else(|error| error.kind() == ErrorKind::NotFound, |()| true);
        if is_removed && data_dir.find().is_ok_and(|files| !files.has_database()) {
            let _ = note.remove();
        }
    }
    Ok(restored?)
}

fn put_database(
    archive: &mut impl Read,
    unfinished: &Path,
    path: &Path,
) -> Result<(), RestoreError> {
    let mut file = MachineFiles
        .create_file(unfinished)
        .map_err(ArchiveError::NotWritten)?;
    read_archive(archive, &mut file)?;
    MachineFiles
        .sync_file(&file)
        .map_err(ArchiveError::NotWritten)?;
    drop(file);
    // Open the database once, so that a backup of a later program version is refused now and not by
    // the next start.
    drop(Database::open(unfinished, Arc::default())?);
    Ok(rename_durably(&MachineFiles, unfinished, path).map_err(ArchiveError::NotWritten)?)
}

/// Checks that the folder is missing or has no files, except for files of an interrupted restore.
fn check_empty(dir: &Path) -> Result<(), RestoreError> {
    let unusable = |cause| DataDirError::NotUsable {
        path: dir.to_owned(),
        step: "look into",
        cause,
    };
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unusable(error).into()),
    };
    let unfinished = Path::new(DATABASE_NAME).with_extension("new");
    for entry in entries {
        let name = entry.map_err(unusable)?.file_name();
        let name = name.to_string_lossy();
        let is_of_a_restore = Path::new(&*name) == unfinished
            || name
                .strip_prefix(NOTE_NAME)
                .is_some_and(|rest| rest.starts_with(".idmint-"));
        if !NOT_CONTENT.contains(&&*name) && !is_of_a_restore {
            return Err(RestoreError::NotEmpty {
                folder: dir.to_owned(),
                name: name.into_owned(),
            });
        }
    }
    Ok(())
}

/// The note that a restore leaves in the data folder. It has the floor that the next start needs.
pub(super) struct RestoreNote {
    folder: PathBuf,
    file: CheckedFile,
}

impl RestoreNote {
    /// Returns a handle to the note of a restore in this folder. The note need not exist.
    pub(super) fn of(folder: &Path) -> RestoreNote {
        RestoreNote {
            folder: folder.to_owned(),
            file: CheckedFile::at(folder.join(NOTE_NAME)),
        }
    }

    /// Returns the floor that a start on this folder may use.
    ///
    /// A floor [of a restore](StatedFloor::OfARestore) may stay in the environment for months. A
    /// later start must not use that floor again, because ids were issued above it. So the floor is
    /// used only while the folder has a note and no horizon. The start that uses it writes a
    /// horizon and removes the note.
    ///
    /// # Errors
    /// Returns [`RestoreError`] if the folder was restored and the floor is missing or too low, or
    /// if the restore has not ended. Also returns an error if a floor of a restore is stated and
    /// the folder is empty.
    pub(super) fn floor_of_a_start(
        &self,
        files: FoundFiles,
        stated: StatedFloor,
    ) -> Result<Option<UnixNanos>, RestoreError> {
        let folder = || self.folder.clone();
        let for_this_start = match stated {
            StatedFloor::ForThisStart(floor) => Some(floor),
            StatedFloor::None | StatedFloor::OfARestore(_) => None,
        };
        if files.has_horizon() {
            if let StatedFloor::OfARestore(floor) = stated {
                info!(%floor, "IDMINT_FLOOR is ignored, because the folder has a horizon");
            }
            return Ok(for_this_start);
        }
        if !self.exists()? {
            return match (files, stated) {
                (FoundFiles::Nothing, StatedFloor::OfARestore(_)) => {
                    Err(RestoreError::NothingRestored { folder: folder() })
                }
                _ => Ok(for_this_start),
            };
        }
        if !files.has_database() {
            return Err(RestoreError::Interrupted { folder: folder() });
        }
        let floor = match (self.read(), for_this_start) {
            (Err(damaged), Some(floor)) => {
                warn!(%floor, "starting above --floor, although {damaged}");
                return Ok(for_this_start);
            }
            (read, _) => read?,
        };
        match stated {
            StatedFloor::None => Err(RestoreError::FloorNeeded {
                folder: folder(),
                floor,
            }),
            StatedFloor::OfARestore(stated) | StatedFloor::ForThisStart(stated)
                if stated < floor =>
            {
                Err(RestoreError::FloorTooLow {
                    folder: folder(),
                    stated,
                    floor,
                })
            }
            StatedFloor::OfARestore(stated) => {
                warn!(floor = %stated, "starting above IDMINT_FLOOR after a restore");
                Ok(Some(stated))
            }
            StatedFloor::ForThisStart(stated) => Ok(Some(stated)),
        }
    }

    /// Removes the note of the restore, if it exists.
    ///
    /// # Errors
    /// Returns [`RestoreError::Note`] if the file system refuses.
    pub(super) fn remove(&self) -> Result<(), RestoreError> {
        let removed = match fs::remove_file(self.file.path()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            removed => removed,
        };
        removed
            .and_then(|()| File::open(&self.folder)?.sync_all())
            .map_err(|cause| self.error("remove", cause))
    }

    fn exists(&self) -> Result<bool, RestoreError> {
        self.file
            .path()
            .try_exists()
            .map_err(|cause| self.error("look for", cause))
    }

    fn write(&self, floor: UnixNanos) -> Result<(), RestoreError> {
        self.file
            .write(&floor.get().to_string())
            .map_err(|cause| self.error("write", cause))
    }

    fn read(&self) -> Result<UnixNanos, RestoreError> {
        let line = self.file.read().and_then(|line| {
            let floor = line.and_then(|line| line.parse().ok());
            floor.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "the note has no floor"))
        });
        line.map(UnixNanos::new)
            .map_err(|cause| self.error("read", cause))
    }

    fn error(&self, step: &'static str, cause: io::Error) -> RestoreError {
        RestoreError::Note {
            path: self.file.path().to_owned(),
            step,
            cause,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::backup_archive::write_archive;
    use crate::embedded::sent_backup::SentBackup;
    use crate::engine::OwnEngine;
    use crate::samples::{assert_at_floor, ready};
    use crate::start::Opened;

    use StatedFloor::{ForThisStart, OfARestore};

    fn at(nanos: u64) -> UnixNanos {
        UnixNanos::new(nanos)
    }

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    /// Returns the backup archive of a node that may mint ids up to 500 ns after 1970.
    fn archive() -> Vec<u8> {
        let root = folder();
        let engine = OwnEngine::Embedded {
            data_dir: root.path().to_owned(),
        };
        let store = ready(engine.open(0, None).expect("it is new"), at(500), &[]);
        let records = store.records().expect("the records are whole");
        let mut backup = SentBackup::of(&*records, root.path()).expect("there is room");
        assert_eq!(names_in(root.path()), ["horizon", "idmint.redb", "lock"]);
        let mut archive = Vec::new();
        write_archive(&mut backup.database, backup.len, &mut archive).expect("memory suffices");
        archive
    }

    fn names_in(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| name.into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names
    }

    fn start(dir: &Path, floor: StatedFloor) -> Result<Opened, StoreError> {
        let data_dir = dir.to_owned();
        OwnEngine::Embedded { data_dir }.open(0, floor)
    }

    #[track_caller]
    fn assert_refused(dir: &Path, floor: StatedFloor, kind: FailureKind, words: &str) {
        let refused = start(dir, floor).err().expect("the start is refused");
        assert_eq!(refused.failure_kind(), kind, "{refused}");
        assert!(refused.to_string().contains(words), "{refused}");
    }

    #[test]
    fn a_restored_folder_starts_only_with_a_floor_and_the_floor_of_a_restore_is_used_once() {
        let (root, floor) = (folder(), UnixNanos::from_seconds(1_000));
        let dir = root.path().join("new");
        restore(&dir, &mut &archive()[..], floor).expect("the folder is new");
        assert_eq!(names_in(&dir), ["idmint.redb", "lock", NOTE_NAME]);
        let disagrees = FailureKind::Disagrees;
        assert_refused(
            &dir,
            StatedFloor::None,
            disagrees,
            "--floor 1970-01-01T00:16:40.000Z",
        );
        let earlier = OfARestore(UnixNanos::from_seconds(999));
        assert_refused(
            &dir,
            earlier,
            disagrees,
            "set IDMINT_FLOOR=1970-01-01T00:16:40.000Z",
        );
        let earlier = ForThisStart(UnixNanos::from_seconds(999));
        assert_refused(
            &dir,
            earlier,
            disagrees,
            "start with --floor 1970-01-01T00:16:40.000Z",
        );
        assert_eq!(names_in(&dir), ["idmint.redb", "lock", NOTE_NAME]);

        let opened = start(&dir, OfARestore(floor)).expect("the floor suffices");
        assert_at_floor(opened.horizon(), floor);
        assert_eq!(names_in(&dir), ["horizon", "idmint.redb", "lock"]);
        drop(ready(opened, UnixNanos::from_seconds(2_000), &[]));

        let again = start(&dir, OfARestore(floor)).expect("the variable is still set");
        assert_eq!(again.horizon(), Some(UnixNanos::from_seconds(2_000)));
        drop(again);
        // Ids above the floor may exist, so the floor must not be used if the horizon file is lost.
        fs::remove_file(dir.join("horizon")).expect("it is there");
        assert_refused(
            &dir,
            OfARestore(floor),
            FailureKind::Damaged,
            "horizon is missing",
        );
    }

    #[test]
    fn the_floor_of_a_restore_is_refused_in_a_folder_to_which_nothing_was_restored() {
        let root = folder();
        let empty = OfARestore(at(1_000));
        assert_refused(
            root.path(),
            empty,
            FailureKind::Disagrees,
            "run `idmint restore` first",
        );
        let opened = start(root.path(), ForThisStart(at(1_000))).expect("the operator knows");
        assert_at_floor(opened.horizon(), at(1_000));
    }

    #[test]
    fn a_start_that_is_killed_before_the_note_is_removed_is_completed_by_the_next_one() {
        let (root, archive) = (folder(), archive());
        restore(root.path(), &mut &archive[..], at(1_000)).expect("the folder is empty");
        let note = fs::read(root.path().join(NOTE_NAME)).expect("it is there");
        drop(start(root.path(), OfARestore(at(1_000))).expect("the floor suffices"));
        fs::write(root.path().join(NOTE_NAME), note).expect("the folder is writable");

        let opened = start(root.path(), StatedFloor::None).expect("the horizon is there");
        assert_at_floor(opened.horizon(), at(1_000));
        assert!(!names_in(root.path()).contains(&NOTE_NAME.to_owned()));
    }

    #[test]
    fn a_restore_that_is_killed_keeps_every_start_out_until_it_is_run_again() {
        let (root, archive) = (folder(), archive());
        RestoreNote::of(root.path())
            .write(at(900))
            .expect("it is writable");
        fs::write(root.path().join("idmint.new"), &archive[512..900]).expect("it is writable");
        for floor in [
            StatedFloor::None,
            OfARestore(at(900)),
            ForThisStart(at(900)),
        ] {
            assert_refused(
                root.path(),
                floor,
                FailureKind::Disagrees,
                "run `idmint restore` again",
            );
        }
        restore(root.path(), &mut &archive[..], at(1_000)).expect("nothing else is there");
        let opened = start(root.path(), OfARestore(at(1_000))).expect("the floor suffices");
        assert_at_floor(opened.horizon(), at(1_000));
    }

    #[test]
    fn a_refused_restore_leaves_the_folder_as_it_was() {
        let archive = archive();
        let mut flipped = archive.clone();
        flipped[4_000] ^= 1;
        let mut foreign = Vec::new();
        write_archive(&mut &b"no database"[..], 11, &mut foreign).expect("memory suffices");
        let cut = &archive[..archive.len() / 2];
        for bad in [cut, &flipped[..], &foreign[..], &[]] {
            let root = folder();
            let refused = restore(root.path(), &mut &bad[..], at(1_000)).expect_err("it is bad");
            assert_eq!(refused.failure_kind(), FailureKind::Damaged, "{refused}");
            assert_eq!(names_in(root.path()), ["lock"], "{refused}");
            drop(start(root.path(), StatedFloor::None).expect("an empty folder"));
        }

        for name in ["horizon", "idmint.redb", "other"] {
            let root = folder();
            fs::write(root.path().join(name), "content").expect("the folder is writable");
            let refused = restore(root.path(), &mut &archive[..], at(1_000));
            let refused = refused.expect_err("it is not empty");
            assert_eq!(refused.failure_kind(), FailureKind::Disagrees, "{refused}");
            assert!(refused.to_string().contains(name), "{refused}");
            assert_eq!(names_in(root.path()), [name]);
        }
    }
}
