//! `idmint fleet fence-restore`.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clap::Args;
use prometheus::Registry;

use super::reimport;
use super::shared_etcd::{etcd_of, failure_of};
use crate::cli::exit::{Exit, Failure};
use crate::cli::print::print;
use crate::cli::settings::Settings;
use crate::cluster::{
    Entropy, FenceError, FenceRule, FleetKeys, HighWater, KeptHighWater, RestoreFence, Unheard,
    fence_restored, origin_of_restored, raise_restored_floor,
};
use crate::minting::Randomness;
use crate::server::{assemble, kept_formats};
use crate::storage::{Coordinator, EtcdSettings, JOURNALLED_WITHIN, Reimported};
use crate::time::{Clock, UnixNanos};

/// Journals are read so long after the command began: all that callers are told of the etcd from before is in them by then.
const JOURNALS_AFTER: Duration = JOURNALLED_WITHIN.saturating_add(Duration::from_millis(500));

/// Let a fleet mint again whose etcd was restored from a backup, or wiped: above every id that was ever minted.
#[derive(Debug, Args)]
pub(super) struct FenceRestore {
    #[command(flatten)]
    settings: Settings,
    /// The file in which a node keeps what it knows of etcd, high-water-NAMESPACE in its data folder; may be repeated. That of
    /// this configuration is read anyhow, if there is one. Each makes it more certain that no node is left out.
    #[arg(long, value_name = "FILE")]
    high_water: Vec<PathBuf>,
    /// The journal of a node, journal-NAMESPACE in its data folder, that folder, or a file of the journal; may be repeated. What
    /// etcd had acknowledged to the node since the backup was made comes back from it: name those of all nodes.
    #[arg(long, value_name = "PATH")]
    journal: Vec<PathBuf>,
}

/// A fleet whose etcd has lost something, and what is known of it.
struct Restored {
    etcd: EtcdSettings,
    coordinator: Arc<dyn Coordinator>,
    keys: FleetKeys,
    rule: FenceRule,
    high_waters: Vec<HighWater>,
    now: UnixNanos,
}

impl FenceRestore {
    /// Brings back what journals have, raises the floor of the fleet and gives it another name, and prints what was done.
    ///
    /// # Errors
    /// 65 when what is stored cannot be read, or something in a journal is lost though the fence is done, 74 when a file cannot,
    /// or etcd is full, 75 when etcd does not answer, 78.
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut restored = self.restored()?;
        let reimported = if self.journal.is_empty() {
            None
        } else {
            Some(restored.bring_back(&self.journal)?)
        };
        let Restored {
            coordinator,
            keys,
            rule,
            high_waters,
            now,
            ..
        } = &restored;
        let fence = fence_restored(
            &**coordinator,
            keys,
            rule,
            high_waters,
            *now,
            &mut Entropy::of_kernel(),
        );
        let fence = fence.map_err(|error| failure(&error))?;
        print(format_args!(
            "{}{}\n",
            report(&fence, high_waters, *now),
            advice(reimported.is_some())
        ))?;
        reimported.as_ref().map_or(Ok(()), reimport::judge)
    }

    fn restored(&self) -> Result<Restored, Failure> {
        let config = self.settings.load(toml::Table::new())?;
        let etcd = etcd_of(&config)?;
        let mut high_waters = vec![read(&KeptHighWater::of(
            &config.storage.data_dir,
            &etcd.namespace,
        ))?];
        for path in &self.high_water {
            let high_water = read(&KeptHighWater::at(path))?;
            if high_water == HighWater::default() {
                return Err(Failure::new(
                    Exit::Io,
                    format!("{}: there is no such file", path.display()),
                ));
            }
            high_waters.push(high_water);
        }
        let service = assemble(
            &config,
            Arc::new(Clock::system()),
            &Randomness::Thread,
            &Registry::new(),
        )?;
        let rule = FenceRule {
            share: config.slot_share(),
            unheard: Unheard {
                window: config.storage.window(),
                ahead_max: config.clock.max_ahead,
            },
            origin: None,
            formats: kept_formats(&service),
        };
        let coordinator = etcd
            .connect()
            .map_err(|error| Failure::of(Exit::Config, &error))?;
        let keys = FleetKeys::below(etcd.namespace.key_prefix());
        Ok(Restored {
            etcd,
            coordinator,
            keys,
            rule,
            high_waters,
            now: Clock::system().now(),
        })
    }
}

impl Restored {
    /// Raises the floor, then brings back what the journals at these paths have, and prints it.
    fn bring_back(&mut self, paths: &[PathBuf]) -> Result<Reimported, Failure> {
        let here =
            origin_of_restored(&*self.coordinator, &self.keys).map_err(|error| failure(&error))?;
        thread::sleep(JOURNALS_AFTER);
        let (copies, origin) = reimport::read(paths, &self.etcd, here)?;
        self.rule.origin = origin;
        let raised = raise_restored_floor(
            &*self.coordinator,
            &self.keys,
            &self.rule,
            &self.high_waters,
            self.now,
        );
        let agreed = raised.map_err(|error| failure(&error))?;
        let done = reimport::import(Arc::clone(&self.coordinator), &self.etcd, agreed, &copies)?;
        print(format_args!("{}", reimport::report(&copies, &done)))?;
        Ok(done)
    }
}

fn read(kept: &KeptHighWater) -> Result<HighWater, Failure> {
    kept.read()
        .map_err(|error| Failure::new(Exit::Damaged, error))
}

fn report(fence: &RestoreFence, high_waters: &[HighWater], now: UnixNanos) -> String {
    let former = fence
        .former
        .map_or("there was no fleet any more".to_owned(), |former| {
            format!("it was {former}")
        });
    let highest = fence
        .highest
        .map_or(String::new(), |highest| format!(", the highest {highest}"));
    let known = high_waters.iter().filter_map(HighWater::highest);
    let (files, known) = (known.clone().count(), known.max());
    let known = known.map_or(String::new(), |known| format!(", the highest {known}"));
    let wait = fence.floor.since(now).as_secs() + 1;
    let far = fence.far.map_or(String::new(), |(slot, until)| {
        format!("slot {slot} was used up to {until}, by a clock that was far ahead: it rests until then, and nobody waits for it\n")
    });
    format!(
        "the fleet is {fleet} now; {former}\n\
         its floor is {floor}: above {horizons} horizons in etcd{highest},\n\
         above what nodes know by {files} files{known}, and above all that a node can have reserved by now\n\
         nodes join by themselves, and mint in {wait} s, when their clocks have passed the floor\n\
         {far}",
        fleet = fence.fleet,
        floor = fence.floor,
        horizons = fence.horizons,
    )
}

fn advice(has_journals: bool) -> &'static str {
    match has_journals {
        true => {
            "what was appended since the backup was made and is in none of these journals is lost"
        }
        false => {
            "what was appended since the backup was made is lost, but for what --journal brings back of ledgers that have \
             not gone on yet: this may be run again with it"
        }
    }
}

fn failure(error: &FenceError) -> Failure {
    match error {
        FenceError::Coordinator(error) => failure_of(error),
        FenceError::Unreadable { .. } => Failure::of(Exit::Damaged, error),
        FenceError::FarAhead { .. } => Failure::of(Exit::Config, error),
        FenceError::Contended => Failure::of(Exit::Busy, error),
    }
}
