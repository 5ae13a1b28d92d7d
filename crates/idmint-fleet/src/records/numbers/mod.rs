//! The numbers of series that the nodes of a fleet share.
//!
//! ```text
//! rows           the byte format of rows
//! series         reads of series, numbers and void numbers
//! number_draft   comparisons and writes of one transaction
//! hold           the hold after a fence that may have lost numbers
//! closing        the check before a series is closed
//! ```

mod closing;
mod hold;
mod number_draft;
mod rows;
mod series;

pub(crate) use hold::hold_numbers;
pub(super) use number_draft::{NumberDraft, NumbersNeed, put_commit, put_forms, remove_wrong};
pub(super) use rows::{
    GivenCommit, VoidRow, commit_of_bytes, commit_to_bytes, form_of_bytes, form_to_bytes,
    key_to_bytes, series_of_bytes, series_to_bytes, void_of_bytes, void_to_bytes,
};
