//! Rows as bytes: what is written, and whether what is read is that.

pub(super) mod anchor_row;
pub(super) mod append_row;
pub(super) mod tally_row;
