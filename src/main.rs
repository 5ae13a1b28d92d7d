//! The `idmint` command.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// Gives memory back to the system soon after a flood of callers is over, which the system's own keeps.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    idmint::cli::run()
}
