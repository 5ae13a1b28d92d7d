//! Which of the commands on ledgers.

use clap::{Args, Subcommand};

use super::append::Append;
use super::create::Create;
use super::import::Import;
use super::verify::Verify;
use crate::cli::exit::Failure;

/// Work with ledgers of events.
#[derive(Debug, Args)]
pub(crate) struct Ledger {
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
    /// Runs the command that was named.
    ///
    /// # Errors
    /// As that command.
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.command {
            LedgerCommand::Create(create) => create.run(),
            LedgerCommand::Append(append) => append.run(),
            LedgerCommand::Import(import) => import.run(),
            LedgerCommand::Verify(verify) => verify.run(),
        }
    }
}
