//! The commands with which operators inspect, repair and extend a fleet.
//!
//! ```text
//! renewals         bounds on the nodes' clocks, computed from the renewals of their slots
//! fleet_slots      the known state of each slot
//! fleet_problems   problems of slots and clocks, with advice
//! fleet_status     holders of slots, errors of clocks, problems
//! restore_fence    lets a fleet continue above all minted ids after its coordinator lost data
//! adoption/        moves the node of a folder into the fleet
//! ```

mod adoption;
mod fleet_problems;
mod fleet_slots;
mod fleet_status;
mod renewals;
mod restore_fence;

#[cfg(test)]
mod samples;

pub use adoption::{Adopted, AdoptedRecords, Adoption, AdoptionError, AdoptionStep};
pub use fleet_problems::{FleetProblem, problem_of_members, problem_of_shares};
pub use fleet_slots::{AgreedFleet, Holder, Slot, SlotState};
pub use fleet_status::{FleetStatus, FleetWatch, Unseen};
pub use renewals::ClockBounds;
pub use restore_fence::{
    FenceError, FenceRule, RestoreFence, fence_restored, names_of_restored, raise_restored_floor,
};
