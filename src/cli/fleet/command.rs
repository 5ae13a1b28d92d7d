//! Which of the commands on a fleet.

use clap::{Args, Subcommand};

use super::adopt::Adopt;
use super::fence_restore::FenceRestore;
use super::status::Status;
use crate::cli::exit::Failure;

/// Work with a fleet: nodes that share an etcd.
#[derive(Debug, Args)]
pub(in crate::cli) struct Fleet {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    Status(Status),
    Adopt(Adopt),
    FenceRestore(FenceRestore),
}

impl Fleet {
    /// Runs the command that was named.
    ///
    /// # Errors
    /// As that command.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        match self.command {
            FleetCommand::Status(status) => status.run(),
            FleetCommand::Adopt(adopt) => adopt.run(),
            FleetCommand::FenceRestore(fence) => fence.run(),
        }
    }
}
