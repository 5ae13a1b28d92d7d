//! Mints ids of all built-in sequenced formats except one, and of seven custom formats, while every
//! kind of fault happens to the node. Every id is compared with every other one.
//!
//! The node is killed, its disk fails, and its wall clock is set back and ahead. Its folder is lost
//! or restored as documented, and its lanes and formats change. Meanwhile, four callers mint ids as
//! bytes, up to a million per request. A fault counts only if ids were being minted when it
//! happened. `TORTURE_IDS` sets the number of ids (default 5 * 10^7; `make torture`: 10^9), and
//! `TORTURE_SEED` determines the lives of the node.

pub(crate) mod callers;
mod failing_disk;
pub(crate) mod formats;
mod node;
mod runs;
pub(crate) mod schedule;
mod tally;

use std::time::Instant;

pub(crate) use self::failing_disk::{Broken, FailingDisk};

use self::callers::{Callers, Minted};
use self::formats::FORMATS;
use self::node::{Fresh, Node};
use self::schedule::{Beginning, Configuration, End, Life, Middle, Schedule};
use self::tally::{Happening, Tally};
use idmint_testing::service::{Service, until};

const IDS: u64 = 50_000_000;
const SEED: u64 = 1;

/// The minimum number of lives of the node (from a start to an end). The next constant is the
/// approximate maximum number of ids in one life.
const LIVES_MIN: u64 = 54;
const IDS_OF_LIFE_MAX: u64 = 6_000_000;

/// The number of times that each kind of fault or change must happen while ids are minted. If one of
/// them has happened less often, the node gets more lives, up to a maximum.
const HAPPENINGS_MIN: u64 = 3;
const LIVES_MAX: u64 = 4 * LIVES_MIN;

/// The number of ids that proves that callers were minting before or after an event.
const SOME_IDS: u64 = 1_000;

const REGRESSIONS: &str = "idmint_clock_regressions_total";

/// A node with all of its lives, and the results so far.
struct Torture {
    node: Node,
    tally: Tally,
    minted: Minted,
    /// The configuration of the previous life. The flag is `true` if ids were minted until the end
    /// of that life.
    before: Option<(Configuration, bool)>,
}

impl Torture {
    /// Runs one life of the node, in which at least `ids` ids are minted.
    fn live(&mut self, life: &Life, ids: u64) {
        let service = self.begin(life);
        let configuration = &life.configuration;
        let workers = service.get("/formats/twitter").json()["workers"]
            .as_array()
            .map_or(0, Vec::len);
        assert_eq!(
            workers, configuration.lanes as usize,
            "it mints on as many lanes as it is told"
        );
        let held_back = self.long_ticks_held_back(&service, configuration);
        let callers = Callers::start(service.address(), &configuration.formats, life.seed);
        wait_for(&callers, ids / 2);
        self.set_clock(life.middle, &service, &callers);
        wait_for(&callers, ids);
        let (minted, while_minting) = self.end(life.end, service, callers);

        self.count_beginning(life, held_back, &minted);
        self.minted.append(minted);
        self.before = Some((configuration.clone(), while_minting));
    }

    fn begin(&mut self, life: &Life) -> Service {
        let configuration = &life.configuration;
        match life.beginning {
            Beginning::Plain => self.node.start(configuration),
            Beginning::ClockAhead(by_s) => {
                self.node.step_ahead(by_s);
                self.node.start(configuration)
            }
            Beginning::ClockBehind => self.node.start_behind(configuration),
            Beginning::Restored => {
                let fresh = self.node.restore(configuration);
                self.count_fresh(&fresh);
                fresh.service
            }
            Beginning::FolderLost => {
                let fresh = self.node.lose_folder(configuration);
                self.count_fresh(&fresh);
                fresh.service
            }
            Beginning::FormatChanged => {
                // Change a built-in format, because every life has all built-in formats.
                let changed =
                    "mint.batch_max = 10_000_000\nformats.twitter.epoch = \"2012-01-01T00:00:00Z\"";
                let refused =
                    self.node
                        .start_refused(configuration, "mint.batch_max = 10_000_000", changed);
                refused.assert(
                    78,
                    &["\"twitter\"", "epoch: stored 2010-11-04T01:42:54.657"],
                );
                self.node.start(configuration)
            }
        }
    }

    fn count_fresh(&mut self, fresh: &Fresh) {
        if fresh.is_below_reserved {
            let while_minting = self
                .before
                .as_ref()
                .is_some_and(|(_, came_up_to_its_end)| *came_up_to_its_end);
            self.tally
                .count(Happening::StartBelowReserved, while_minting);
        }
    }

    /// Returns the number of formats with long ticks that wait for their next tick. Asserts that
    /// these formats mint nothing and give this reason.
    fn long_ticks_held_back(&mut self, service: &Service, configuration: &Configuration) -> usize {
        let long = configuration
            .formats
            .iter()
            .filter(|format| FORMATS[**format].has_long_ticks);
        let refusals = long.filter_map(|format| self.minted.mint_one(service.address(), *format));
        refusals
            .filter(|refusal| refusal.text().contains("begins with its next whole tick"))
            .count()
    }

    fn set_clock(&mut self, middle: Middle, service: &Service, callers: &Callers) {
        let before = callers.ids();
        let happening = match middle {
            Middle::Nothing => return,
            Middle::ClockBack(by_s) => {
                let regressions = service.metric(REGRESSIONS);
                self.node.set_wall(-by_s);
                until("the step is counted", || {
                    (service.metric(REGRESSIONS) > regressions).then_some(())
                });
                Happening::ClockSetBack
            }
            Middle::ClockAhead { by_s, stays } => {
                self.node.set_wall(by_s);
                until("the step is seen", || {
                    service
                        .log()
                        .contains("the wall clock was set ahead")
                        .then_some(())
                });
                if stays {
                    self.node.step_ahead(by_s);
                }
                Happening::ClockSetAhead
            }
        };
        let when_seen = callers.ids();
        wait_for(callers, when_seen + SOME_IDS);
        self.node.set_wall(0);
        self.tally.count(happening, before > 0);
    }

    /// Ends the life. Returns its ids, and `true` if ids were being minted at the end.
    fn end(&mut self, end: End, service: Service, callers: Callers) -> (Minted, bool) {
        match end {
            End::Killed => {
                let in_flight = callers.in_flight();
                service.kill();
                let (minted, unanswered) = callers.join(&in_flight);
                assert!(
                    !minted.refused.contains_key("/problems/storage-unavailable"),
                    "{:?}",
                    minted.refused
                );
                self.tally.count(Happening::Kill, unanswered > 0);
                (minted, unanswered > 0)
            }
            End::DiskFails(broken) => {
                let before = callers.ids();
                let disk = FailingDisk::of(&service, broken);
                let in_flight = callers.in_flight();
                service
                    .wait()
                    .assert(74, &["the store failed while running"]);
                assert!(disk.calls_failed() > 0, "the node ended by itself");
                let after = callers.ids();
                let (minted, unanswered) = callers.join(&in_flight);
                let while_minting = before > 0 && (after > before || unanswered > 0);
                let happening = match broken {
                    Broken::Sync => Happening::SyncFailed,
                    Broken::Write => Happening::WriteFailed,
                };
                self.tally.count(happening, while_minting);
                (minted, while_minting)
            }
        }
    }

    /// Counts the faults and changes at the beginning of this life, after ids were minted in it.
    fn count_beginning(&mut self, life: &Life, held_back: usize, minted: &Minted) {
        let Some((before, came_up_to_its_end)) = &self.before else {
            return;
        };
        let while_minting = *came_up_to_its_end && minted.ids.iter().sum::<u64>() > 0;
        let mut count = |happening| self.tally.count(happening, while_minting);
        match life.beginning {
            Beginning::Plain => {}
            Beginning::ClockAhead(_) => count(Happening::StartAfterClockSetAhead),
            Beginning::ClockBehind => count(Happening::StartWithClockBehind),
            Beginning::Restored => count(Happening::Restore),
            Beginning::FolderLost => count(Happening::FolderLost),
            Beginning::FormatChanged => count(Happening::ChangedFormatRefused),
        }
        (0..held_back).for_each(|_| count(Happening::LongTickHeldBack));
        let now = &life.configuration;
        if now.lanes != before.lanes {
            count(Happening::LanesChanged);
        }
        if now.formats != before.formats {
            count(Happening::FormatsReordered);
        }
        let joined = now
            .formats
            .iter()
            .filter(|format| !before.has(**format) && minted.ids[**format] > 0);
        joined.for_each(|_| count(Happening::FormatJoined));
    }
}

/// Waits until the callers have minted `ids` ids in this life.
fn wait_for(callers: &Callers, ids: u64) {
    until("ids come", || (callers.ids() >= ids).then_some(()));
}

/// Returns the number in the environment variable `name`, or `None` if the variable is not set.
pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}, which is no number")),
    )
}

#[test]
fn no_id_comes_twice_through_everything_that_can_happen_to_a_node() {
    let (wanted, seed) = (
        number("TORTURE_IDS").unwrap_or(IDS),
        number("TORTURE_SEED").unwrap_or(SEED),
    );
    println!("TORTURE_IDS={wanted} TORTURE_SEED={seed}");
    let begun = Instant::now();
    let ids_of_life = (wanted / LIVES_MIN).clamp(1, IDS_OF_LIFE_MAX);
    let mut torture = Torture {
        node: Node::new(),
        tally: Tally::default(),
        minted: Minted::default(),
        before: None,
    };
    let (mut schedule, mut lives) = (Schedule::of_seed(seed), 0);
    let is_enough = |torture: &Torture, lives| {
        let ids: u64 = torture.minted.ids.iter().sum();
        ids >= wanted
            && lives >= LIVES_MIN
            && (torture.tally.fewest() >= HAPPENINGS_MIN || lives >= LIVES_MAX)
    };
    while !is_enough(&torture, lives) {
        let life = schedule.next();
        println!("{:?} {life:?}", begun.elapsed());
        torture.live(&life, ids_of_life);
        lives += 1;
    }

    let Torture { tally, minted, .. } = torture;
    println!(
        "{lives} lives in {:?}, {} answers cut, refused {:?}",
        begun.elapsed(),
        minted.cut,
        minted.refused
    );
    println!("{tally:#?}");
    let mut all = 0;
    for ((format, runs), counted) in FORMATS.iter().zip(minted.runs).zip(minted.ids) {
        let pieces = runs.len();
        let ids = runs
            .check()
            .unwrap_or_else(|shared| panic!("{}: ids came twice: {shared:?}", format.name));
        println!(
            "{:>16} {ids:>12} ids in {pieces} runs, none twice",
            format.name
        );
        assert_eq!(
            ids,
            u128::from(counted),
            "{}: every id that came was compared",
            format.name
        );
        assert!(
            ids >= 1_000,
            "{}: {ids} ids are next to nothing",
            format.name
        );
        all += ids;
    }
    println!("{all} ids in {:?}, none twice", begun.elapsed());
    assert!(all >= u128::from(wanted));
    assert!(
        tally.fewest() >= HAPPENINGS_MIN,
        "something happened too rarely while ids were minted"
    );
}
