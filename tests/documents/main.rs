//! What is written about the program is true: names, links, settings, metrics, examples, and the interface.
#![cfg(feature = "server")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod custom_formats;
mod formats;
mod front_page;
mod generated;
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
