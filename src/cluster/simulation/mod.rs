//! Many nodes of a fleet, over a coordinator and clocks that fail in every way they can; time is simulated.
//!
//! The nodes are those of the product: [`LeasedSlots`](super::leased_slots::LeasedSlots), the mint, the clock. What is simulated
//! is the network, the coordinator's leases and leaders, the machines and their clocks. One seed is one run:
//! `SIMULATION_SEED=7 cargo test --lib simulation` repeats it.

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
