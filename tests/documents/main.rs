//! Checks that the documents agree with the program: names, links, settings, metrics, examples, and
//! the HTTP interface.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod custom_formats;
mod formats;
mod front_page;
mod interface;
mod manifests;
mod numbers;
mod openapi_3_0;
mod permits;
mod references;
mod refusals;
mod schema;
mod service;
mod statements;
mod texts;
mod which_file;
