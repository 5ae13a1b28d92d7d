//! Canonical JSON. All JSON texts with the same value have the same canonical text.

mod byte_runs;
mod json;
mod number;
mod scanner;
mod string;

pub(in crate::ledger) use byte_runs::line_len;
pub(in crate::ledger) use json::CanonicalJson;
pub use json::canonical_json;
pub(in crate::ledger) use scanner::Scanner;
