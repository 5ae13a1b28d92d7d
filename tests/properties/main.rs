//! Laws that hold for all inputs.
#![cfg(feature = "server")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../vectors/cases.rs"]
mod cases;
mod encoding;
mod laws;
mod published;
mod restarts;
mod uniqueness;
mod vectors;
