//! Numbers of series that nodes share.
//!
//! ```text
//! rows           what is stored
//! series         what is read
//! number_round   what one transaction compares and writes
//! ```

mod number_round;
mod rows;
mod series;

pub(super) use number_round::{NumberRound, NumbersNeed, put_commit};
pub(super) use rows::{
    GivenCommit, VoidRow, commit_of_bytes, commit_to_bytes, key_to_bytes, series_to_bytes, void_of_bytes, void_to_bytes,
};
pub(super) use series::Found;
