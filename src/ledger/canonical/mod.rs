//! Canonical JSON: one text for all JSON texts of the same value.

mod byte_runs;
mod json;
mod number;
mod scanner;
mod string;

pub(in crate::ledger) use byte_runs::line_len;
pub(in crate::ledger) use json::CanonicalJson;
pub use json::canonical_json;
pub(in crate::ledger) use scanner::Scanner;
