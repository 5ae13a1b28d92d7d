//! `idmint fleet adopt`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use prometheus::Registry;

use crate::cli::exit::{Exit, Failure};
use crate::cli::print::print;
use crate::cli::settings::Settings;
use crate::cluster::{Adopted, AdoptedRecords, Adoption, AdoptionStep, Entropy, Founding};
use crate::minting::Randomness;
use crate::server::{assemble, kept_formats};
use crate::storage::{AdoptedFolder, EngineChoice};
use crate::time::Clock;

/// How often it is said how many records are there.
const TOLD_EVERY: Duration = Duration::from_secs(2);

/// Move a single node into a fleet: its formats, ledgers, keys and conjunctions, and the time up to which it has minted.
///
/// From then on no node starts on its folder. Broken off, the same command goes on where it was.
#[derive(Debug, Args)]
pub(super) struct Adopt {
    /// The data folder of the node, which does not run any more.
    data_dir: PathBuf,
    /// Nobody has ever minted in this namespace of etcd: where it has no fleet yet, it begins in seconds instead of above all
    /// that others might be minting yet.
    #[arg(long)]
    new_fleet: bool,
    #[command(flatten)]
    settings: Settings,
}

impl Adopt {
    /// Prints each step, and how much there is at the end.
    ///
    /// # Errors
    /// 65 when the folder is damaged, or something in the fleet differs from it; 74; 75 when a node runs on the folder, or the
    /// fleet does not answer; 78.
    pub(super) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load(toml::Table::new())?;
        let EngineChoice::Etcd(settings) = config.engine_choice() else {
            let text =
                "storage.engine is not \"etcd\": name the configuration of the fleet by --config";
            return Err(Failure::new(Exit::Config, text));
        };
        let clock = Arc::new(Clock::system());
        let service = assemble(
            &config,
            Arc::clone(&clock),
            &Randomness::Thread,
            &Registry::new(),
        )?;
        let adoption = Adoption {
            coordinator: settings.connect()?,
            namespace: settings.namespace.clone(),
            endpoints: settings.endpoints.iter().map(ToString::to_string).collect(),
            share: config.slot_share(),
            formats: kept_formats(&service),
            now: clock.now(),
            ahead_max: config.clock.max_ahead,
            founding: match self.new_fleet {
                true => Founding::First,
                false => Founding::Again(config.storage.window()),
            },
        };
        let mut folder = AdoptedFolder::open(&self.data_dir)?;
        let (dir, mut told) = (self.data_dir.display(), Instant::now());
        let mut tell = |step| {
            let line = match step {
                AdoptionStep::Resumed => format!("going on with the adoption of {dir}"),
                AdoptionStep::Marked => format!("no node starts on {dir} any more"),
                AdoptionStep::FloorRaised(floor) => {
                    format!(
                        "no slot of fleet {} is used below {floor}",
                        settings.namespace
                    )
                }
                AdoptionStep::Records(_) if told.elapsed() < TOLD_EVERY => return,
                AdoptionStep::Records(records) => format!("{} so far", text_of(&records)),
            };
            told = Instant::now();
            // Whoever reads may have seen enough; the adoption goes on.
            let _ = print(format_args!("{line}\n"));
        };
        match adoption.run(&mut folder, &mut Entropy::of_kernel(), &mut tell)? {
            Adopted::Before => print(format_args!(
                "{dir} was adopted by fleet {} before\n",
                settings.namespace
            )),
            Adopted::Done { records, .. } => {
                let already = records.ledgers.found + records.pairs.found + records.series.found;
                let found = if already == 0 {
                    String::new()
                } else {
                    format!(" ({already} were there before)")
                };
                print(format_args!(
                    "fleet {} has {} of {dir}{found}\n",
                    settings.namespace,
                    text_of(&records)
                ))
            }
        }
    }
}

fn text_of(
    AdoptedRecords {
        formats,
        ledgers,
        pairs,
        series,
    }: &AdoptedRecords,
) -> String {
    format!(
        "{formats} formats, {} ledgers with {} appends and {} keys, {} conjunctions of {} pairs, \
         {} numbers of {} series",
        ledgers.written + ledgers.found,
        ledgers.parts,
        ledgers.requests,
        pairs.parts,
        pairs.written + pairs.found,
        series.parts,
        series.written + series.found
    )
}
