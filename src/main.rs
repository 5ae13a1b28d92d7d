//! The `idmint` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    idmint::cli::run()
}
