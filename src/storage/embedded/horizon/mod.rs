//! The horizon of one slot, in a file of two copies.

mod horizon_block;
mod horizon_file;

pub(super) use horizon_block::HorizonRecord;
pub(super) use horizon_file::{HorizonError, HorizonFile, highest_readable};
