//! Checks that events which etcd has lost in a restore are recovered from the journals of the
//! nodes. A journal is a node's local copy of its commits.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::etcd_cluster::EtcdCluster;
use super::fencing::fence_restore;
use super::lengths::short_or_whole;
use super::nodes::{Minter, assert_all_different, node, starting, until_within};
use crate::appending::{Appender, Place, Seen, assert_all_is_kept, begin};
use idmint_testing::http1::{Answer, Client, post_json};
use idmint_testing::numbering::Callers;
use idmint_testing::service::{Ended, Home, Service, StopOnDrop, until};

const SLOTS: u32 = 4;

/// The number of callers that request numbers meanwhile.
const NUMBER_CALLERS: usize = 6;

/// A timeout that is longer than a fenced fleet waits before it mints, even on a slow machine.
const LONG: Duration = Duration::from_secs(240);

fn fence(home: &Home, journals: &[&Path]) -> Ended {
    fence_restore(
        &home.path("idmint.toml"),
        journals
            .iter()
            .map(|journal| ("--journal", journal.to_path_buf())),
    )
}

pub(super) fn exchange(
    service: &Service,
    target: &str,
    key: &str,
    body: &serde_json::Value,
) -> Answer {
    let headers = if key.is_empty() {
        String::new()
    } else {
        format!("idempotency-key: {key}\r\n")
    };
    until("it is answered", || {
        let answer = Client::connect(service.address()).exchange(post_json(
            target,
            &headers,
            &body.to_string(),
        ));
        Some(answer).filter(|answer| ![503, 504].contains(&answer.status))
    })
}

/// Reads a resource. Retries while etcd does not respond in time.
fn read(service: &Service, target: &str) -> Answer {
    until("it is answered", || {
        Some(service.get(target)).filter(|answer| answer.status != 503)
    })
}

/// Creates a ledger with one event.
pub(super) fn create(service: &Service, key: &str) -> Answer {
    exchange(
        service,
        "/ledgers",
        key,
        &json!({ "event": "Created", "entities": {}, "data": key }),
    )
}

/// Appends one event.
pub(super) fn append(service: &Service, ledger: &str, key: &str) -> Answer {
    let body = json!({ "ledger": ledger, "events": [{ "event": key, "entities": {} }] });
    exchange(service, "/ids/evently", key, &body)
}

fn report(service: &Service, object: u64) -> serde_json::Value {
    let body = json!({ "tca": "2040-01-01T00:00:00.25Z", "primary": object, "secondary": 99_999 });
    exchange(service, "/ids/conjunction", "", &body).json()["details"][0].clone()
}

pub(super) fn wait_for_renewals(nodes: &[Service]) {
    let extensions =
        |node: &Service| node.metric("idmint_horizon_extensions_total{outcome=\"extended\"}");
    for node in nodes {
        let before = extensions(node);
        until("its slot is renewed after the backup", || {
            (extensions(node) >= before + 2.0).then_some(())
        });
    }
}

/// Restores etcd while callers use the nodes, fences the fleet as docs/FLEET.md prescribes, and
/// waits until the callers have made progress. Etcd is down for the time `away`.
fn restore_under_appenders(away: Duration) {
    let mut etcd = EtcdCluster::start(3);
    let homes: [Home; 3] = std::array::from_fn(|_| Home::new());
    let mut nodes: Vec<Service> = homes.iter().map(|home| node(home, &etcd, SLOTS)).collect();
    let numbering = Callers::of(&nodes, 5, 3);
    let minters = [&nodes[0], &nodes[1]].map(Minter::at);
    let ledgers = begin(&nodes[0], 4);
    let places: Vec<Place> = nodes.iter().map(Place::of).collect();
    let (granted, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut late = None;
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let (_stop, stop_numbering) = (StopOnDrop(&stop), numbering.places.stop_at_the_end());
        for caller in 0..NUMBER_CALLERS {
            let numbering = &numbering;
            scope.spawn(move || numbering.ask(caller));
        }
        let caller = |number: usize| {
            let caller = Appender::new(number, &places[number % 3], &ledgers);
            scope.spawn(|| caller.run(&granted, &stop))
        };
        let callers: Vec<_> = (0..9).map(caller).collect();
        let go_on = |count: u64| {
            let (target, least) = (
                granted.load(Ordering::Relaxed) + count,
                numbering.told() + 50,
            );
            until_within(LONG, "appends and numbers are acknowledged", || {
                (granted.load(Ordering::Relaxed) >= target && numbering.told() >= least)
                    .then_some(())
            });
        };
        go_on(150);
        let snapshot = etcd.save();
        go_on(150);
        // Kill a node in the middle of its appends. It may have committed an append whose caller
        // got no response. Its callers then repeat their appends at another node.
        nodes.pop().expect("there are three").kill();
        places[2].move_to(nodes[0].address());
        numbering.places.move_place(2, nodes[0].address());
        go_on(150);
        let ledger = create(&nodes[1], "late").json()["ledger"]
            .as_str()
            .unwrap()
            .to_owned();
        let appended = append(&nodes[0], &ledger, "once");
        assert!([200, 201].contains(&appended.status), "{}", appended.text());
        let reported: Vec<_> = (1..=20)
            .map(|object| report(&nodes[(object % 2) as usize], object))
            .collect();
        wait_for_renewals(&nodes);

        etcd.restore_after(&snapshot, away);
        for node in &nodes {
            let is_regressed =
                || (node.metric("idmint_coordinator_regressed") == 1.0).then_some(());
            until_within(LONG, "it notices", is_regressed);
        }
        let journals = homes.each_ref().map(|home| home.data_dir());
        let fenced = fence(&homes[0], &journals.each_ref().map(|path| path.as_path()));
        println!("{}", fenced.out);
        fenced.assert(0, &[]);
        assert!(
            fenced.out.contains("restored from") && !fenced.out.contains("lost:"),
            "{}",
            fenced.out
        );
        go_on(150);
        late = Some((ledger, appended, reported));
        stop.store(true, Ordering::Relaxed);
        drop(stop_numbering);
        callers
            .into_iter()
            .map(|caller| caller.join().expect("the caller found nothing wrong"))
            .collect()
    });
    for node in &nodes {
        until_within(LONG, "it mints again", || {
            (node.get("/health/ready").status == 200).then_some(())
        });
    }
    let count: usize = seen.iter().map(|seen| seen.kept.len()).sum();
    println!("{count} events by callers");
    assert!(numbering.check(&nodes[0], NUMBER_CALLERS) > 100);
    assert_all_is_kept(&nodes[1], ledgers, seen);
    let (late, appended, reported) = late.expect("it was told");
    let again = append(&nodes[1], &late, "once");
    assert_eq!(
        (again.status, again.json()["ids"].take()),
        (200, appended.json()["ids"].take()),
        "{}",
        again.text()
    );
    assert!(
        [200, 201].contains(&append(&nodes[0], &late, "another").status),
        "it goes on"
    );
    for (object, before) in (1..=20).zip(&reported) {
        let again = report(&nodes[0], object);
        assert_eq!(
            (&again["id"], &again["created"]),
            (&before["id"], &json!(false)),
            "{again}"
        );
    }
    assert!(
        nodes
            .iter()
            .all(|node| node.metric("idmint_journal_failures_total") == 0.0)
    );
    println!(
        "{} ids, none twice",
        assert_all_different(minters.map(Minter::stop))
    );
}

#[test]
fn what_a_restored_etcd_forgot_comes_back_from_the_journals_of_its_nodes_while_callers_go_on() {
    // With a short outage, callers are more likely to reach etcd before the nodes have noticed the
    // restore.
    restore_under_appenders(Duration::ZERO);
    for away in short_or_whole(&[][..], &[4, 20][..]) {
        restore_under_appenders(Duration::from_secs(*away));
    }
}

#[test]
fn what_stopped_nodes_are_told_after_a_fence_done_within_a_second_is_acknowledged_to_nobody() {
    let mut etcd = EtcdCluster::start(1);
    let homes: [Home; 6] = std::array::from_fn(|_| Home::new());
    let nodes = homes.each_ref().map(|home| node(home, &etcd, 8));
    let ledgers = begin(&nodes[0], 7);
    let places = nodes.each_ref().map(Place::of);
    let (granted, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let stopping = StopOnDrop(&stop);
        let caller = |number: usize| {
            let caller = Appender::new(number, &places[number % nodes.len()], &ledgers);
            scope.spawn(|| caller.run(&granted, &stop))
        };
        let callers: Vec<_> = (0..18).map(caller).collect();
        let go_on = || {
            let target = granted.load(Ordering::Relaxed) + 300;
            until_within(LONG, "appends are acknowledged", || {
                (granted.load(Ordering::Relaxed) >= target).then_some(())
            });
        };
        go_on();
        // Stop the nodes while they have requests in progress. Etcd commits these requests, and the
        // nodes see the responses only after they continue.
        nodes.iter().for_each(|node| node.send(Signal::STOP));
        std::thread::sleep(Duration::from_millis(50));
        etcd.wipe();
        let journals = homes.each_ref().map(|home| home.data_dir());
        let fenced = fence(&homes[0], &journals.each_ref().map(|path| path.as_path()));
        nodes.iter().for_each(|node| node.send(Signal::CONT));
        println!("{}", fenced.out);
        fenced.assert(0, &[]);
        go_on();
        drop(stopping);
        callers
            .into_iter()
            .map(|caller| caller.join().expect("the caller found nothing wrong"))
            .collect()
    });
    let recovered = || {
        (nodes[0]
            .get(&format!("/ledgers/{}/ids", ledgers[0].id))
            .status
            == 200)
            .then_some(())
    };
    until_within(LONG, "it reads again", recovered);
    assert_all_is_kept(&nodes[0], ledgers, seen);
}

/// A stranger is a node that knows nothing of the earlier fleet. Its new fleet begins above all ids
/// that the nodes may have minted, so the ids alone do not prevent the nodes from joining it.
#[test]
fn a_wiped_etcd_that_a_stranger_has_founded_anew_is_joined_by_nobody_who_knows_of_ledgers_in_it() {
    let mut etcd = EtcdCluster::start(1);
    let homes: [Home; 3] = std::array::from_fn(|_| Home::new());
    let mut nodes: Vec<Service> = homes[..2]
        .iter()
        .map(|home| node(home, &etcd, SLOTS))
        .collect();
    let ledger = create(&nodes[0], "before").json()["ledger"]
        .as_str()
        .unwrap()
        .to_owned();
    let appended = append(&nodes[1], &ledger, "once");
    assert!([200, 201].contains(&appended.status), "{}", appended.text());
    etcd.wipe();
    for node in &nodes {
        until_within(LONG, "it notices", || {
            (node.metric("idmint_coordinator_regressed") == 1.0).then_some(())
        });
    }
    let endpoints = etcd.endpoints();
    let stranger = homes[2].serve_with(&format!(
        "storage.engine = 'etcd'\netcd.endpoints = {endpoints:?}\nworker.slots = {SLOTS}"
    ));
    let stranger = Service::start(stranger);
    until_within(LONG, "the stranger mints", || {
        (stranger.get("/health/ready").status == 200).then_some(())
    });
    // Start the other node again, so that it knows only its files.
    nodes.pop().expect("there are two").kill();
    nodes.push(starting(&homes[1], &etcd, SLOTS));
    until("it has looked", || {
        (nodes[1].metric("idmint_coordinator_regressed") == 1.0).then_some(())
    });
    let target = format!("/ledgers/{ledger}/ids");
    // For comparison, check that the new fleet of the other node does not contain the ledger.
    assert_eq!(read(&stranger, &target).status, 404);
    for _ in 0..20 {
        for node in &nodes {
            let read = node.get(&target);
            assert_eq!(read.status, 503, "{}", read.text());
            assert_eq!(node.get("/health/ready").status, 503);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    stranger.kill();
    etcd.wipe();
    let fenced = fence(&homes[0], &[&homes[0].data_dir(), &homes[1].data_dir()]);
    println!("{}", fenced.out);
    fenced.assert(0, &[]);
    for node in &nodes {
        until_within(LONG, "it mints again", || {
            (node.get("/health/ready").status == 200).then_some(())
        });
        let again = append(node, &ledger, "once");
        assert_eq!(
            (again.status, again.json()["ids"].take()),
            (200, appended.json()["ids"].take()),
            "{}",
            again.text()
        );
    }
}

#[test]
fn what_cannot_come_back_is_named_and_nothing_is_renumbered() {
    let mut etcd = EtcdCluster::start(1);
    let (home, other) = (Home::new(), Home::new());
    let node = node(&home, &etcd, SLOTS);
    let ledger = create(&node, "before").json()["ledger"]
        .as_str()
        .unwrap()
        .to_owned();
    let snapshot = etcd.save();
    let lost = append(&node, &ledger, "lost").json()["ids"][0]
        .as_str()
        .unwrap()
        .to_owned();
    wait_for_renewals(std::slice::from_ref(&node));
    etcd.restore(&snapshot);
    until_within(LONG, "it notices", || {
        (node.metric("idmint_coordinator_regressed") == 1.0).then_some(())
    });
    // The operator fences the fleet too early, without the journal (the node's copy of its
    // commits).
    let fenced = fence(&home, &[]);
    fenced.assert(0, &[]);
    assert!(
        fenced.out.contains("another run with --journal"),
        "{}",
        fenced.out
    );
    until_within(LONG, "it mints again", || {
        (node.get("/health/ready").status == 200).then_some(())
    });
    let instead = append(&node, &ledger, "instead");
    assert!([200, 201].contains(&instead.status), "{}", instead.text());

    let late = fence(&home, &[&home.data_dir()]);
    println!("{}", late.out);
    late.assert(
        65,
        &["the fleet is fenced, but 1 events, 0 conjunctions and 0 numbers are lost"],
    );
    let line = format!(
        "lost: 1 events of ledger {ledger} from position 2 on, because the ledger has other events at these positions: \
         {lost}"
    );
    assert!(late.out.contains(&line), "{}", late.out);
    let ids = read(&node, &format!("/ledgers/{ledger}/ids")).json();
    assert_eq!(
        (&ids["ids"][1]["id"], ids["ids"].as_array().unwrap().len()),
        (&instead.json()["ids"][0], 2)
    );

    let strange = EtcdCluster::start(1);
    let stranger = super::nodes::node(&other, &strange, SLOTS);
    create(&stranger, "elsewhere");
    fence(&home, &[&home.data_dir(), &other.data_dir()])
        .assert(78, &["this is a journal of the fleet that began as"]);
    fence(&home, &[&home.path("nowhere")]).assert(74, &["nowhere"]);
}

#[test]
fn a_fence_with_a_damaged_journal_brings_back_the_other_records_and_ends_with_65() {
    let mut etcd = EtcdCluster::start(1);
    let home = Home::new();
    let node = node(&home, &etcd, SLOTS);
    let snapshot = etcd.save();
    for number in 0..6 {
        let created = create(&node, &format!("ledger-{number}"));
        assert!([200, 201].contains(&created.status), "{}", created.text());
    }
    node.send(Signal::TERM);
    node.wait();
    etcd.restore(&snapshot);
    let data_dir = home.data_dir();
    let segment = data_dir.join("journal-default/segment-0000000001");
    let mut bytes = std::fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&segment, &bytes).unwrap();
    let fenced = fence(&home, &[&data_dir]);
    println!("{}{}", fenced.out, fenced.err);
    fenced.assert(
        65,
        &[
            "the fleet is fenced",
            "the journals listed above are damaged",
        ],
    );
    for line in ["are damaged and are skipped", "5 events in 5 ledgers"] {
        assert!(
            fenced.out.contains(line),
            "{line:?} is not in {}",
            fenced.out
        );
    }
}
