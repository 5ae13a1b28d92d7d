//! Properties of formats, decoding and minting, which are tested with generated inputs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod catalog;
mod encoding;
mod exclusions;
mod inspection;
mod laws;
mod monotonic;
mod oracles;
mod patterns;
mod prefixes;
mod published;
mod ranges;
mod ranking;
mod restarts;
mod rows;
mod spread;
mod texts;
mod uniqueness;
mod vectors;

/// The time at which ids are decoded in tests that do not depend on it.
const NOW: idmint_core::time::UnixNanos = idmint_core::time::UnixNanos::from_seconds(1_800_000_000);
