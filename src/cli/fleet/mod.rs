//! The commands `idmint fleet` for a fleet, which is a group of nodes that share an etcd. The
//! arguments exist in every build, but the commands work only in builds with the feature `etcd`.

#[cfg(feature = "etcd")]
mod adopt;
#[cfg(feature = "etcd")]
mod fence_restore;
#[cfg(feature = "etcd")]
mod reimport;
#[cfg(feature = "etcd")]
mod shared_etcd;
#[cfg(feature = "etcd")]
mod status;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::exit::Failure;
use crate::cli::settings::Settings;
use idmint_storage::EtcdEndpoint;

/// Work with a fleet: nodes that share an etcd.
#[derive(Debug, Subcommand)]
pub(super) enum Fleet {
    Status(Status),
    Adopt(Adopt),
    FenceRestore(FenceRestore),
}

/// Show a fleet: slots (places for nodes), nodes, clock offsets, etcd space, problems and remedies.
#[allow(rustdoc::bare_urls, reason = "the help prints the text as it is")]
#[derive(Debug, Args)]
pub(super) struct Status {
    #[command(flatten)]
    settings: Settings,
    /// An etcd member of another region, such as http://etcd.west:2379, to check that both regions
    /// use different slots; may be repeated.
    #[arg(long, value_name = "URL", value_parser = endpoint)]
    peer: Vec<EtcdEndpoint>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

fn endpoint(text: &str) -> Result<EtcdEndpoint, &'static str> {
    EtcdEndpoint::parse(text)
        .ok_or("scheme, host and port are needed, such as http://127.0.0.1:2379")
}

/// Move a single node into a fleet: its formats, ledgers, numbers, keys and conjunctions, and the time up to which it minted.
///
/// From then on no single node starts on its folder. If interrupted, run the same command again to continue.
#[derive(Debug, Args)]
pub(super) struct Adopt {
    /// The data folder of the node, which must be stopped.
    data_dir: PathBuf,
    /// State that no node ever minted in this etcd namespace. A new fleet then begins within
    /// seconds, without waiting for the time that earlier nodes may have reserved.
    #[arg(long)]
    new_fleet: bool,
    #[command(flatten)]
    settings: Settings,
}

/// Let a fleet mint again after its etcd was restored or wiped, above every id that was ever minted.
#[derive(Debug, Args)]
pub(super) struct FenceRestore {
    #[command(flatten)]
    settings: Settings,
    /// The file high-water-NAMESPACE in the data folder of a node, which has the highest values
    /// that the node has seen in etcd; may be repeated. The file of this configuration is always
    /// read if it exists. Each file makes it more certain that no node is missed.
    #[arg(long, value_name = "FILE")]
    high_water: Vec<PathBuf>,
    /// The journal of a node, which restores the records that etcd confirmed to the node after the
    /// backup was made. PATH is the journal (journal-NAMESPACE in the data folder), the data
    /// folder, or one file of the journal. May be repeated: name the journals of all nodes.
    #[arg(long, value_name = "PATH")]
    journal: Vec<PathBuf>,
    /// Fence the fleet without asking, even while nodes renew their slots.
    #[arg(long)]
    yes: bool,
    /// Let the fleet mint again although its data shows a later time than the clock of this
    /// machine. Use this flag only if the clock is right.
    #[arg(long)]
    trust_this_clock: bool,
}

impl Fleet {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// Returns the errors of the subcommand.
    #[cfg(feature = "etcd")]
    pub(super) fn run(self) -> Result<(), Failure> {
        match self {
            Fleet::Status(status) => status.run(),
            Fleet::Adopt(adopt) => adopt.run(),
            Fleet::FenceRestore(fence) => fence.run(),
        }
    }

    /// Always fails, because this build does not support etcd. Reads the configuration first, so
    /// that an invalid configuration is reported instead.
    #[cfg(not(feature = "etcd"))]
    pub(super) fn run(self) -> Result<(), Failure> {
        let settings = match self {
            Fleet::Status(status) => status.settings,
            Fleet::Adopt(adopt) => adopt.settings,
            Fleet::FenceRestore(fence) => fence.settings,
        };
        settings.load_without_slot()?;
        Err(Failure::config(
            "storage.engine is not \"etcd\", and this build has no etcd: build with --features etcd, and name the \
             configuration of the fleet with --config",
        ))
    }
}
