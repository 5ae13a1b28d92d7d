//! A disk for tests: it loses power, tears writes, fills up and fails on demand, and replays from a seed.

mod simulated_database;
mod simulated_disk;
mod simulated_files;
mod simulated_horizon;

pub(crate) use simulated_database::SimulatedDatabase;
pub(crate) use simulated_disk::{Fault, SimulatedDisk};
pub(crate) use simulated_files::{SimulatedFiles, Unsynced};
pub(crate) use simulated_horizon::SimulatedHorizon;
