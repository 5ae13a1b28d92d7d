//! Determines the format of a column of texts. A single id can be ambiguous, but a thousand ids of
//! one format are not.
//!
//! An [`IdColumn`] receives the lines of the column one by one and keeps a sample of bounded size.
//! The verdict is the format that explains the sample in the fewest bits, unless another
//! explanation needs nearly as few. See `explanation.rs`.

mod code_length;
mod column;
mod explanation;
mod fingerprint;
mod verdict;

pub use column::IdColumn;
pub use fingerprint::Fingerprint;
pub use verdict::{Candidate, Certainty, Finding, Untold, Verdict};
