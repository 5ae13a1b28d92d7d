//! `idmint ledger`: events whose ids chain by checksum.

mod append;
mod create;
mod event_file;
mod import;
mod patient_client;
mod verify;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};

use super::exit::Failure;

/// Work with ledgers of events.
#[derive(Debug, Args)]
pub(super) struct Ledger {
    #[command(subcommand)]
    command: LedgerCommand,
}

#[derive(Debug, Subcommand)]
enum LedgerCommand {
    Create(create::Create),
    Append(append::Append),
    Import(import::Import),
    Verify(verify::Verify),
}

impl Ledger {
    /// Runs the command that was named.
    ///
    /// # Errors
    /// As that command.
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            LedgerCommand::Create(create) => create.run(),
            LedgerCommand::Append(append) => append.run(),
            LedgerCommand::Import(import) => import.run(),
            LedgerCommand::Verify(verify) => verify.run(),
        }
    }
}

/// A bar for a file of at least `shown_from_len` bytes, if standard error is a terminal.
fn progress(len: u64, shown_from_len: u64) -> ProgressBar {
    if len < shown_from_len {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left");
    ProgressBar::new(len).with_style(style.expect("a template of known keys"))
}
