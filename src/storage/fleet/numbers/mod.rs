//! Numbers of series that nodes share.
//!
//! ```text
//! rows           what is stored
//! series         what is read
//! number_draft   what one transaction compares and writes
//! ```

mod number_draft;
mod rows;
mod series;

pub(super) use number_draft::{NumberDraft, NumbersNeed, put_commit};
pub(super) use rows::{
    GivenCommit, VoidRow, commit_of_bytes, commit_to_bytes, key_to_bytes, series_to_bytes,
    void_of_bytes, void_to_bytes,
};
pub(super) use series::Found;
