//! Simulates many nodes of a fleet in simulated time. The coordinator, the network and the clocks
//! have every kind of fault.
//!
//! The nodes run the production code: [`LeasedSlots`](super::leased_slots::LeasedSlots), the mint
//! and the clock. The simulated parts are the network, the machines with their clocks, and the
//! coordinator's leases and leaders. Each seed is one run, which `SIMULATION_SEED=7 cargo test
//! --lib simulation` repeats.

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
