//! What a user sees, one file per behaviour.
#![cfg(feature = "server")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod bad_input;
mod bad_settings;
#[path = "../vectors/cases.rs"]
mod cases;
mod cdm;
#[path = "../vectors/chains.rs"]
mod chains;
mod conjunction;
mod connections;
mod decode;
mod decode_many;
mod draining;
mod edge;
mod formats;
#[path = "../http1/mod.rs"]
mod http1;
mod http2;
mod ledger_pages;
mod ledgers;
mod lost_answers;
mod mint;
mod overload;
mod ruler;
mod service;
mod sites;
mod support;
mod verify;
