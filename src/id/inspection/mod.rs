//! A verdict on a column of texts: one id is ambiguous, a thousand are not.
//!
//! An [`IdColumn`] takes the lines one after the other and keeps a bounded sample of them. What explains the sample in the
//! fewest bits is what the column is, if nothing else comes near: see `explanation.rs`.

mod code_length;
mod column;
mod explanation;
mod fingerprint;
mod verdict;

pub use column::IdColumn;
pub use fingerprint::Fingerprint;
pub use verdict::{Candidate, Certainty, Finding, Untold, Verdict};
