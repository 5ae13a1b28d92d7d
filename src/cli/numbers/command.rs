//! Which of the commands on numbers.

use clap::{Args, Subcommand};

use super::export::Export;
use super::import::Import;
use super::list::List;
use super::next::Next;
use super::void::Void;
use crate::cli::exit::Failure;

/// Work with numbers without gaps.
#[derive(Debug, Args)]
pub(in crate::cli) struct Numbers {
    #[command(subcommand)]
    command: NumbersCommand,
}

#[derive(Debug, Subcommand)]
enum NumbersCommand {
    Next(Next),
    List(List),
    Void(Void),
    Export(Export),
    Import(Import),
}

impl Numbers {
    /// Runs the command that was named.
    ///
    /// # Errors
    /// As that command.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        match self.command {
            NumbersCommand::Next(next) => next.run(),
            NumbersCommand::List(list) => list.run(),
            NumbersCommand::Void(void) => void.run(),
            NumbersCommand::Export(export) => export.run(),
            NumbersCommand::Import(import) => import.run(),
        }
    }
}
