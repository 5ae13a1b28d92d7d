//! The one place that opens an engine.

use std::path::PathBuf;

use super::embedded::Folder;
use super::etcd::EtcdSettings;
use super::failure::{FailureKind, StoreError};
use super::memory::MemoryEngine;
use super::start::Opened;
use crate::time::UnixNanos;

/// The engine that keeps the state, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineChoice {
    /// Nothing lasts.
    Memory,
    /// Files in a folder, one process at a time.
    Embedded {
        /// The folder; it is created if need be.
        data_dir: PathBuf,
    },
    /// An etcd that the nodes of a fleet share.
    Etcd(EtcdSettings),
}

impl EngineChoice {
    /// Opens the store and reads the horizon of `slot`.
    ///
    /// `floor` is an operator's word that no id at or above that instant was ever issued. It is used only where the
    /// horizon itself cannot be: missing, damaged, or of another slot.
    ///
    /// # Errors
    /// [`StoreError`]; its kind says whose it is. In a fleet no slot is a process's own to open.
    pub fn open(&self, slot: u32, floor: Option<UnixNanos>) -> Result<Opened, StoreError> {
        match self {
            EngineChoice::Memory => Ok(MemoryEngine::default().open()),
            EngineChoice::Embedded { data_dir } => Ok(Folder::open(data_dir, slot, floor)?.into()),
            EngineChoice::Etcd(_) => Err(StoreError::new(
                FailureKind::Disagrees,
                "storage.engine = \"etcd\": this build leases no slots yet, so nothing can be minted; use \"embedded\"",
            )),
        }
    }
}
