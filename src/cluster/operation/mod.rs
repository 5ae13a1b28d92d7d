//! What an operator does to a fleet, by commands.
//!
//! ```text
//! fleet_status     who holds which slot, how right the clocks are, what is wrong
//! restore_fence    a coordinator that has lost something is used again, above all that was minted
//! adoption/        the node of a folder moves in
//! ```

mod adoption;
mod fleet_status;
mod restore_fence;

#[cfg(test)]
mod samples;

pub use adoption::{Adopted, AdoptedRecords, Adoption, AdoptionError, AdoptionStep};
pub use fleet_status::{AgreedFleet, FleetStatus, FleetWatch, Holder, Problem, Slot, SlotState, problem_of_shares};
pub use restore_fence::{
    FenceError, FenceRule, RestoreFence, fence_restored, origin_of_restored, raise_restored_floor,
};
