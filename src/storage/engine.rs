//! The one place that opens an engine.

use std::path::PathBuf;

use super::embedded::Folder;
use super::etcd::EtcdSettings;
use super::failure::StoreError;
use super::memory::MemoryEngine;
use super::start::Opened;
use crate::time::UnixNanos;

/// The engine that keeps the state, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineChoice {
    /// A process alone, which opens it by the slot that it has for good.
    Own(OwnEngine),
    /// An etcd that the nodes of a fleet share, and lease their slots from.
    Etcd(EtcdSettings),
}

/// An engine that one process has to itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnEngine {
    /// Nothing lasts.
    Memory,
    /// Files in a folder, one process at a time.
    Embedded {
        /// The folder; it is created if need be.
        data_dir: PathBuf,
    },
}

impl OwnEngine {
    /// Opens the store and reads the horizon of `slot`.
    ///
    /// `floor` is an operator's word that no id at or above that instant was ever issued. It is used only where the
    /// horizon itself cannot be: missing, damaged, or of another slot.
    ///
    /// # Errors
    /// [`StoreError`]; its kind says whose it is.
    pub fn open(&self, slot: u32, floor: Option<UnixNanos>) -> Result<Opened, StoreError> {
        match self {
            OwnEngine::Memory => Ok(MemoryEngine::new().open()),
            OwnEngine::Embedded { data_dir } => Ok(Folder::open(data_dir, slot, floor)?.into()),
        }
    }
}
