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
    /// A store in the files of a folder, which one process may use at a time.
    Embedded {
        /// The folder, which is created if it is missing.
        data_dir: PathBuf,
    },
}

impl OwnEngine {
    /// Opens the store and reads the horizon of `slot`, the time up to which it may mint.
    ///
    /// `floor` is the operator's assertion that no id at or above that instant was ever issued. The
    /// floor is used only if the stored state does not reliably show up to which time ids were
    /// issued. For example, the horizon may be damaged or belong to another slot.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be opened. [`StoreError::failure_kind`] tells the
    /// operator what to do.
    pub fn open(&self, slot: u32, floor: Option<UnixNanos>) -> Result<Opened, StoreError> {
        match self {
            OwnEngine::Memory => Ok(MemoryEngine::new()?.open()),
            OwnEngine::Embedded { data_dir } => Ok(Folder::open(data_dir, slot, floor)?.into()),
        }
    }
}
