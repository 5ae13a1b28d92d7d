//! Records as bytes, for engines that keep bytes: what is written, and whether what is read is that.

pub(in crate::storage) mod append_row;
pub(in crate::storage) mod externals_row;
pub(in crate::storage) mod number_rows;
pub(in crate::storage) mod tally_row;
