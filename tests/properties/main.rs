//! Laws that hold for all inputs.
#![cfg(feature = "server")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod any_id;
mod canonical;
#[path = "../vectors/cases.rs"]
mod cases;
mod cdm;
mod cdm_documents;
mod cdm_encodings;
#[path = "../vectors/chain_with_keys.rs"]
mod chain_with_keys;
#[path = "../vectors/chains.rs"]
mod chains;
mod detection;
mod encoding;
mod evently;
mod exclusions;
#[path = "../documents/generated.rs"]
mod generated;
mod grouping;
mod inspection;
mod laws;
mod monotonic;
mod oracles;
mod patterns;
mod prefixes;
mod published;
mod ranges;
mod ranking;
mod reports;
mod restarts;
mod rows;
mod spread;
mod texts;
mod uniqueness;
mod unlikely;
mod vectors;

/// The moment at which ids are decoded, where that does not matter.
const NOW: idmint::time::UnixNanos = idmint::time::UnixNanos::from_seconds(1_800_000_000);
