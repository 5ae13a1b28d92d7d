//! The `idmint` command.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// The memory allocator. Unlike the allocator of the system, it soon returns memory to the
/// operating system when the load falls after a peak.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    idmint::cli::run()
}
