//! What a user sees, one file per behaviour.
#![cfg(feature = "server")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod connections;
mod descriptors;
mod draining;
mod http2;
mod support;
