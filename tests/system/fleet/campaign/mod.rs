//! A campaign causes random failures of etcd, clocks, folders and links in a fleet. Meanwhile,
//! callers mint, append and take numbers. At the end, the test compares every id with every other
//! one, and every acknowledged append and number with the chains and lists of the fleet.
//!
//! Four nodes with separate clocks and links to etcd are killed, stopped and cut off. Responses are
//! dropped after etcd has committed, and requests arrive late and twice. Etcd is restored or wiped
//! while the nodes run. Sometimes a node that does not belong to the fleet then creates a new fleet
//! with a wrong clock. The operator then fences the fleet or creates a new one, as docs/FLEET.md
//! prescribes. Before some fences, the operator makes a mistake: the clock of the operator's
//! machine is wrong, or the journals are missing. In each round, a single node is adopted into the
//! fleet, and is adopted again if etcd has lost its records.
//!
//! `CAMPAIGN_SECONDS` sets the duration (`make torture`: twenty minutes). Without it, the campaign
//! ends as soon as every kind of failure has happened. `CAMPAIGN_SEED` sets the seed of the
//! schedule.

mod callers;
mod fleet;
mod guests;
mod judge;
mod schedule;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use self::fleet::{Fleet, LONG, SERIES};
use self::judge::compare;
use self::schedule::{Backup, Disaster, Meanwhile, Mishap, NODES, Round, Schedule, Slip};
use crate::appending::{Appender, Seen, assert_a_planted_loss_is_found, assert_all_is_kept, begin};
use crate::fleet::etcd_link::Weather;
use crate::fleet::nodes::until_within;
use crate::torture::callers::Minted;
use crate::torture::formats::FORMATS;
use crate::torture::number;
use idmint_testing::http1::Client;
use idmint_testing::service::{Signal, StopOnDrop};

const SEED: u64 = 1;

const LEDGERS: usize = 4;
const APPENDERS: usize = 8;
const NUMBER_CALLERS: usize = 4;

/// The number of mishaps (failures of one node or etcd member) in a round, which ends with a
/// disaster. Three rounds together contain every kind of disaster.
const MISHAPS_OF_ROUND: usize = 5;
const ROUNDS_MIN: u64 = 3;

/// The number of appends that must be acknowledged after a mishap before the next mishap begins.
const APPENDS_BETWEEN: u64 = 20;

/// The minimum number of ids that each format must have at the end.
const IDS_MIN: u128 = 1_000;

/// The fleet of the campaign, with everything that has happened so far.
struct Campaign<'a> {
    fleet: Fleet,
    acknowledged: &'a AtomicU64,
    /// The number of mishaps and disasters of each kind.
    counts: BTreeMap<String, u64>,
    /// The number of lost events that were recovered from journals (the nodes' copies of their
    /// commits).
    came_back: u64,
    rounds: u64,
    /// The ids of the single nodes that were adopted.
    minted: Minted,
}

impl Campaign<'_> {
    fn live(&mut self, round: Round) {
        let older = self.fleet.save("older");
        self.fleet.take_in_guest(&mut self.minted);
        for (mishap, node, for_ms) in &round.mishaps {
            println!("{mishap:?} of node {node}, {for_ms} ms");
            self.befall(*mishap, *node, Duration::from_millis(*for_ms));
            self.go_on();
        }
        // Wait until every node has a slot, because a node without a slot may not notice that etcd
        // was restored.
        self.fleet.wait_for_slots();
        println!(
            "{:?}, node {}, {:?}",
            round.disaster, round.node, round.slip
        );
        match round.disaster {
            Disaster::Restore {
                backup,
                away_ms,
                meanwhile,
                is_fenced_at_once,
            } => {
                let new = self.fleet.save("new");
                self.fleet.wait_for_renewals();
                let snapshot = if backup == Backup::New { new } else { older };
                let away = Duration::from_millis(away_ms);
                self.lose(meanwhile, &round, is_fenced_at_once, |fleet| {
                    fleet.etcd.restore_after(&snapshot, away)
                });
            }
            Disaster::Wipe {
                meanwhile,
                is_fenced_at_once,
            } => {
                self.lose(meanwhile, &round, is_fenced_at_once, |fleet| {
                    fleet.etcd.wipe()
                });
            }
            Disaster::Stranger { ahead_s } => {
                self.fleet.etcd.wipe();
                self.fleet.have_strangers_found(ahead_s);
                self.fleet.wait_until_noticed(0..NODES);
                self.fleet.etcd.wipe();
                self.came_back += self.fleet.fence(round.slip);
            }
        }
        self.count(&format!("{:?} of the operator", round.slip));
        self.count(match round.disaster {
            Disaster::Restore { .. } => "Restore",
            Disaster::Wipe { .. } => "Wipe",
            Disaster::Stranger { .. } => "Stranger",
        });
        self.rounds += 1;
        self.go_on();
    }

    fn befall(&mut self, mishap: Mishap, node: usize, lasts: Duration) {
        let fleet = &mut self.fleet;
        match mishap {
            Mishap::Kill => {
                fleet.kill(node);
                fleet.start(node);
            }
            Mishap::Pause => {
                fleet.signal(node, Signal::STOP);
                thread::sleep(lasts);
                fleet.signal(node, Signal::CONT);
            }
            Mishap::Weather(weather) => {
                let before = fleet.nodes[node].turn(weather);
                thread::sleep(lasts);
                let is_felt = || (fleet.nodes[node].turn(weather) > before).then_some(());
                until_within(LONG, "something is on the way", is_felt);
                fleet.nodes[node].turn(Weather::Clear);
            }
            Mishap::Clock(by_s) => {
                fleet.nodes[node].set_clock(by_s);
                thread::sleep(lasts);
                fleet.nodes[node].set_clock(0);
            }
            Mishap::StartByClock(by_s) => {
                fleet.nodes[node].set_clock(by_s);
                fleet.kill(node);
                fleet.start(node);
                thread::sleep(lasts);
                fleet.nodes[node].set_clock(0);
                // Restart the node that minted by the wrong clock, because a running node follows
                // the right clock only slowly. Two such nodes would outvote the others.
                fleet.kill(node);
                fleet.start(node);
            }
            Mishap::Leader => {
                let leader = until_within(LONG, "a member leads", || fleet.etcd.leader_if_any());
                fleet.etcd.kill(leader);
                thread::sleep(lasts);
                fleet.etcd.restart(leader);
                fleet.etcd.wait_until_healthy();
            }
        }
        self.count(&format!("{mishap:?}"));
    }

    /// Makes etcd lose data while the nodes run, and then fences the fleet. One node may be down or
    /// stopped in the meantime, as `meanwhile` says.
    fn lose(
        &mut self,
        meanwhile: Meanwhile,
        round: &Round,
        is_fenced_at_once: bool,
        lose: impl FnOnce(&mut Fleet),
    ) {
        let (fleet, absent) = (&mut self.fleet, round.node);
        match meanwhile {
            Meanwhile::Runs => {}
            Meanwhile::Dead => fleet.kill(absent),
            Meanwhile::Stopped => fleet.signal(absent, Signal::STOP),
        }
        lose(fleet);
        if !is_fenced_at_once {
            fleet.wait_until_noticed(
                (0..NODES).filter(|node| meanwhile == Meanwhile::Runs || *node != absent),
            );
        }
        self.came_back += fleet.fence(round.slip);
        match meanwhile {
            Meanwhile::Runs => {}
            Meanwhile::Dead => fleet.start(absent),
            Meanwhile::Stopped => fleet.signal(absent, Signal::CONT),
        }
        self.count(&format!(
            "{meanwhile:?} while etcd has lost something, fenced at once: {is_fenced_at_once}"
        ));
    }

    fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    /// Waits until the callers have minted and appended more.
    fn go_on(&self) {
        let target = self.acknowledged.load(Ordering::Relaxed) + APPENDS_BETWEEN;
        until_within(LONG, "appends are acknowledged", || {
            (self.acknowledged.load(Ordering::Relaxed) >= target).then_some(())
        });
    }
}

#[test]
fn a_campaign_against_a_fleet_repeats_no_id_and_loses_no_append() {
    let seed = number("CAMPAIGN_SEED").unwrap_or(SEED);
    let lasts = Duration::from_secs(number("CAMPAIGN_SECONDS").unwrap_or(0));
    println!("CAMPAIGN_SECONDS={} CAMPAIGN_SEED={seed}", lasts.as_secs());
    let (begun, snowflake) = (Instant::now(), callers::formats()[0]);
    let mut minted = Minted::default();
    let fleet = Fleet::found(|founder| {
        for format in callers::formats().into_iter().cycle().take(200) {
            minted.mint_one(founder.address(), format);
        }
    });
    let ledgers = begin(fleet.nodes[0].service(), LEDGERS);
    let places = Arc::clone(&fleet.places);
    let (acknowledged, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (mut seen, mut again) = (Vec::<Seen>::new(), 0);

    let numbers = Arc::clone(&fleet.numbers);

    let campaign = thread::scope(|scope| {
        let stopping = (StopOnDrop(&stop), numbers.places.stop_at_the_end());
        for caller in 0..NUMBER_CALLERS {
            let numbers = &numbers;
            scope.spawn(move || numbers.ask(caller));
        }
        let minters: Vec<_> = (0..NODES)
            .map(|node| {
                scope.spawn({
                    let (place, stop) = (&places[node], &stop);
                    move || callers::mint(place, node as u64, stop)
                })
            })
            .collect();
        let appenders: Vec<_> = (0..APPENDERS)
            .map(|number| {
                let appender = Appender::among(number, &places, &ledgers);
                let (ledgers, acknowledged, stop) = (&ledgers, &acknowledged, &stop);
                scope.spawn(move || callers::append(appender, number, ledgers, acknowledged, stop))
            })
            .collect();
        let mut campaign = Campaign {
            fleet,
            acknowledged: &acknowledged,
            counts: BTreeMap::new(),
            came_back: 0,
            rounds: 0,
            minted: Minted::default(),
        };
        let mut schedule = Schedule::of_seed(seed);
        while begun.elapsed() < lasts || campaign.rounds < ROUNDS_MIN {
            let round = schedule.next(MISHAPS_OF_ROUND);
            println!("{:?}, round {}", begun.elapsed(), campaign.rounds + 1);
            campaign.live(round);
        }
        campaign.fleet.wait_for_slots();
        thread::sleep(Duration::from_secs(2));
        drop(stopping);
        for appender in appenders {
            let (seen_now, asked_again) = appender.join().expect("the caller found nothing wrong");
            seen.push(seen_now);
            again += asked_again;
        }
        minters.into_iter().for_each(|minter| {
            minted.append(minter.join().expect("the caller found nothing wrong"))
        });
        campaign
    });

    let Campaign {
        fleet,
        counts,
        came_back,
        rounds,
        minted: of_guests,
        ..
    } = campaign;
    minted.append(of_guests);
    println!(
        "{rounds} rounds in {:?}, seed {seed}; {came_back} events came back from journals: {counts:#?}",
        begun.elapsed()
    );
    assert!(
        ["Restore", "Wipe", "Stranger"]
            .iter()
            .all(|disaster| counts.contains_key(*disaster)),
        "everything has happened"
    );
    assert!(
        Mishap::ALL
            .iter()
            .all(|mishap| counts.contains_key(&format!("{mishap:?}"))),
        "everything has happened"
    );
    assert!(
        rounds < Slip::ALL.len() as u64
            || Slip::ALL
                .iter()
                .all(|slip| counts.contains_key(&format!("{slip:?} of the operator"))),
        "every mistake was made"
    );
    let node = fleet.nodes[0].service();
    let taken = numbers.check(node, NUMBER_CALLERS);
    assert!(
        taken > 100 * SERIES as u64,
        "{taken} numbers are next to nothing"
    );
    let records: usize = fleet
        .guests
        .iter()
        .map(|guest| guest.assert_all_is_kept(node))
        .sum();
    println!(
        "{} single nodes moved in, and again after {} fences: {records} records, none lost",
        fleet.guests.len(),
        fleet.adopted_again
    );
    assert!(fleet.adopted_again > 0, "etcd never lost an adoption");
    let once = Client::connect(node.address()).exchange(FORMATS[snowflake].request(1));
    assert_eq!((once.status, minted.take(snowflake, &once)), (200, 1));
    println!("{} answers cut, refused {:?}", minted.cut, minted.refused);
    let mut planted = minted.clone();
    planted.take(snowflake, &once);
    let found = compare(planted, 0).expect_err("a planted id is found");
    println!("the control: {found}");
    let ids = compare(minted, IDS_MIN).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    println!("{ids} ids, none twice");

    let events: usize = seen.iter().map(|seen| seen.kept.len()).sum();
    let mut answers = BTreeMap::<u16, u64>::new();
    for (status, count) in seen.iter().flat_map(|seen| &seen.answers) {
        *answers.entry(*status).or_default() += count;
    }
    println!(
        "{events} events were acknowledged, {again} requests asked again; answers by status, 0 for lost: {answers:?}"
    );
    let of_lost = |line: &&String| {
        seen.iter()
            .any(|seen| seen.kept.iter().any(|kept| line.contains(kept.id())))
    };
    let acknowledged: Vec<&String> = fleet.lost.iter().filter(of_lost).collect();
    assert_eq!(
        fleet.lost, [""; 0],
        "seed {seed}: all journals were there; acknowledged among it: {acknowledged:?}"
    );
    assert_a_planted_loss_is_found(node, &ledgers, &seen);
    assert_all_is_kept(node, ledgers, seen);
}
