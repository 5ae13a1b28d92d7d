//! A simulated disk for tests. On demand it loses power, tears writes, becomes full or fails. A seed
//! makes every run repeatable.

mod simulated_database;
mod simulated_disk;
#[cfg(test)]
mod simulated_files;
mod simulated_horizon;

pub use simulated_database::SimulatedDatabase;
#[cfg(test)]
pub(crate) use simulated_disk::Fault;
pub use simulated_disk::SimulatedDisk;
#[cfg(test)]
pub(crate) use simulated_files::{SimulatedFiles, Unsynced};
pub use simulated_horizon::SimulatedHorizon;
