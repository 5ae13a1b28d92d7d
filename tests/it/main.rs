//! What a user sees, one file per behaviour.
#![cfg(feature = "server")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod bad_input;
mod bad_settings;
mod blocks;
#[path = "../vectors/cases.rs"]
mod cases;
mod cdm;
#[path = "../vectors/chain_with_keys.rs"]
mod chain_with_keys;
#[path = "../vectors/chains.rs"]
mod chains;
mod confined;
mod conjunction;
mod connections;
mod decode;
mod decode_many;
mod designators;
mod draining;
mod edge;
mod encode;
mod formats;
mod histories;
mod host_policy;
#[path = "../http1/mod.rs"]
mod http1;
mod http2;
mod inspect;
mod ledger_pages;
mod ledgers;
mod lenient;
mod lost_answers;
mod mint;
mod noted;
mod numbers;
mod overload;
mod page;
mod partial;
mod prefixes;
mod register;
mod rows;
mod ruler;
mod service;
mod support;
mod tokens;
mod verify;
