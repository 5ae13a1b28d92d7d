//! `idmint ledger`: events whose ids chain by checksum.

mod verify;

use clap::{Args, Subcommand};

use super::exit::Failure;

/// Work with ledgers of events.
#[derive(Debug, Args)]
pub(super) struct Ledger {
    #[command(subcommand)]
    command: LedgerCommand,
}

#[derive(Debug, Subcommand)]
enum LedgerCommand {
    /// Say whether a chain of events holds, offline: exit code 0 or 65.
    Verify(verify::Verify),
}

impl Ledger {
    /// Runs the command that was named.
    ///
    /// # Errors
    /// As that command.
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            LedgerCommand::Verify(verify) => verify.run(),
        }
    }
}
