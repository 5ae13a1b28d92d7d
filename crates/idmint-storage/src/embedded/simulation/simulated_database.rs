//! A database on a simulated disk, for tests of power loss.
//!
//! Each block of the file is written, torn and lost independently. After an interrupted write, each
//! byte has either its old value or its new value. The engine requires this guarantee from a disk.

use std::sync::Arc;

use super::simulated_disk::SimulatedDisk;
use crate::embedded::tables::{Database, RecordTables};
use crate::failure::StoreError;
use crate::records::Records;

/// The length of the log in blocks, so small that the log restarts every few commits.
const LOG_LEN: u32 = 5;

/// A database on a simulated disk. Clones use the same disk.
#[derive(Debug, Clone)]
pub struct SimulatedDatabase {
    disk: Arc<SimulatedDisk>,
}

impl SimulatedDatabase {
    /// Returns a database on an empty disk. The seed determines the faults of the disk.
    pub fn new(seed: u64) -> SimulatedDatabase {
        SimulatedDatabase {
            disk: Arc::new(SimulatedDisk::holding(&[], seed).without_garbage()),
        }
    }

    /// Opens the records in the database, which is created first if the simulated disk is empty.
    pub fn open_records(&self) -> Result<Records, StoreError> {
        let disk = Arc::clone(&self.disk);
        let database = Database::over(disk, LOG_LEN, "simulated")?;
        Ok(Arc::new(RecordTables::open(Arc::new(database))?))
    }

    /// Returns the disk of the database.
    pub fn disk(&self) -> &SimulatedDisk {
        &self.disk
    }
}
