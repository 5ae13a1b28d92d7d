//! The data folder of one node, with its lock, horizon file, database and records.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use super::adoption_note::{AdoptionNote, AdoptionProgress, NoteUnreadable};
use super::data_dir::{DataDir, DataDirError, FoundFiles};
use super::file_place::{Displaced, FilePlace};
use super::fleet_folder::FormerFleet;
use super::horizon::{
    HorizonError, HorizonFile, HorizonRecord, highest_readable, is_noted_as_adopted,
};
use super::restore::{RestoreError, RestoreNote};
use super::tables::{Database, DatabaseError, FormatsTable, RecordTables, hold_numbers};
use crate::engine::StatedFloor;
use crate::failure::{FailureKind, StoreError};
use crate::kept_formats::{FormatsError, KeptFormat};
use crate::records::Records;
use crate::start::{EmptyEngine, Opened, ReadyEngine, ReservedEngine};
use idmint_core::minting::HorizonPlan;
use idmint_core::time::UnixNanos;

/// An open data folder, which stays locked until the value is dropped.
pub(crate) enum Folder {
    /// A folder without a horizon file and without a database.
    Empty(EmptyFolder),
    /// A folder with a horizon file.
    Reserved(Box<ReservedFolder>),
}

/// The folder of a first start, which has no horizon yet.
pub(crate) struct EmptyFolder {
    slot: u32,
    data_dir: DataDir,
}

/// A data folder with a horizon file. The configured formats were not compared with the stored
/// formats yet.
pub(crate) struct ReservedFolder {
    // The fields are dropped in this order, so the lock is released last.
    /// The open database. `None` if no database exists yet, for example because the first start
    /// ended early.
    database: Option<Database>,
    horizon: HorizonFile,
    data_dir: DataDir,
}

/// A data folder with a horizon file and a database. The configured formats agree with the stored
/// formats.
struct ReadyFolder {
    // The fields are dropped in this order, so the lock is released last.
    database: Arc<Database>,
    horizon: HorizonFile,
    horizon_place: FilePlace,
    data_dir: Arc<DataDir>,
}

/// The reason why a data folder cannot be opened as the store of a node.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The folder cannot be used.
    #[error(transparent)]
    Folder(#[from] DataDirError),
    /// The horizon cannot be used.
    #[error(transparent)]
    Horizon(#[from] HorizonError),
    /// The folder has a database but no horizon file. The horizon file is always created before the
    /// database, so it was lost.
    #[error(
        "{} is missing, although a database exists that is created after it; move it back, or start with --floor \
         and an instant at or above which no id was ever issued", .path.display()
    )]
    HorizonMissing {
        /// The path where the horizon should be.
        path: PathBuf,
    },
    /// The horizon file says that a database was created, but the folder has none. So the database
    /// was lost, together with its formats and records.
    #[error(
        "{} is missing, although the horizon refers to it; move it back, or restore a good copy; without this file, \
         changes of formats are not detected: leave the formats unchanged, and start with --floor and an instant at or \
         above which no id was ever issued", .path.display()
    )]
    DatabaseMissing {
        /// The path where the database should be.
        path: PathBuf,
    },
    /// A fleet is adopting the node of this folder, or has adopted it. The fleet mints with the
    /// node's worker numbers, so no single node may mint in this folder any more.
    #[error("{}", adopted(.path, .note.as_deref()))]
    Adopted {
        /// The path of the data folder.
        path: PathBuf,
        /// The adoption note, or `None` if it was lost.
        note: Option<Box<AdoptionNote>>,
    },
    /// A fleet node has minted in this folder. The fleet uses this node's worker numbers, and the
    /// folder does not show up to which time the fleet has issued ids.
    #[error(
        "{} was left by a node of a fleet, and storage.engine is \"embedded\": this node would mint with worker \
         numbers of that fleet; start with --floor and an instant at or above which that fleet issued no id, or give \
         this node another storage.data_dir", .path.display()
    )]
    FormerFleet {
        /// The file that the fleet node left.
        path: PathBuf,
    },
    /// The adoption note cannot be read.
    #[error(transparent)]
    Note(#[from] NoteUnreadable),
    /// The start does not take a restore of the folder into account. For example, a backup was
    /// restored to the folder, but no floor was stated for the start.
    #[error(transparent)]
    NotRestored(#[from] RestoreError),
    /// The database cannot be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

fn adopted(path: &Path, note: Option<&AdoptionNote>) -> String {
    let folder = path.display();
    let Some(AdoptionNote {
        namespace,
        endpoints,
        progress,
        ..
    }) = note
    else {
        return format!(
            "the node of {folder} was adopted by a fleet, and the file that names the fleet is missing: this node no \
             longer mints alone; start it with the configuration of its fleet"
        );
    };
    let fleet = format!("the fleet {namespace} at {}", endpoints.join(", "));
    match progress {
        AdoptionProgress::Done(_) => format!(
            "the node of {folder} was adopted by {fleet}: this node no longer mints alone; start it with the configuration of \
             that fleet (storage.engine = \"etcd\")"
        ),
        AdoptionProgress::Begun | AdoptionProgress::FloorRaised(_) => format!(
            "the node of {folder} is being adopted by {fleet}: this node no longer mints alone; run `idmint fleet adopt \
             {folder}` again, with the configuration of that fleet, until it reports success"
        ),
    }
}

impl OpenError {
    /// Returns the kind of failure, which determines the operator's next step.
    pub(crate) fn failure_kind(&self) -> FailureKind {
        match self {
            Self::Folder(error) => error.failure_kind(),
            Self::Horizon(error) => error.failure_kind(),
            Self::HorizonMissing { .. } | Self::DatabaseMissing { .. } => FailureKind::Damaged,
            Self::Adopted { .. } | Self::FormerFleet { .. } => FailureKind::Disagrees,
            Self::Note(error) => error.failure_kind(),
            Self::NotRestored(error) => error.failure_kind(),
            Self::Database(error) => error.failure_kind(),
        }
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> StoreError {
        StoreError::new(error.failure_kind(), error)
    }
}

impl Folder {
    /// Opens the folder `dir`, and reads the horizon of `slot`. If the folder is missing, it is
    /// created.
    ///
    /// A floor [for this start](StatedFloor::ForThisStart) is used only in these cases:
    /// - The horizon is missing, damaged, or belongs to another slot.
    /// - The horizon says that a database exists, but the database or its last commits are missing.
    /// - A fleet node has minted in the folder.
    ///
    /// In these cases a new horizon is written. The new horizon is set to the floor, or to the
    /// highest horizon that can still be read, if that is higher.
    ///
    /// # Errors
    /// Returns [`OpenError`] if the folder cannot be opened. Its
    /// [`failure_kind`](OpenError::failure_kind) determines the operator's next step.
    pub(crate) fn open(
        dir: &Path,
        slot: u32,
        floor: impl Into<StatedFloor>,
    ) -> Result<Folder, OpenError> {
        let data_dir = DataDir::open(dir)?;
        if let Some(note) = AdoptionNote::read(&data_dir.adoption_path())? {
            return Err(OpenError::Adopted {
                path: dir.to_owned(),
                note: Some(Box::new(note)),
            });
        }
        let files = data_dir.find()?;
        let note = RestoreNote::of(dir);
        let floor = note.floor_of_a_start(files, floor.into())?;
        let Some(horizon) = open_horizon(&data_dir, files, slot, floor)? else {
            return Ok(Folder::Empty(EmptyFolder { slot, data_dir }));
        };
        // The horizon is durable, so the floor in the note of a restore is no longer needed. If
        // this process is killed before the removal, the next start does it.
        note.remove()?;
        if !files.has_database() {
            return Ok(Folder::Reserved(Box::new(ReservedFolder {
                database: None,
                horizon,
                data_dir,
            })));
        }
        let open = |horizon: &HorizonFile| -> Result<Database, OpenError> {
            Ok(Database::open(
                &data_dir.database_path(),
                horizon.commit_mark()?,
            )?)
        };
        let (database, horizon) = match (open(&horizon), floor) {
            (Err(OpenError::Database(error @ DatabaseError::EndLost { .. })), Some(floor)) => {
                warn!(
                    floor_unix_ns = floor.get(),
                    "starting above the stated floor (--floor), because of this error: {error}"
                );
                let horizon = written_anew(&data_dir, files, slot, floor, Some(horizon.horizon()))?;
                (open(&horizon)?, horizon)
            }
            (database, _) => (database?, horizon),
        };
        Ok(Folder::Reserved(Box::new(ReservedFolder {
            database: Some(database),
            horizon,
            data_dir,
        })))
    }
}

impl From<Folder> for Opened {
    fn from(folder: Folder) -> Opened {
        match folder {
            Folder::Empty(folder) => Opened::first(folder),
            Folder::Reserved(folder) => {
                Opened::again(folder.horizon.horizon(), folder.horizon.floor(), *folder)
            }
        }
    }
}

impl EmptyEngine for EmptyFolder {
    fn create_horizon(
        self: Box<Self>,
        plan: &HorizonPlan,
    ) -> Result<Box<dyn ReservedEngine>, StoreError> {
        let EmptyFolder { slot, data_dir } = *self;
        let (horizon, floor) = (plan.horizon(), plan.floor());
        let record = HorizonRecord {
            slot,
            sequence: 0,
            horizon,
            floor,
            has_records: false,
            is_adopted: false,
        };
        let horizon = HorizonFile::create(&data_dir.horizon_path(), record)?;
        Ok(Box::new(ReservedFolder {
            database: None,
            horizon,
            data_dir,
        }))
    }
}

impl ReservedEngine for ReservedFolder {
    /// Compares the configured formats with the stored ones, and returns an error if a stored
    /// format or the number of slots was changed. Creates the database if it does not exist.
    fn agree_on_formats(
        self: Box<Self>,
        slots: u32,
        formats: &[KeptFormat],
    ) -> Result<Box<dyn ReadyEngine>, FormatsError> {
        let ReservedFolder {
            database,
            mut horizon,
            data_dir,
        } = *self;
        let database = match database {
            Some(database) => database,
            None => {
                let mark = horizon.commit_mark().map_err(StoreError::from)?;
                Database::create(&data_dir.database_path(), mark).map_err(StoreError::from)?
            }
        };
        FormatsTable::new(&database).agree(slots, formats)?;
        if let Some(floor) = horizon.stated_floor()
            && hold_numbers(&database, floor).map_err(StoreError::from)?
        {
            warn!(
                "series give no numbers until they are resumed, because acknowledged numbers may be missing after a \
                 start with --floor: resume each series with `idmint numbers resume SERIES --from N`"
            );
        }
        if !horizon.has_records() {
            horizon.note_records().map_err(StoreError::from)?;
        }
        let horizon_place = horizon.place().map_err(StoreError::from)?;
        let data_dir = Arc::new(data_dir);
        let database = Arc::new(database.locked_by(Arc::clone(&data_dir)));
        Ok(Box::new(ReadyFolder {
            database,
            horizon,
            horizon_place,
            data_dir,
        }))
    }
}

impl ReadyEngine for ReadyFolder {
    fn raise_horizon(&mut self, horizon: UnixNanos) -> Result<(), StoreError> {
        self.check_in_place()?;
        self.horizon.check_unchanged()?;
        self.horizon.raise(horizon)?;
        // Check again that the files of this node were not replaced. Ids may be minted only if the
        // next start will find the raised horizon.
        Ok(self.check_in_place()?)
    }

    fn records(&self) -> Result<Records, StoreError> {
        Ok(Arc::new(RecordTables::open(Arc::clone(&self.database))?))
    }
}

impl ReadyFolder {
    /// Checks that the paths still lead to the opened files, so that the next start finds them.
    fn check_in_place(&self) -> Result<(), Displaced> {
        self.data_dir.check_in_place()?;
        self.horizon_place.check()?;
        self.database.check_in_place()
    }
}

/// Opens the file with the horizon, the time up to which ids may be minted. Returns `None` at a
/// first start, because the file does not exist yet.
fn open_horizon(
    data_dir: &DataDir,
    files: FoundFiles,
    slot: u32,
    floor: Option<UnixNanos>,
) -> Result<Option<HorizonFile>, OpenError> {
    let path = data_dir.horizon_path();
    let written_anew = |floor, found| written_anew(data_dir, files, slot, floor, found);
    if files.has_horizon() {
        // First check if a fleet has adopted the node. The fleet mints with the node's worker
        // numbers, so neither another slot nor a floor helps.
        if is_noted_as_adopted(&path) {
            return Err(OpenError::Adopted {
                path: data_dir.path().to_owned(),
                note: None,
            });
        }
        return match (HorizonFile::open(&path, slot), floor) {
            (Ok((file, _)), floor) if file.has_records() && !files.has_database() => {
                let missing = OpenError::DatabaseMissing {
                    path: data_dir.database_path(),
                };
                let floor = floor.ok_or(missing)?;
                warn!(
                    path = %path.display(),
                    floor_unix_ns = floor.get(),
                    "starting above the stated floor (--floor), because the database is missing"
                );
                Ok(Some(written_anew(floor, Some(file.horizon()))?))
            }
            (Ok((file, damage)), _) => {
                if let Some(floor) = floor {
                    warn!(
                        floor_unix_ns = floor.get(),
                        "the stated floor (--floor) is ignored, because the horizon is intact; start without \
                         --floor next time"
                    );
                }
                if let Some(damage) = &damage {
                    warn!(path = %path.display(), "repaired {}: {damage}; check the disk", path.display());
                }
                Ok(Some(file))
            }
            (Err(error), Some(floor)) if yields_to_a_floor(&error) => {
                warn!(path = %path.display(), floor_unix_ns = floor.get(), "starting above the stated floor \
                    (--floor), because of this error: {error}");
                Ok(Some(written_anew(floor, highest_readable(&path))?))
            }
            (Err(error), _) => Err(error.into()),
        };
    }
    let fleet = FormerFleet::find(data_dir.path()).map_err(|cause| DataDirError::NotUsable {
        path: data_dir.path().to_owned(),
        step: "look into",
        cause,
    })?;
    match (files.has_database(), floor) {
        (_, Some(floor)) => {
            warn!(
                path = %path.display(),
                floor_unix_ns = floor.get(),
                "starting above the stated floor (--floor), because the folder has no horizon"
            );
            Ok(Some(written_anew(
                floor,
                fleet.and_then(|fleet| fleet.highest),
            )?))
        }
        (true, None) => Err(OpenError::HorizonMissing { path }),
        (false, None) => match fleet {
            Some(FormerFleet { path, .. }) => Err(OpenError::FormerFleet { path }),
            None => Ok(None),
        },
    }
}

/// Writes a new horizon file. Its horizon is the floor that the operator has set, or the horizon
/// `found` if that is higher, plus a random time below 1 ms. The new file has no commit mark, so
/// this start cannot detect whether the last commits were lost.
///
/// The floor identifies the hold on numbers that this start sets. Two restores can have the same
/// floor, for example if no id was minted in between, so the random time makes their floors differ.
/// Otherwise a hold that an operator has ended would also end the hold of the later restore.
fn written_anew(
    data_dir: &DataDir,
    files: FoundFiles,
    slot: u32,
    floor: UnixNanos,
    found: Option<UnixNanos>,
) -> Result<HorizonFile, HorizonError> {
    let floor = floor
        .max(found.unwrap_or_default())
        .after(Duration::from_nanos(rand::random_range(1..1_000_000)));
    let has_records = files.has_database();
    let record = HorizonRecord {
        slot,
        sequence: 0,
        horizon: floor,
        floor: Some(floor),
        has_records,
        is_adopted: false,
    };
    HorizonFile::create(&data_dir.horizon_path(), record)
}

/// Returns `true` if, after this error, an operator's floor may replace the stored horizon.
fn yields_to_a_floor(error: &HorizonError) -> bool {
    match error {
        HorizonError::BothCopiesDamaged { .. }
        | HorizonError::CopiesDisagree { .. }
        | HorizonError::OtherSlot { .. } => true,
        // `UnknownVersion`: the file is intact, and another version of this program can read its
        // horizon. So an operator's floor must not replace this horizon.
        HorizonError::UnknownVersion { .. }
        | HorizonError::Changed { .. }
        | HorizonError::NotOpened { .. }
        | HorizonError::NotWritten { .. }
        | HorizonError::Poisoned { .. } => false,
    }
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
