//! The horizon of one slot, in a file of two copies.

mod horizon_block;
mod horizon_error;
mod horizon_file;

pub(super) use horizon_block::HorizonRecord;
pub(super) use horizon_error::HorizonError;
pub(super) use horizon_file::{HorizonFile, highest_readable, is_noted_as_adopted, kept_slot};
