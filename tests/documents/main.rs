//! What is written about the program is true: names, links, settings, metrics, examples, and the interface.
#![cfg(feature = "server")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod formats;
mod generated;
mod interface;
mod openapi_3_0;
mod permits;
mod references;
mod schema;
mod service;
