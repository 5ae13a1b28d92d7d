//! The `idmint` command.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

use std::process::ExitCode;

fn main() -> ExitCode {
    idmint::cli::run()
}
