//! The `idmint` command.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// The allocator. After a flood of callers it soon returns memory to the operating system, unlike
/// the system's own allocator.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    idmint::cli::run()
}
