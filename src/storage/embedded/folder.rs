//! What one node keeps in its folder, from the lock to the records.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracing::warn;

use super::adoption_note::{AdoptionNote, AdoptionProgress, NoteUnreadable};
use super::data_dir::{DataDir, DataDirError, FoundFiles};
use super::file_place::{Displaced, FilePlace};
use super::fleet_folder::FormerFleet;
use super::horizon::{HorizonError, HorizonFile, HorizonRecord, highest_readable};
use super::tables::{Database, DatabaseError, FormatsTable, RecordTables};
use crate::minting::HorizonPlan;
use crate::storage::failure::{FailureKind, StoreError};
use crate::storage::kept_formats::{FormatsError, KeptFormat};
use crate::storage::records::Records;
use crate::storage::start::{EmptyEngine, Opened, ReadyEngine, ReservedEngine};
use crate::time::UnixNanos;

/// A folder that was opened. It is locked for as long as the value lives.
pub(in crate::storage) enum Folder {
    /// It has neither horizon nor database.
    Empty(EmptyFolder),
    /// It has a horizon.
    Reserved(Box<ReservedFolder>),
}

/// The folder of a first start.
pub(in crate::storage) struct EmptyFolder {
    slot: u32,
    data_dir: DataDir,
}

/// A folder with a horizon.
pub(in crate::storage) struct ReservedFolder {
    // The order of the fields is the order of closing: the lock goes last.
    /// `None` when a first start ended before the database was created.
    database: Option<Database>,
    horizon: HorizonFile,
    data_dir: DataDir,
}

/// A folder with everything in it.
struct ReadyFolder {
    // As above.
    database: Arc<Database>,
    horizon: HorizonFile,
    horizon_place: FilePlace,
    data_dir: Arc<DataDir>,
}

/// Why the folder cannot be opened as a store.
#[derive(Debug, thiserror::Error)]
pub(in crate::storage) enum OpenError {
    /// The folder itself.
    #[error(transparent)]
    Folder(#[from] DataDirError),
    /// The horizon.
    #[error(transparent)]
    Horizon(#[from] HorizonError),
    /// The database is there and the horizon is not, although it is created first: it has been lost.
    #[error(
        "{} is missing beside a database that is created after it; move it back if it was moved, or start with --floor \
         and an instant at or above which no id was ever issued", .path.display()
    )]
    HorizonMissing {
        /// Where the horizon should be.
        path: PathBuf,
    },
    /// The horizon knows of a database that is not there: it has been lost, and with it the formats, ledgers and anchors.
    #[error(
        "{} is missing beside a horizon that knows of it; move it back if it was moved, or put a good copy in its place; \
         without one nothing tells whether the formats are what they were: leave them as they are, and start with --floor \
         and an instant at or above which no id was ever issued", .path.display()
    )]
    DatabaseMissing {
        /// Where the database should be.
        path: PathBuf,
    },
    /// A fleet adopts the node, or has: its ids go on there, and nothing is minted on this folder any more.
    #[error("{}", adopted(.path, .note.as_deref()))]
    Adopted {
        /// The folder.
        path: PathBuf,
        /// What it says of the fleet; `None` if that was lost.
        note: Option<Box<AdoptionNote>>,
    },
    /// A node of a fleet has minted here: nothing tells how far the fleet has, by the same worker numbers.
    #[error(
        "{} was left by a node of a fleet, and storage.engine is \"embedded\": ids of the fleet have the worker numbers that this \
         node would mint with; start with --floor and an instant at or above which nobody in that fleet issued an id, or give \
         this node another storage.data_dir", .path.display()
    )]
    FormerFleet {
        /// What says so.
        path: PathBuf,
    },
    /// Which fleet that is cannot be read.
    #[error(transparent)]
    Note(#[from] NoteUnreadable),
    /// The database.
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
            "the node of {folder} was adopted by a fleet, and a file that says which is missing: nothing is minted here any \
             more; start it with the configuration of its fleet"
        );
    };
    let fleet = format!("the fleet {namespace} at {}", endpoints.join(", "));
    match progress {
        AdoptionProgress::Done(_) => format!(
            "the node of {folder} was adopted by {fleet}: nothing is minted here any more; start it with the configuration of \
             that fleet (storage.engine = \"etcd\")"
        ),
        AdoptionProgress::Begun | AdoptionProgress::FloorRaised(_) => format!(
            "the node of {folder} is being adopted by {fleet}: nothing is minted here any more; run `idmint fleet adopt \
             {folder}` again, with the configuration of that fleet, until it says that all is there"
        ),
    }
}

impl OpenError {
    /// What kind of failure this is.
    pub(in crate::storage) fn failure_kind(&self) -> FailureKind {
        match self {
            Self::Folder(error) => error.failure_kind(),
            Self::Horizon(error) => error.failure_kind(),
            Self::HorizonMissing { .. } | Self::DatabaseMissing { .. } => FailureKind::Damaged,
            Self::Adopted { .. } | Self::FormerFleet { .. } => FailureKind::Disagrees,
            Self::Note(error) => error.failure_kind(),
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
    /// Opens the folder `dir`, creating it if need be, and reads the horizon of `slot`.
    ///
    /// `floor` is an operator's word that no id at or above that instant was ever issued. It is used only where what is
    /// kept does not suffice: the horizon is missing, damaged, or of another slot, or the database that it knows of is
    /// missing or has lost its end, or a node of a fleet has minted in the folder. The horizon is then written anew at the
    /// floor, or at the highest value still readable if that is higher.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::failure_kind`] says whose it is.
    pub(in crate::storage) fn open(
        dir: &Path,
        slot: u32,
        floor: Option<UnixNanos>,
    ) -> Result<Folder, OpenError> {
        let data_dir = DataDir::open(dir)?;
        if let Some(note) = AdoptionNote::read(&data_dir.adoption_path())? {
            return Err(OpenError::Adopted {
                path: dir.to_owned(),
                note: Some(Box::new(note)),
            });
        }
        let files = data_dir.find()?;
        let Some(horizon) = open_horizon(&data_dir, files, slot, floor)? else {
            return Ok(Folder::Empty(EmptyFolder { slot, data_dir }));
        };
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
                    "starting above the stated floor: {error}"
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
    /// Creates the database if there is none.
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
        // Again: only what a start will find may be minted on.
        Ok(self.check_in_place()?)
    }

    fn records(&self) -> Result<Records, StoreError> {
        Ok(Arc::new(RecordTables::open(Arc::clone(&self.database))?))
    }
}

impl ReadyFolder {
    /// Whether a start would find the files that this process works with.
    fn check_in_place(&self) -> Result<(), Displaced> {
        self.data_dir.check_in_place()?;
        self.horizon_place.check()?;
        self.database.check_in_place()
    }
}

/// The horizon in the folder; `None` at a first start.
fn open_horizon(
    data_dir: &DataDir,
    files: FoundFiles,
    slot: u32,
    floor: Option<UnixNanos>,
) -> Result<Option<HorizonFile>, OpenError> {
    let path = data_dir.horizon_path();
    let written_anew = |floor, found| written_anew(data_dir, files, slot, floor, found);
    if files.has_horizon() {
        return match (HorizonFile::open(&path, slot), floor) {
            (Ok((file, _)), _) if file.is_adopted() => Err(OpenError::Adopted {
                path: data_dir.path().to_owned(),
                note: None,
            }),
            (Ok((file, _)), floor) if file.has_records() && !files.has_database() => {
                let missing = OpenError::DatabaseMissing {
                    path: data_dir.database_path(),
                };
                let floor = floor.ok_or(missing)?;
                warn!(path = %path.display(), floor_unix_ns = floor.get(), "starting above the stated floor: no records");
                Ok(Some(written_anew(floor, Some(file.horizon()))?))
            }
            (Ok((file, damage)), _) => {
                if let Some(floor) = floor {
                    warn!(
                        floor_unix_ns = floor.get(),
                        "the stated floor is not needed: the horizon is good"
                    );
                }
                if let Some(damage) = &damage {
                    warn!(path = %path.display(), "repaired {}: {damage}; see to the disk", path.display());
                }
                Ok(Some(file))
            }
            (Err(error), Some(floor)) if yields_to_a_floor(&error) => {
                warn!(path = %path.display(), floor_unix_ns = floor.get(), "starting above the stated floor: {error}");
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
            warn!(path = %path.display(), floor_unix_ns = floor.get(), "starting above the stated floor: no horizon");
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

/// A horizon at a stated floor, or at what was found if that is higher; no commit is known to it.
fn written_anew(
    data_dir: &DataDir,
    files: FoundFiles,
    slot: u32,
    floor: UnixNanos,
    found: Option<UnixNanos>,
) -> Result<HorizonFile, HorizonError> {
    let floor = floor.max(found.unwrap_or_default());
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

/// Whether an operator's floor can stand in for what the file fails to say.
fn yields_to_a_floor(error: &HorizonError) -> bool {
    match error {
        HorizonError::BothCopiesDamaged { .. }
        | HorizonError::CopiesDisagree { .. }
        | HorizonError::OtherSlot { .. } => true,
        // An intact file of another version is not lost: that version can read it.
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
