//! The command `idmint fleet adopt`, which moves the data of a single node into a fleet.

use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus::Registry;

use super::Adopt;
use crate::cli::exit::Failure;
use crate::cli::print::print;
use crate::server::config::EngineChoice;
use crate::server::{assemble, kept_formats};
use idmint_core::minting::Randomness;
use idmint_core::time::Clock;
use idmint_fleet::{Adopted, AdoptedRecords, Adoption, AdoptionStep, Entropy, Founding};
use idmint_storage::AdoptedFolder;

/// The interval between two progress lines.
const TOLD_EVERY: Duration = Duration::from_secs(2);

impl Adopt {
    /// Moves the data into the fleet. Prints each step, and finally the number of records that were
    /// moved.
    ///
    /// # Errors
    /// Returns exit code 65 if the folder is damaged or conflicts with records of the fleet, 74 if
    /// a file cannot be read or written, 75 if a node uses the folder or the fleet does not
    /// respond, and 78 if the configuration is invalid.
    pub(super) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load_without_slot()?;
        let EngineChoice::Etcd(settings) = config.engine_choice() else {
            let text =
                "storage.engine is not \"etcd\": name the configuration of the fleet with --config";
            return Err(Failure::config(text));
        };
        let clock = Arc::new(Clock::system());
        let service = assemble(
            &config,
            Arc::clone(&clock),
            &Randomness::Thread,
            &Registry::new(),
        )?;
        let adoption = Adoption {
            coordinator: idmint_fleet::connect(&settings)?,
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
                AdoptionStep::Resumed => format!("resuming the adoption of {dir}"),
                AdoptionStep::Marked => format!("nodes can no longer start on {dir}"),
                AdoptionStep::FloorRaised(floor) => {
                    format!(
                        "no slot of fleet {} is used below {floor}",
                        settings.namespace
                    )
                }
                AdoptionStep::SlotRests(slot, until) => {
                    format!(
                        "slot {slot} of fleet {} stays unused until {until}, because the node of the folder was far \
                         ahead of its clock; nodes can use all other slots now",
                        settings.namespace
                    )
                }
                AdoptionStep::Records(_) if told.elapsed() < TOLD_EVERY => return,
                AdoptionStep::Records(records) => format!("{} so far", text_of(&records)),
            };
            told = Instant::now();
            // The command continues even if the reader of its output has closed the pipe.
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
                    format!(" ({already} were in the fleet before)")
                };
                print(format_args!(
                    "fleet {} now has {} from {dir}{found}\n",
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
