//! Records of a node that moves into a fleet, as they are.

mod adopted_batch;
mod number_adopter;
mod record_adopter;

pub(super) use adopted_batch::write_lists;
pub use record_adopter::{AdoptError, AdoptedCount, RecordAdopter};
