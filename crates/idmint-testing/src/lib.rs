//! Internal to idmint: code that the tests and benchmarks of several crates share. Never published.
//!
//! * `cases`, `chains` and `chain_with_keys` contain the published vectors of the built-in formats,
//!   from `tests/vectors`.
//! * `service` runs the program as a process. `load`, `ids` and `numbering` simulate its callers.
//! * `http1` is an HTTP/1.1 client that sends and returns raw bytes.

#![allow(
    clippy::unwrap_used,
    clippy::new_without_default,
    missing_docs,
    reason = "a test that cannot go on has failed"
)]

pub mod any_id;
#[cfg(feature = "process")]
pub mod authority;
pub mod cases;
pub mod chain_with_keys;
pub mod chains;
#[cfg(feature = "process")]
pub mod excluding;
pub mod generated;
pub mod hostile_texts;
#[cfg(feature = "process")]
pub mod http1;
#[cfg(feature = "process")]
pub mod ids;
#[cfg(feature = "process")]
pub mod load;
pub mod loopback;
#[cfg(feature = "process")]
pub mod numbering;
#[cfg(feature = "process")]
pub mod service;
#[cfg(feature = "process")]
pub mod tls_client;

use std::ffi::OsString;

/// The root folder of the workspace.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Returns the path of the program. Cargo provides it to the tests and benchmarks of the package
/// `idmint`.
///
/// # Panics
/// Panics in tests of other packages.
pub fn program() -> OsString {
    std::env::var_os("CARGO_BIN_EXE_idmint").expect("cargo names the program to this test")
}
