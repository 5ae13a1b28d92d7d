//! A database on a simulated disk, so that it can lose its power too.
//!
//! Each block of its file is written, torn and lost on its own. A byte of a write that was cut off is the old one or the new
//! one, which is what the engine asks of a disk.

use std::sync::Arc;

use super::simulated_disk::SimulatedDisk;
use crate::storage::embedded::tables::{Database, RecordTables};
use crate::storage::failure::StoreError;
use crate::storage::records::Records;

/// Blocks of the log: so few that it begins anew every few commits.
const LOG_LEN: u32 = 5;

/// One database on a disk. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedDatabase {
    disk: Arc<SimulatedDisk>,
}

impl SimulatedDatabase {
    /// An empty disk, whose misfortunes follow from `seed`.
    pub(crate) fn new(seed: u64) -> SimulatedDatabase {
        SimulatedDatabase {
            disk: Arc::new(SimulatedDisk::holding(&[], seed).without_garbage()),
        }
    }

    /// The records in it, which are made new if it is empty.
    pub(crate) fn open_records(&self) -> Result<Records, StoreError> {
        let disk = Arc::clone(&self.disk);
        let database = Database::over(disk, LOG_LEN, "simulated")?;
        Ok(Arc::new(RecordTables::open(Arc::new(database))?))
    }

    /// The disk that it is on.
    pub(crate) fn disk(&self) -> &SimulatedDisk {
        &self.disk
    }
}
