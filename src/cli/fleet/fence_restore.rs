//! The command `idmint fleet fence-restore`, which lets a fleet mint again after its etcd lost
//! data. A fleet is a group of nodes that share an etcd.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use prometheus::Registry;

use super::FenceRestore;
use super::reimport;
use super::shared_etcd::etcd_of;
use super::status::{connect, watch, watched_max};
use crate::cli::exit::{Exit, Failure};
use crate::cli::print::print;
use crate::server::{assemble, kept_formats};
use idmint_core::minting::Randomness;
use idmint_core::time::{Clock, UnixNanos};
use idmint_fleet::{
    Coordinator, JOURNALLED_WITHIN, JournalCopies, JournalImport, JournalledFleet, Reimported,
};
use idmint_fleet::{
    Entropy, FenceRule, FleetKeys, FleetProblem, HighWater, KeptHighWater, RestoreFence, SlotState,
    Unseen, UnseenNodes, fence_restored, names_of_restored, problem_of_members,
    raise_restored_floor,
};
use idmint_storage::EtcdSettings;

/// The pause before reading the journals (the nodes' copies of writes to etcd). A node confirms no
/// write that reached its journal over 1.5 s ([`JOURNALLED_WITHIN`]) after it was sent. After the
/// pause, the journals contain each write to the lost etcd that callers saw or will see succeed.
const JOURNALS_AFTER: Duration = JOURNALLED_WITHIN.saturating_add(Duration::from_millis(500));

/// A fleet whose etcd was restored or wiped, with the data for a fence: the time below which no
/// node may mint, because earlier times may be in minted ids. `high_waters` are the highest values
/// that nodes have seen in the lost etcd, read from files of the nodes.
struct Restored {
    etcd: EtcdSettings,
    coordinator: Arc<dyn Coordinator>,
    keys: FleetKeys,
    rule: FenceRule,
    high_waters: Vec<HighWater>,
    now: UnixNanos,
}

impl FenceRestore {
    /// Fences the fleet: raises its floor (the time below which no node mints), restores the
    /// records from the journals, and gives the fleet a new name. Prints the result.
    ///
    /// # Errors
    /// Returns exit code 1 if nodes renew their slots and the operator does not confirm. Returns 65
    /// if stored data cannot be read, or if the fence is done but records are lost or a journal is
    /// damaged. Returns 74 if a file cannot be read or etcd is full, 75 if etcd does not respond,
    /// and 78 if the configuration is invalid or names the members of more than one etcd.
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut restored = self.restored()?;
        if let Some(problem) = problem_of_members(&restored.coordinator.members()) {
            let FleetProblem { what, advice } = problem;
            let text = format!("{what}: {advice}; nothing was changed");
            return Err(Failure::config(text));
        }
        if !self.yes {
            restored.ask()?;
            // Read the clock again, because nodes may have reserved more time for ids while this
            // command waited for the operator's answer.
            restored.now = Clock::system().now();
        }
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
        )?;
        print(format_args!(
            "{}{}\n",
            report(&fence, high_waters, *now),
            advice(reimported.is_some())
        ))?;
        if fence.gives_up {
            print(format_args!("{GIVEN_UP}\n"))?;
        }
        if rule.holds_numbers {
            print(format_args!("{NUMBERS_HELD}\n"))?;
        }
        let judged = reimported.as_ref().map_or(Ok(()), reimport::judge);
        match (fence.lacks_records, fence.is_adopting) {
            (true, _) => Err(judged
                .err()
                .filter(|_| fence.lost_adoptions.is_empty())
                .unwrap_or_else(|| lacks_records(&fence))
                .and(HELD)),
            (false, true) => Err(judged.err().unwrap_or_else(is_adopting).and(ADOPT_AGAIN)),
            (false, false) => judged,
        }
    }

    fn restored(&self) -> Result<Restored, Failure> {
        let config = self.settings.load_without_slot()?;
        let etcd = etcd_of(&config)?;
        let mut high_waters =
            vec![KeptHighWater::of(&config.storage.data_dir, &etcd.namespace).read()?];
        let namespace = &etcd.namespace;
        let beside = self.journal.iter().map(|path| {
            let folders = path.ancestors().take(3);
            let mut files = folders.map(|folder| KeptHighWater::of(folder, namespace));
            files.find(|kept| kept.path().is_some_and(Path::exists))
        });
        for kept in beside.flatten() {
            match kept.read() {
                Ok(high_water) => high_waters.push(high_water),
                Err(error) => print(format_args!("{error}; the high-water file is left out\n"))?,
            }
        }
        for path in &self.high_water {
            let high_water = KeptHighWater::at(path).read()?;
            if high_water == HighWater::default() {
                return Err(Failure::io(path.display(), "the file does not exist"));
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
            unseen: UnseenNodes {
                window: config.storage.window(),
                ahead_max: config.clock.max_ahead,
            },
            journals: JournalledFleet::default(),
            formats: kept_formats(&service),
            holds_numbers: true,
            is_clock_trusted: self.trust_this_clock,
        };
        let coordinator = connect(&etcd)?;
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
    /// Asks the operator for confirmation if nodes still renew their slots (places in the fleet). A
    /// node stops renewing its slot when it notices that etcd lost data. These nodes have noticed
    /// no loss, so setting a new earliest time for ids (the fence) may be a mistake.
    fn ask(&self) -> Result<(), Failure> {
        let watched_max = |unseen| match unseen {
            Unseen::Renewals => watched_max(unseen),
            Unseen::NextRenewals => Duration::ZERO,
        };
        let known = HighWater::default();
        let status = watch(&*self.coordinator, &self.keys, &known, watched_max)?;
        let renewing: Vec<String> = status
            .slots
            .iter()
            .filter_map(|slot| match &slot.state {
                SlotState::Held(holder) if holder.clock.is_some() => {
                    Some(format!("{} at {}", holder.node, holder.addr))
                }
                _ => None,
            })
            .collect();
        if renewing.is_empty() {
            return Ok(());
        }
        let text = format!(
            "{} still renew their slots, so they have noticed no loss of data in this etcd; a fence stops them for a \
             minute or more",
            renewing.join(", ")
        );
        let mut answer = String::new();
        if io::stdin().is_terminal() {
            print(format_args!("{text}. Fence the fleet? [y/N] "))?;
            io::stdin()
                .read_line(&mut answer)
                .map_err(|error| Failure::of(Exit::Io, &error))?;
        }
        match answer.trim() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::no(format!(
                "{text}: nothing was changed; use --yes to fence the fleet nevertheless"
            ))),
        }
    }

    /// Reads the journals at these paths, raises the floor (the time below which no node mints),
    /// restores the records of the journals, and prints which records were restored.
    fn bring_back(&mut self, paths: &[PathBuf]) -> Result<Reimported, Failure> {
        let names = names_of_restored(&*self.coordinator, &self.keys)?;
        thread::sleep(JOURNALS_AFTER);
        let namespace = &self.etcd.namespace;
        let (copies, fleet) = JournalCopies::read(paths, namespace)?.of_fleet(&names)?;
        self.rule.journals = fleet;
        let agreed = raise_restored_floor(
            &*self.coordinator,
            &self.keys,
            &self.rule,
            &self.high_waters,
            self.now,
        )?;
        let coordinator = Arc::clone(&self.coordinator);
        let done = JournalImport::new(coordinator, namespace, agreed, &copies).run()?;
        self.rule.journals.has_gap = done.has_gap();
        self.rule.holds_numbers = reimport::judge(&done).is_err();
        print(format_args!("{}", reimport::report(&copies, &done)))?;
        Ok(done)
    }
}

/// The advice to an operator if `fleet fence-restore` found that records are missing.
const HELD: &str = "the fleet refuses records until the missing ones are restored: stop the nodes, then adopt again \
                    any node that was adopted after the backup, or find the missing journals; then fence again with \
                    all journals, or without any journal to give the missing records up";

/// The advice to an operator if the fleet has only some records of an adopted node.
const ADOPT_AGAIN: &str = "the fleet refuses records until you run `idmint fleet adopt` again on the same folder; if \
                           that reports a difference, restore etcd to a time before the adoption, and fence again";

const GIVEN_UP: &str =
    "the records that the former fence found missing are given up, because no --journal was given";

/// The advice to an operator if numbers of series may be missing after `fleet fence-restore`.
const NUMBERS_HELD: &str = "numbers that were given after the backup may be missing: no series gives numbers until you run \
                            `idmint numbers resume`, or fence again with the journals of all nodes";

fn lacks_records(fence: &RestoreFence) -> Failure {
    let lost: Vec<&str> = fence.lost_adoptions.iter().map(String::as_str).collect();
    let of = match lost.as_slice() {
        [] => "a node that was adopted after the backup".to_owned(),
        ids => format!(
            "nodes that were adopted after the backup; their folders have these ids in adoption.json: {}",
            ids.join(", ")
        ),
    };
    Failure::damaged(format!(
        "the fleet is fenced, but etcd has lost the records of {of}"
    ))
}

fn is_adopting() -> Failure {
    Failure::damaged(
        "the fleet is fenced, but etcd has only some records of a node that was being adopted",
    )
}

fn report(fence: &RestoreFence, high_waters: &[HighWater], now: UnixNanos) -> String {
    let former = fence
        .former
        .map_or("etcd had no fleet any more".to_owned(), |former| {
            format!("it was {former}")
        });
    let highest = fence
        .highest
        .map_or(String::new(), |highest| format!(", the highest {highest}"));
    let known = high_waters.iter().filter_map(HighWater::highest);
    let (files, known) = (known.clone().count(), known.max());
    let known = known.map_or(String::new(), |known| format!(", the highest {known}"));
    let wait = fence.floor.since(now).as_secs() + 1;
    let far = fence.far.iter().map(|(slot, until)| {
        format!(
            "slot {slot} stays unused until {until}, because its node had a clock far ahead; nodes use other slots \
             instead\n"
        )
    });
    let far: String = far.collect();
    format!(
        "the fleet is {fleet} now; {former}\n\
         its floor is {floor}: above {horizons} horizons in etcd{highest},\n\
         above {files} high-water files{known}, and above all time that a node can have reserved by now\n\
         nodes join by themselves, and mint in {wait} s, when their clocks pass the floor\n\
         {far}",
        fleet = fence.fleet,
        floor = fence.floor,
        horizons = fence.horizons,
    )
}

fn advice(has_journals: bool) -> &'static str {
    match has_journals {
        true => "appends since the backup that are in none of these journals are lost",
        false => {
            "appends since the backup are lost, except those that another run with --journal brings back, for ledgers \
             without newer events"
        }
    }
}
