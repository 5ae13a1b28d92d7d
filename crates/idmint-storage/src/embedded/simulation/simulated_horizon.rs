//! A store for tests of code that waits until a new horizon is written. The disk is simulated.

use std::path::Path;

use super::simulated_disk::SimulatedDisk;
use crate::embedded::block_file::BlockFile;
use crate::embedded::horizon::{HorizonFile, HorizonRecord};
use crate::failure::{FailureKind, StoreError};
use crate::kept_formats::{FormatsError, KeptFormat};
use crate::records::Records;
use crate::samples;
use crate::start::{EmptyEngine, Opened, ReadyEngine, ReservedEngine};
use idmint_core::minting::HorizonPlan;
use idmint_core::time::UnixNanos;

/// A store in memory, except for its horizon file. That file is on a simulated disk.
#[derive(Debug)]
pub struct SimulatedHorizon(SimulatedDisk);

/// A horizon file on a simulated disk.
#[derive(Debug)]
struct Reserved(HorizonFile<SimulatedDisk>);

impl SimulatedHorizon {
    /// Opens a store on this disk, as at a first start.
    pub fn on(disk: SimulatedDisk) -> Opened {
        Opened::first(SimulatedHorizon(disk))
    }
}

impl EmptyEngine for SimulatedHorizon {
    fn create_horizon(
        self: Box<Self>,
        plan: &HorizonPlan,
    ) -> Result<Box<dyn ReservedEngine>, StoreError> {
        let (horizon, floor) = (plan.horizon(), plan.floor());
        let record = HorizonRecord {
            slot: 0,
            sequence: 0,
            horizon,
            floor,
            has_records: true,
            is_adopted: false,
        };
        let written = (0..2).try_for_each(|copy| self.0.write_block(copy, &record.to_block()));
        let synced = written.and_then(|()| self.0.sync());
        synced.map_err(|cause| StoreError::new(FailureKind::of_io(&cause), cause))?;
        let (horizon, _) = HorizonFile::read_from(self.0, Path::new("simulated"), 0)?;
        Ok(Box::new(Reserved(horizon)))
    }
}

impl ReservedEngine for Reserved {
    fn agree_on_formats(
        self: Box<Self>,
        _: u32,
        _: &[KeptFormat],
    ) -> Result<Box<dyn ReadyEngine>, FormatsError> {
        Ok(self)
    }
}

impl ReadyEngine for Reserved {
    fn raise_horizon(&mut self, horizon: UnixNanos) -> Result<(), StoreError> {
        Ok(self.0.raise(horizon)?)
    }

    fn records(&self) -> Result<Records, StoreError> {
        samples::memory_records()
    }
}
