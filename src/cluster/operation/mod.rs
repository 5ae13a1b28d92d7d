//! What an operator does to a fleet, by commands.
//!
//! ```text
//! renewals         what is seen of nodes that renew their slots: where their clocks are
//! fleet_slots      what is known of each slot
//! fleet_problems   what is wrong with them, and what to do about it
//! fleet_status     who holds which slot, how right the clocks are, what is wrong
//! restore_fence    a coordinator that has lost something is used again, above all that was minted
//! adoption/        the node of a folder moves in
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
pub use fleet_problems::{FleetProblem, problem_of_shares};
pub use fleet_slots::{AgreedFleet, Holder, Slot, SlotState};
pub use fleet_status::{FleetStatus, FleetWatch, Unseen};
pub use renewals::ClockBounds;
pub use restore_fence::{
    FenceError, FenceRule, RestoreFence, fence_restored, origin_of_restored, raise_restored_floor,
};
