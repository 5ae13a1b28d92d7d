//! The configured store of a single process: in memory, or in a folder.

use std::path::PathBuf;

use crate::embedded::Folder;
use crate::failure::StoreError;
use crate::memory_engine::MemoryEngine;
use crate::start::Opened;
use idmint_core::time::UnixNanos;

/// A store that belongs to a single process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnEngine {
    /// A store in memory, which is lost when the process ends.
    Memory,
    /// A store in the files of a folder. Only one process may use the folder at a time.
    Embedded {
        /// The folder, which is created if it is missing.
        data_dir: PathBuf,
    },
}

/// A floor that an operator has stated. No id was ever minted at or above this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatedFloor {
    /// The operator has stated no floor.
    None,
    /// The floor was stated for this start with `--floor`. It is used only if the stored horizon is
    /// unusable, for example because it is damaged or belongs to another slot.
    ForThisStart(UnixNanos),
    /// The floor was stated for a restore, in the environment variable `IDMINT_FLOOR`. Only the
    /// first start after the restore uses it, because the variable may still be set months later.
    OfARestore(UnixNanos),
}

impl From<Option<UnixNanos>> for StatedFloor {
    fn from(floor: Option<UnixNanos>) -> StatedFloor {
        floor.map_or(StatedFloor::None, StatedFloor::ForThisStart)
    }
}

impl OwnEngine {
    /// Opens the store and reads the horizon of `slot`, the time up to which it may mint. If the
    /// horizon is lost or unusable, writes a new one at or above `floor` (see [`StatedFloor`]). A
    /// store in memory ignores `slot` and `floor`.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be opened, or needs a floor that was not stated.
    /// [`StoreError::failure_kind`] determines the operator's next step.
    pub fn open(&self, slot: u32, floor: impl Into<StatedFloor>) -> Result<Opened, StoreError> {
        match self {
            OwnEngine::Memory => Ok(MemoryEngine::new()?.open()),
            OwnEngine::Embedded { data_dir } => Ok(Folder::open(data_dir, slot, floor)?.into()),
        }
    }
}
