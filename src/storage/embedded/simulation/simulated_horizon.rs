//! A store whose horizon is on a simulated disk, for tests of what waits for it.

use std::path::Path;

use super::simulated_disk::SimulatedDisk;
use crate::minting::HorizonPlan;
use crate::storage::embedded::block_file::BlockFile;
use crate::storage::embedded::horizon::{HorizonFile, HorizonRecord};
use crate::storage::failure::{FailureKind, StoreError};
use crate::storage::fleet::FleetRecords;
use crate::storage::kept_formats::{FormatsError, KeptFormat};
use crate::storage::records::Records;
use crate::storage::start::{EmptyEngine, Opened, ReadyEngine, ReservedEngine};
use crate::time::UnixNanos;

/// A disk without a horizon, of slot 0. The records beside it are in memory.
#[derive(Debug)]
pub(crate) struct SimulatedHorizon(SimulatedDisk);

/// The same with a horizon.
#[derive(Debug)]
struct Reserved(HorizonFile<SimulatedDisk>);

impl SimulatedHorizon {
    /// A store on this disk, as a first start finds it.
    pub(crate) fn on(disk: SimulatedDisk) -> Opened {
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
        Ok(std::sync::Arc::new(FleetRecords::in_memory()))
    }
}
