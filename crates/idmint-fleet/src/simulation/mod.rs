//! Simulates many nodes of a fleet in simulated time, with all kinds of faults of the coordinator,
//! the network and the clocks.
//!
//! The nodes run the production code: [`LeasedSlots`](super::leased_slots::LeasedSlots), the mint
//! and the clock. The network, the machines with their clocks, and the coordinator's leases and
//! leaders are simulated. Each seed determines one run. To repeat the run of seed 7, use
//! `SIMULATION_SEED=7 cargo test --lib simulation`.

mod appends;
mod faults;
mod mistake;
mod network;
mod node;
mod restore;
mod tests;
mod world;

use mistake::Mistake;
use world::{Tally, run, run_regions};
