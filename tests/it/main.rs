//! Tests the service as its users see it, with one file for each behaviour.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod bad_input;
mod bad_settings;
mod blocks;
mod cdm;
mod confined;
mod conjunction;
mod connections;
mod damaged;
mod decode;
mod decode_many;
mod designators;
mod detection;
mod draining;
mod edge;
mod encode;
mod formats;
mod fuzzed;
mod histories;
mod host_policy;
mod http2;
mod inspect;
mod ledger_pages;
mod ledgers;
mod lenient;
mod lists;
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
#[path = "../fuzz/subjects/mod.rs"]
mod subjects;
mod support;
mod tokens;
mod unlikely;
mod verify;
mod wrong_formats;
