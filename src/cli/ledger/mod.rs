//! `idmint ledger`: commands for ledgers, which chain events by checksum.

mod append;
mod create;
mod event_file;
mod import;
mod verify;

use clap::Subcommand;

use self::append::Append;
use self::create::Create;
use self::import::Import;
use self::verify::Verify;
use crate::cli::exit::Failure;
use idmint_records::ledger::LedgerId;

/// Work with ledgers of events.
#[derive(Debug, Subcommand)]
pub(super) enum Ledger {
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
        match self {
            Ledger::Create(create) => create.run(),
            Ledger::Append(append) => append.run(),
            Ledger::Import(import) => import.run(),
            Ledger::Verify(verify) => verify.run(),
        }
    }
}

fn parse_ledger(text: &str) -> Result<LedgerId, String> {
    LedgerId::from_text(text).map_err(|_| format!("a ledger id must be {}", LedgerId::RULE))
}
