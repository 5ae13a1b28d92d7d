//! `idmint ledger`: commands for ledgers, which chain events by checksum.

mod append;
mod create;
mod event_file;
mod import;
mod verify;

use clap::{Args, Subcommand};

use self::append::Append;
use self::create::Create;
use self::import::Import;
use self::verify::Verify;
use crate::cli::exit::Failure;

/// Work with ledgers of events.
#[derive(Debug, Args)]
pub(super) struct Ledger {
    #[command(subcommand)]
    command: LedgerCommand,
}

#[derive(Debug, Subcommand)]
enum LedgerCommand {
    Create(Create),
    Append(Append),
    Import(Import),
    Verify(Verify),
}

impl Ledger {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// Returns the errors of the subcommand.
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            LedgerCommand::Create(create) => create.run(),
            LedgerCommand::Append(append) => append.run(),
            LedgerCommand::Import(import) => import.run(),
            LedgerCommand::Verify(verify) => verify.run(),
        }
    }
}
