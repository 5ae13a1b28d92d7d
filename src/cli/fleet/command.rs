//! Which of the commands on fleets.

use clap::{Args, Subcommand};

use super::adopt::Adopt;
use crate::cli::exit::Failure;

/// Work with a fleet: nodes that share an etcd.
#[derive(Debug, Args)]
pub(in crate::cli) struct Fleet {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    Adopt(Adopt),
}

impl Fleet {
    /// Runs the command that was named.
    ///
    /// # Errors
    /// As that command.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        match self.command {
            FleetCommand::Adopt(adopt) => adopt.run(),
        }
    }
}
