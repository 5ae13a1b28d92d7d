//! The horizon file of one slot. It has two copies of the horizon, followed by the number of the
//! last commit of the records.

mod commit_mark;
mod horizon_block;
mod horizon_error;
mod horizon_file;
#[cfg(test)]
mod lost_end_tests;

pub(super) use commit_mark::CommitMark;
pub(super) use horizon_block::HorizonRecord;
pub(super) use horizon_error::HorizonError;
pub(super) use horizon_file::{HorizonFile, highest_readable, is_noted_as_adopted, kept_slot};
