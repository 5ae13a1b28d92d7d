//! The engine of a single node: one folder with a lock, a horizon and a database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracing::warn;

use super::data_dir::{DataDir, DataDirError, FoundFiles};
use super::database::{Database, DatabaseError};
use super::formats_table::{FormatsError, FormatsTable, KeptFormat};
use super::horizon_file::{Damage, HorizonError, HorizonFile, highest_readable_unix_ns};
use crate::storage::store::FoundHorizon;
use crate::storage::trouble::Trouble;

/// Why the folder cannot be opened as a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
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
    /// The database.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl OpenError {
    /// What kind of trouble this is.
    pub fn trouble(&self) -> Trouble {
        match self {
            Self::Folder(error) => error.trouble(),
            Self::Horizon(error) => error.trouble(),
            Self::HorizonMissing { .. } => Trouble::Damaged,
            Self::Database(error) => error.trouble(),
        }
    }
}

/// What one node keeps in its folder. The folder is locked for as long as the value lives.
pub struct EmbeddedStore {
    // The order of the fields is the order of closing: the lock goes last.
    database: Option<Arc<Database>>,
    horizon: Horizon,
    repaired: Option<Damage>,
    slot: u32,
    data_dir: DataDir,
}

enum Horizon {
    /// A first start that has reserved nothing yet.
    NotYet,
    Kept(HorizonFile),
    /// The file could not be created. Whether it is there is unknown, so it is not tried again.
    Failed,
}

impl EmbeddedStore {
    /// Opens the folder `dir`, creating it if need be, and reads the horizon of `slot`.
    ///
    /// `floor` (nanoseconds since 1970-01-01T00:00:00Z) is an operator's word that no id at or above that instant was
    /// ever issued. It is used only where the horizon itself cannot be: missing, damaged, or of another slot. The
    /// file is then written anew at the floor, or at the highest value still readable in it if that is higher.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::trouble`] says whose it is.
    pub fn open(dir: &Path, slot: u32, floor: Option<u64>) -> Result<(EmbeddedStore, FoundHorizon), OpenError> {
        let data_dir = DataDir::open(dir)?;
        let files = data_dir.find()?;
        let (horizon, repaired) = open_horizon(&data_dir, files, slot, floor)?;
        let database = match files.has_database() {
            true => Some(Arc::new(Database::open(&data_dir.database_path())?)),
            false => None,
        };
        let found = match &horizon {
            Horizon::Kept(file) => FoundHorizon::At(file.horizon_unix_ns()),
            Horizon::NotYet | Horizon::Failed => FoundHorizon::None,
        };
        Ok((EmbeddedStore { database, horizon, repaired, slot, data_dir }, found))
    }

    /// The copy of the horizon that was found bad and repaired when the store was opened.
    pub fn repaired(&self) -> Option<&Damage> {
        self.repaired.as_ref()
    }

    /// Where records are.
    ///
    /// # Panics
    /// At a first start before [`agree_on_formats`](Self::agree_on_formats), which creates it.
    pub(in crate::storage) fn database(&self) -> Arc<Database> {
        Arc::clone(self.database.as_ref().expect("the formats are agreed on before there are records"))
    }

    /// Makes a new horizon (nanoseconds since 1970-01-01T00:00:00Z) durable. At a first start this creates the file.
    ///
    /// # Errors
    /// [`HorizonError::NotWritten`], and [`HorizonError::Poisoned`] ever after: stop the process.
    ///
    /// # Panics
    /// When `horizon_unix_ns` is below the present horizon; see [`HorizonFile::raise`].
    pub fn raise_horizon(&mut self, horizon_unix_ns: u64) -> Result<(), HorizonError> {
        match &mut self.horizon {
            Horizon::Kept(file) => file.raise(horizon_unix_ns),
            Horizon::Failed => Err(HorizonError::Poisoned { path: self.data_dir.horizon_path() }),
            Horizon::NotYet => {
                self.horizon = Horizon::Failed;
                let file = HorizonFile::create(&self.data_dir.horizon_path(), self.slot, horizon_unix_ns)?;
                self.horizon = Horizon::Kept(file);
                Ok(())
            }
        }
    }

    /// Holds the formats against those kept, and keeps new ones. Creates the database if there is none.
    ///
    /// # Errors
    /// As [`FormatsTable::agree`].
    ///
    /// # Panics
    /// When there is no horizon yet: at a first start [`raise_horizon`](Self::raise_horizon) comes before. A database
    /// without a horizon beside it means that the horizon was lost.
    pub fn agree_on_formats(&mut self, slots: u32, formats: &[KeptFormat]) -> Result<(), FormatsError> {
        let database = match self.database.take() {
            Some(database) => database,
            None => {
                let is_kept = matches!(self.horizon, Horizon::Kept(_));
                assert!(is_kept, "the database is created after the horizon");
                Arc::new(Database::create(&self.data_dir.database_path())?)
            }
        };
        let database = self.database.insert(database);
        FormatsTable::new(database).agree(slots, formats)
    }
}

fn open_horizon(
    data_dir: &DataDir,
    files: FoundFiles,
    slot: u32,
    floor: Option<u64>,
) -> Result<(Horizon, Option<Damage>), OpenError> {
    let path = data_dir.horizon_path();
    if files.has_horizon() {
        return match (HorizonFile::open(&path, slot), floor) {
            (Ok((file, damage)), _) => {
                if let Some(floor) = floor {
                    warn!(floor_unix_ns = floor, "the stated floor is not needed: the horizon is good");
                }
                if let Some(damage) = &damage {
                    warn!(path = %path.display(), "repaired {}: {damage}; see to the disk", path.display());
                }
                Ok((Horizon::Kept(file), damage))
            }
            (Err(error), Some(floor)) if yields_to_a_floor(&error) => {
                warn!(path = %path.display(), floor_unix_ns = floor, "starting above the stated floor: {error}");
                let readable = highest_readable_unix_ns(&path).unwrap_or(0);
                Ok((Horizon::Kept(HorizonFile::create(&path, slot, floor.max(readable))?), None))
            }
            (Err(error), _) => Err(error.into()),
        };
    }
    match (files.has_database(), floor) {
        (_, Some(floor)) => {
            warn!(path = %path.display(), floor_unix_ns = floor, "starting above the stated floor: no horizon");
            Ok((Horizon::Kept(HorizonFile::create(&path, slot, floor)?), None))
        }
        (true, None) => Err(OpenError::HorizonMissing { path }),
        (false, None) => Ok((Horizon::NotYet, None)),
    }
}

/// Whether an operator's floor can stand in for what the file fails to say.
fn yields_to_a_floor(error: &HorizonError) -> bool {
    match error {
        HorizonError::BothCopiesDamaged { .. }
        | HorizonError::CopiesDisagree { .. }
        | HorizonError::OtherSlot { .. } => true,
        // An intact file of another version is not lost: that version can read it.
        HorizonError::UnknownVersion { .. }
        | HorizonError::NotOpened { .. }
        | HorizonError::NotWritten { .. }
        | HorizonError::Poisoned { .. } => false,
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
