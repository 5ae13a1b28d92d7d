//! Who may mint: worker slots of a fleet, leased from a coordinator that its nodes share.
//!
//! ```text
//! slot_share                     which slots a coordinator hands out
//! nonce, fleet_keys, stored/     what is stored, and where
//! agreement, slot_choice         what a node reads of it: the formats of the fleet, and the slots it may take
//! fleet_clocks                   the clocks of the other nodes, and whether its own may be believed
//! high_water/                    what the coordinator cannot take back, and how a node finds out that it has
//! slot_lease/                    the protocol of a slot: what to send next, and what became of it; no I/O, no clock
//! leased_slots                    what that means for minting: sessions begin, go on, end
//! slot_keeper                    the thread that sends
//! operation/                     what an operator does to a fleet, and moves into it
//! simulation/                    many nodes over a coordinator that fails in every way, as tests
//! ```
//!
//! Leases and clocks decide who works and when to stop. They never decide uniqueness: the horizon of a slot does, which
//! only a transaction moves that compares the revision it was decided on, and never back.

mod fleet_keys;
mod nonce;
mod slot_share;
mod stored;

mod agreement;
mod fleet_clocks;
mod high_water;
mod slot_choice;

mod slot_lease;

mod leased_slots;
mod slot_keeper;

mod operation;

#[cfg(test)]
mod simulation;

pub use fleet_keys::FleetKeys;
pub use high_water::{HighWater, KeptHighWater};
pub use operation::{
    Adopted, AdoptedRecords, Adoption, AdoptionError, AdoptionStep, AgreedFleet, ClockBounds,
    FenceError, FenceRule, FleetProblem, FleetStatus, FleetWatch, Holder, RestoreFence, Slot,
    SlotState, Unseen, fence_restored, origin_of_restored, problem_of_shares, raise_restored_floor,
};
pub use slot_share::{SlotRange, SlotShare};

pub use slot_keeper::{SlotCounts, SlotKeeper};

pub use nonce::{Entropy, Nonce};
pub use slot_lease::{ClockLimits, Founding, LeaseRule, NodeName, RequestOutcome, Unheard};
