//! Checks that each alert about a single node fires in a real Prometheus. The tests produce the
//! cause of each alert on a real node. `fleet/provoked.rs` covers the alerts about fleets.
//!
//! Only the `for` durations of the alerts are removed. The expressions keep the time ranges that
//! they have in `alerts.yml`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};
use rustix::process::Signal;

use crate::appending::begin;
use crate::fleet::until_within;
use crate::prometheus::Prometheus;
use crate::small_disk::SmallDisk;
use crate::torture::{Broken, FailingDisk};
use crate::wall_clock::WallClock;
use idmint_testing::authority::Authority;
use idmint_testing::http1::{Client, post_json, request};
use idmint_testing::load::Load;
use idmint_testing::loopback::address_of_its_own;
use idmint_testing::service::{Home, Service, serve_from, until};

/// A timeout that is longer than any alert takes to fire, even on a slow machine.
const LONG: Duration = Duration::from_secs(300);

/// The alerts about single nodes, and about nodes that must have equal configurations.
const ALONE: [&str; 17] = [
    "IdmintDown",
    "IdmintRestarting",
    "IdmintNotReady",
    "IdmintSequenceExhausted",
    "IdmintClockRegressed",
    "IdmintClockSkewed",
    "IdmintHorizonExtensionFailing",
    "IdmintRecordsUnavailable",
    "IdmintDiskFilling",
    "IdmintConjunctionsNear",
    "IdmintOutcomeUnknown",
    "IdmintColdStart",
    "IdmintShedding",
    "IdmintLogDropped",
    "IdmintFormatEnds",
    "IdmintExpiring",
    "IdmintSameSlot",
];

/// The alerts about fleets.
pub(crate) const OF_A_FLEET: [&str; 6] = [
    "IdmintPeerClockSkewed",
    "IdmintFenced",
    "IdmintCoordinatorRegressed",
    "IdmintJournalNotWritten",
    "IdmintCoordinatorFilling",
    "IdmintCoordinatorSilent",
];

/// Returns the rules without their `for` durations.
pub(crate) fn rules() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/prometheus/alerts.yml");
    let text = fs::read_to_string(file).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("for: "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Returns the names of the alerts that fire at this moment.
pub(crate) fn firing(prometheus: &Prometheus) -> BTreeSet<String> {
    let alerts = prometheus.query(r#"ALERTS{alertstate="firing"}"#);
    alerts
        .iter()
        .map(|alert| alert["metric"]["alertname"].as_str().unwrap().to_owned())
        .collect()
}

/// Waits until Prometheus has scraped each node twice. A later event then counts as a change.
pub(crate) fn wait_for_scrapes(prometheus: &Prometheus, nodes: usize) {
    let scraped = "count_over_time(idmint_build_info[1m]) >= 2";
    until("all are scraped", || {
        (prometheus.query(scraped).len() == nodes).then_some(())
    });
}

#[test]
fn every_alert_is_provoked_alone_or_in_a_fleet() {
    let rules = rules();
    let alerts: BTreeSet<&str> = rules
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("- alert: "))
        .collect();
    assert_eq!(alerts, ALONE.into_iter().chain(OF_A_FLEET).collect());
}

/// Returns the definition of a format that can mint for another half year.
fn ending_format() -> String {
    let begun = Timestamp::now() - SignedDuration::from_hours(24 * 200);
    let bits =
        |name: &str, bits: u32| format!("{{ name = '{name}', kind = '{name}', bits = {bits} }}");
    format!(
        "[formats.ending]\nsummary = 'ends'\nrule = 'sequenced'\ntick = '1s'\nepoch = '{}'\nfields = [{}, {}, {}]\nencodings = ['decimal']\n",
        begun.strftime("%Y-%m-%dT00:00:00Z"),
        bits("time", 25),
        bits("worker", 10),
        bits("sequence", 12)
    )
}

/// Returns the settings of a node whose certificate authority for etcd expires in ten days. The
/// node never connects to etcd.
fn expiring_authority(home: &Home) -> String {
    let end = SystemTime::now() + Duration::from_hours(10 * 24);
    let authority = Authority::new("an authority").sign_ending(&["etcd"], end);
    let ca = home.path("ca.pem");
    fs::write(&ca, &authority.certificate).unwrap();
    format!(
        "storage.engine = 'etcd'\netcd.endpoints = ['https://127.0.0.1:1']\netcd.ca = '{}'\n",
        ca.display()
    )
}

#[test]
fn what_is_done_to_a_node_fires_its_alert() {
    let homes: [Home; 11] = std::array::from_fn(|_| Home::new());
    let plain = |place: usize, settings: &str| Service::start(homes[place].serve_with(settings));
    let mut behind = homes[0].serve();
    behind.args(["--floor", "2200-01-01T00:00:00Z"]);
    let behind = Service::start(behind);
    let wall = WallClock::of(&homes[1]);
    let jumping = wall.start(homes[1].serve());
    let refusing = plain(2, "mint.on_exhausted = 'refuse'");
    let crowded = plain(3, "http.in_flight_max = 2");
    let ending = plain(4, &ending_format());
    let admin = address_of_its_own();
    let breaking = plain(5, &format!("http.admin_listen = '{admin}'"));
    let expiring = plain(9, &expiring_authority(&homes[9]));
    let reporting = plain(6, "");
    let unread = Service::start_with_log_lost(homes[7].serve(), "/dev/full");
    let disk = SmallDisk::empty(4);
    let full = Service::start(disk.beside(&serve_from(&disk.path().join("data"))));
    let gone = address_of_its_own();
    let restarting = address_of_its_own();
    let start_again = || plain(10, &format!("http.admin_listen = '{restarting}'"));
    let mut restarted = start_again();

    let nodes = [
        &behind, &expiring, &jumping, &refusing, &crowded, &ending, &breaking, &reporting, &unread,
        &full,
    ];
    for node in &nodes[2..] {
        node.wait_until_ready();
    }
    let ledger = begin(&full, 1).remove(0).id;
    // All of these nodes have slot 0. Within one job, this is a mistake for which an alert must
    // fire.
    let target = |node: &&Service| match node.address() == breaking.address() {
        true => admin,
        false => node.address(),
    };
    let targets = nodes.iter().map(target).chain([gone, restarting]).collect();
    let prometheus = Prometheus::start(&[("idmint", targets)], &rules());
    wait_for_scrapes(&prometheus, nodes.len() + 1);

    for restarts in 0..3 {
        // The start time is in whole seconds. Prometheus would see two starts within one second as
        // one.
        let start = format!(r#"process_start_time_seconds{{instance="{restarting}"}}"#);
        let seen = format!("changes({start}[30m]) == {restarts} and time() - {start} > 2");
        until("the last start is seen", || {
            (!prometheus.query(&seen).is_empty()).then_some(())
        });
        restarted.kill();
        restarted = start_again();
    }
    wall.set(-3_600);
    disk.fill();
    let crowd = Load::fresh(crowded.address());
    // A node ends soon after a failed sync. A response that nobody reads keeps the process for up to
    // 25 s, and `http.admin_listen` serves until the end, so Prometheus sees the failed extension.
    let mut unread_response = Client::connect(breaking.address());
    unread_response.send(request("POST /ids/snowflake?count=100000", "", "").repeat(20));
    unread_response.wait_for_first_byte();
    let broken = FailingDisk::of(&breaking, Broken::Sync);
    let busy = Load::fresh(breaking.address());
    let events = vec![r#"{"event":"Long","entities":{}}"#; 1_000].join(",");
    let order = format!(r#"{{"ledger":"{ledger}","events":[{events}]}}"#);
    let (mut wanted, mut round): (BTreeSet<&str>, u32) = (ALONE.into_iter().collect(), 0);
    until_within(LONG, "each alert fires", || {
        round += 1;
        for _ in 0..5 {
            refusing.post("/ids/payment?count=10368");
        }
        let append = post_json(
            "/ids/evently",
            &format!("idempotency-key: {round}\r\n"),
            &order,
        );
        Client::connect(full.address()).exchange(append);
        let second = 2 * round % 60;
        let report = format!(
            r#"{{"tca":"2026-02-01T00:00:{second:02}Z","primary":25544,"secondary":48274}}"#
        );
        Client::connect(reporting.address()).exchange(post_json("/ids/conjunction", "", &report));
        unread.send(Signal::HUP);
        let firing = firing(&prometheus);
        wanted.retain(|alert| !firing.contains(*alert));
        if round % 100 == 0 {
            println!("after {round} rounds these do not fire: {wanted:?}");
        }
        wanted.is_empty().then_some(())
    });
    drop(unread_response);
    breaking.wait().assert(74, &[]);
    assert!(broken.calls_failed() > 0);
    drop(crowd.stop());
    drop(busy.join());
    drop(restarted);
    println!("{} alerts fire", ALONE.len());
}
