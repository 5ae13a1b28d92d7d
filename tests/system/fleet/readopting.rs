//! Checks the adoption of a single node that was far ahead of the clock, and a repeated adoption
//! after etcd was restored.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::etcd_cluster::EtcdCluster;
use super::fencing::{fence_restore, run_until_answered};
use super::nodes::{node, slot_of, starting, until_within};
use super::reimport;
use super::wrong_clocks::{append, create, number};
use crate::wall_clock::WallClock;
use idmint_testing::http1::{Client, post_json, request};
use idmint_testing::service::{Ended, Home, Service, idmint};

/// A timeout that is longer than a fenced fleet waits before it mints, even on a slow machine.
const LONG: Duration = Duration::from_secs(240);

const DAYS_400: i64 = 400 * 86_400;

/// The number of appends, and of numbers, of the single node. With this number, a row of the fleet
/// has all appends and more keys than etcd accepts in one transaction.
const RECORDS: usize = 150;

fn adopt(home: &Home, etcd: &EtcdCluster, slots: u32) -> Ended {
    let (config, endpoints) = (home.path("fleet.toml"), etcd.endpoints());
    let text =
        format!("storage.engine = 'etcd'\netcd.endpoints = {endpoints:?}\nworker.slots = {slots}");
    fs::write(&config, text).unwrap();
    run_until_answered(|| {
        let mut command = idmint(&["fleet", "adopt", "--new-fleet"]);
        command.arg(home.data_dir()).arg("--config").arg(&config);
        command
    })
}

#[test]
fn a_node_that_was_far_ahead_is_adopted_in_its_own_slot_or_refused_and_the_fleet_goes_on() {
    let etcd = EtcdCluster::start(1);
    let homes: [Home; 3] = std::array::from_fn(|_| Home::new());
    let right = node(&homes[0], &etcd, 4);
    let lanes = [
        "",
        "worker.slots = 4\nworker.slot = 1\nworker.exclusive = true",
    ];
    for (home, slots) in homes[1..].iter().zip(lanes) {
        let wall = WallClock::of(home);
        wall.set(DAYS_400);
        let single = wall.start(home.serve_with(slots));
        single.wait_until_ready();
        single.mint("snowflake");
        single.send(Signal::TERM);
        single.wait();
    }
    // The lanes (worker numbers) of this node belong to several slots, so no single slot can wait
    // for it.
    adopt(&homes[1], &etcd, 4).assert(78, &["far ahead of this clock", "several slots"]);
    assert_eq!(right.get("/health/ready").status, 200);
    let adopted = adopt(&homes[2], &etcd, 4);
    println!("{}", adopted.out);
    adopted.assert(0, &[]);
    assert!(
        adopted
            .out
            .contains("slot 1 of fleet default stays unused until"),
        "{}",
        adopted.out
    );
    until_within(LONG, "it mints", || {
        slot_of(&right).filter(|slot| *slot != 1)
    });
    right.mint("snowflake");
    let fenced = fence_restore(&homes[0].path("idmint.toml"), []);
    println!("{}", fenced.out);
    fenced.assert(0, &[]);
    assert!(
        fenced.out.contains("nodes use other slots instead"),
        "{}",
        fenced.out
    );
}

/// The records of a single node: a ledger with its events, and the numbers of a series.
struct Single {
    home: Home,
    ledger: String,
    events: Vec<Value>,
    numbers: Vec<Value>,
}

fn event_name(nth: usize) -> String {
    format!("{nth:0>204}")
}

/// Appends event `nth`, which has a long name. The idempotency key contains `nth`, too.
fn append_long(node: &Service, ledger: &str, nth: usize) -> Value {
    let body =
        json!({ "ledger": ledger, "events": [{ "event": event_name(nth), "entities": {} }] });
    let answer = reimport::exchange(node, "/ids/evently", &format!("e{nth}"), &body);
    assert!([200, 201].contains(&answer.status), "{}", answer.text());
    answer.json()["ids"].take()
}

/// Marks a number as void, and returns the status of the response.
fn void(node: &Service) -> u16 {
    let reason = r#"{"reason":"cancelled"}"#;
    let void = post_json("/numbers/inv/2/void", "", reason);
    Client::connect(node.address()).exchange(void).status
}

/// Requests a number of the series `old`, which the single node has closed after its first number.
/// Returns the status of the response.
fn old_number(node: &Service, key: &str) -> u16 {
    let headers = format!("idempotency-key: {key}\r\n");
    let asked = request("POST /numbers/old", &headers, "");
    Client::connect(node.address()).exchange(asked).status
}

impl Single {
    fn new() -> Single {
        let home = Home::new();
        let service = Service::start(home.serve());
        service.wait_until_ready();
        let ledger = create(&service, "c");
        let events = (0..RECORDS)
            .map(|nth| append_long(&service, &ledger, nth))
            .collect();
        let numbers = (0..RECORDS)
            .map(|nth| number(&service, &format!("o{nth}")))
            .collect();
        assert_eq!(void(&service), 201);
        assert_eq!(old_number(&service, "o0"), 201);
        let close = request("POST /numbers/old/close", "", "");
        let closed = Client::connect(service.address()).exchange(close);
        assert_eq!(closed.status, 201, "{}", closed.text());
        service.send(Signal::TERM);
        service.wait();
        Single {
            home,
            ledger,
            events,
            numbers,
        }
    }
}

/// Follows the procedure in docs/FLEET.md for a restore to a time before an adoption.
#[test]
fn after_a_restore_to_before_an_adoption_all_records_of_the_node_come_back() {
    let single = Single::new();
    let ledger = &single.ledger;
    let mut etcd = EtcdCluster::start(1);
    let snapshot = etcd.save();
    adopt(&single.home, &etcd, 4).assert(0, &[]);
    let home = Home::new();
    let first = node(&home, &etcd, 4);
    // Repeat requests that the single node has answered. The first rows of the single node are
    // therefore in the journal of this node, its local copy of its commits.
    assert_eq!(append_long(&first, ledger, 0), single.events[0]);
    assert_eq!(number(&first, "o0"), single.numbers[0]);
    // The journal also has the closing of a series, but none of its numbers.
    assert_eq!(old_number(&first, "new"), 409);
    let new: Vec<_> = ["new0", "new1", "new2"]
        .map(|key| (number(&first, key), append(&first, ledger, key), key))
        .into();

    etcd.restore(&snapshot);
    until_within(LONG, "it notices", || {
        (first.metric("idmint_coordinator_regressed") == 1.0).then_some(())
    });
    let (config, journal): (PathBuf, _) =
        (home.path("idmint.toml"), ("--journal", home.data_dir()));
    let fence = || fence_restore(&config, [journal.clone()]);
    fence().assert(65, &["the fleet refuses records", "adopt"]);
    // A caller with a new key must get no number, because it could be a number that the single node
    // has given to another caller.
    for nth in 0..12 {
        let eager = request("POST /numbers/inv", "idempotency-key: eager\r\n", "");
        let answer = Client::connect(first.address()).exchange(eager);
        assert_eq!(answer.status, 503, "attempt {nth}: {}", answer.text());
        std::thread::sleep(Duration::from_millis(500));
    }
    first.send(Signal::TERM);
    first.wait();
    let again = adopt(&single.home, &etcd, 4);
    println!("{}", again.out);
    again.assert(0, &[]);
    let fenced = fence();
    println!("{}", fenced.out);
    fenced.assert(0, &[]);

    let first = starting(&home, &etcd, 4);
    for nth in 0..RECORDS {
        assert_eq!(
            append_long(&first, ledger, nth),
            single.events[nth],
            "e{nth}"
        );
        assert_eq!(
            number(&first, &format!("o{nth}")),
            single.numbers[nth],
            "o{nth}"
        );
    }
    for (given, event, key) in new {
        assert_eq!(number(&first, key), given, "{key}");
        assert_eq!(append(&first, ledger, key), event, "{key}");
    }
    assert_eq!(void(&first), 200, "it is void for this reason already");
    assert_eq!(
        (old_number(&first, "o0"), old_number(&first, "new")),
        (200, 409)
    );
}
