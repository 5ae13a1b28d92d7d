//! Who may mint: worker slots of a fleet, leased from a coordinator that its nodes share.
//!
//! ```text
//! token, fleet_keys, stored/     what is stored, and where
//! agreement, survey              what a node reads of it: the formats of the fleet, and the slots it may take
//! slot_lease/                    the protocol of a slot: what to send next, and what became of it; no I/O, no clock
//! slot_tenure                    what that means for minting: sessions begin, go on, end
//! slot_keeper                    the thread that sends
//! adoption/                      how the node of a folder moves into a fleet
//! simulation/                    many nodes over a coordinator that fails in every way, as tests
//! ```
//!
//! Leases and clocks decide who works and when to stop. They never decide uniqueness: the horizon of a slot does, which
//! only a transaction moves that compares the revision it was decided on, and never back.

mod fleet_keys;
mod stored;
mod token;

mod agreement;
mod survey;

mod slot_lease;

mod slot_keeper;
mod slot_tenure;

mod adoption;

#[cfg(test)]
mod simulation;

pub use adoption::{Adopted, AdoptedRecords, Adoption, AdoptionError, AdoptionStep};
pub use fleet_keys::FleetKeys;
pub use slot_keeper::{RequestOutcome, SlotCounts, SlotKeeper};

pub use slot_lease::{LeaseRule, NodeName};
pub use token::{Entropy, Token};
