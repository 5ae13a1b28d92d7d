//! Copies the records of a single node into a fleet, unchanged.

mod adopted_batch;
mod number_adopter;
mod record_adopter;

pub(super) use adopted_batch::write_lists;
pub(crate) use record_adopter::RecordAdopter;
pub use record_adopter::{AdoptError, AdoptedCount};
