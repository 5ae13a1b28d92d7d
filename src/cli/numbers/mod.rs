//! The commands `idmint numbers` for series of numbers without gaps, which a running service issues
//! and stores.

mod change;
mod export;
mod list;
mod resume;

use clap::{Args, Subcommand};

use self::change::{Close, Import, Next, Void};
use self::export::Export;
use self::list::List;
use self::resume::Resume;
use crate::cli::exit::Failure;

/// Work with numbers without gaps.
#[derive(Debug, Args)]
pub(super) struct Numbers {
    #[command(subcommand)]
    command: NumbersCommand,
}

#[derive(Debug, Subcommand)]
enum NumbersCommand {
    Next(Next),
    List(List),
    Void(Void),
    Close(Close),
    Export(Export),
    Import(Import),
    Resume(Resume),
}

impl Numbers {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// Returns the errors of the subcommand.
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            NumbersCommand::Next(next) => next.run(),
            NumbersCommand::List(list) => list.run(),
            NumbersCommand::Void(void) => void.run(),
            NumbersCommand::Close(close) => close.run(),
            NumbersCommand::Export(export) => export.run(),
            NumbersCommand::Import(import) => import.run(),
            NumbersCommand::Resume(resume) => resume.run(),
        }
    }
}
