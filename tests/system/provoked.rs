//! Each alert of a node that is alone fires in a real Prometheus when what it tells of is done to a real node; those of a fleet in
//! `fleet/provoked.rs`.
//!
//! The pauses before an alert fires are left out, and nothing else: what an expression looks at is as long as it is in `alerts.yml`.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rustix::process::Signal;

use crate::appending::begin;
use crate::fleet::until_within;
use crate::http1::{Client, post_json};
use crate::load::Load;
use crate::prometheus::Prometheus;
use crate::service::{Home, Service, serve_from, until};
use crate::small_disk::SmallDisk;
use crate::torture::{Broken, FailingDisk};
use crate::wall_clock::WallClock;

/// Longer than any of them takes, on however slow a machine.
const LONG: Duration = Duration::from_secs(300);

/// What is done to nodes that are alone, or are configured alike.
const ALONE: [&str; 14] = [
    "IdmintDown",
    "IdmintNotReady",
    "IdmintSequenceExhausted",
    "IdmintClockRegressed",
    "IdmintClockSkewed",
    "IdmintHorizonExtensionFailing",
    "IdmintRecordsUnavailable",
    "IdmintConjunctionsNear",
    "IdmintOutcomeUnknown",
    "IdmintColdStart",
    "IdmintShedding",
    "IdmintLogDropped",
    "IdmintFormatEnds",
    "IdmintSameSlot",
];

/// What is done to nodes of a fleet.
pub(crate) const OF_A_FLEET: [&str; 6] = [
    "IdmintPeerClockSkewed",
    "IdmintFenced",
    "IdmintCoordinatorRegressed",
    "IdmintJournalNotWritten",
    "IdmintCoordinatorFilling",
    "IdmintCoordinatorSilent",
];

/// The rules, without their pauses.
pub(crate) fn rules() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/prometheus/alerts.yml");
    let text = fs::read_to_string(file).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("for: "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The alerts that fire now.
pub(crate) fn firing(prometheus: &Prometheus) -> BTreeSet<String> {
    let alerts = prometheus.query(r#"ALERTS{alertstate="firing"}"#);
    alerts
        .iter()
        .map(|alert| alert["metric"]["alertname"].as_str().unwrap().to_owned())
        .collect()
}

/// Waits until the nodes have been scraped twice, so that what is done then is seen as a change.
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

/// A format that ends in half a year.
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

#[test]
fn what_is_done_to_a_node_fires_its_alert() {
    let homes: [Home; 9] = std::array::from_fn(|_| Home::new());
    let plain = |place: usize, settings: &str| Service::start(homes[place].serve_with(settings));
    let mut behind = homes[0].serve();
    behind.args(["--floor", "2200-01-01T00:00:00Z"]);
    let behind = Service::start(behind);
    let wall = WallClock::of(&homes[1]);
    let jumping = wall.start(homes[1].serve());
    let refusing = plain(2, "mint.on_exhausted = 'refuse'");
    let crowded = plain(3, "http.in_flight_max = 2");
    let ending = plain(4, &ending_format());
    let breaking = plain(5, "");
    let reporting = plain(6, "");
    let unread = Service::start_with_log_lost(homes[7].serve(), "/dev/full");
    let disk = SmallDisk::empty(4);
    let full = Service::start(disk.beside(&serve_from(&disk.path().join("data"))));
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();

    let nodes = [
        &behind, &jumping, &refusing, &crowded, &ending, &breaking, &reporting, &unread, &full,
    ];
    for node in &nodes[1..] {
        node.wait_until_ready();
    }
    let ledger = begin(&full, 1).remove(0).id;
    // All of them have slot 0, which in one job is a mistake.
    let targets = nodes
        .iter()
        .map(|node| node.address())
        .chain([gone])
        .collect();
    let prometheus = Prometheus::start(&[("idmint", targets)], &rules());
    wait_for_scrapes(&prometheus, nodes.len());

    wall.set(-3_600);
    disk.fill();
    let crowd = Load::fresh(crowded.address());
    let broken = FailingDisk::of(&breaking, Broken::Sync);
    let busy = Load::fresh(breaking.address());
    let events = vec![r#"{"event":"Long","entities":{}}"#; 1_000].join(",");
    let order = format!(r#"{{"ledger":"{ledger}","events":[{events}]}}"#);
    let (mut wanted, mut round): (BTreeSet<&str>, u32) = (ALONE.into_iter().collect(), 0);
    until_within(LONG, "each alert fires", || {
        round += 1;
        for _ in 0..5 {
            refusing.post("/ids/payment?count=100000");
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
    breaking.wait().assert(74, &[]);
    assert!(broken.calls_failed() > 0);
    drop(crowd.stop());
    drop(busy.join());
    println!("{} alerts fire", ALONE.len());
}
