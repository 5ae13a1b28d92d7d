//! Checks a single wrong clock, of a node or of the operator's machine, on a real etcd.

use std::thread;
use std::time::Duration;

use super::etcd_cluster::EtcdCluster;
use super::fencing::{GivenFile, fence_trusting_the_clock, fence_until_answered};
use super::nodes::{
    Minter, assert_all_different, serve, slot_of, starting, until_within, wait_until_reserved,
};
use super::reimport;
use crate::wall_clock::WallClock;
use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, Service, Signal, until};

/// A timeout that is longer than a fenced fleet waits before it mints, even on a slow machine.
const LONG: Duration = Duration::from_secs(240);

/// Creates a ledger, and returns its id.
pub(super) fn create(node: &Service, key: &str) -> String {
    let ledger = reimport::create(node, key).json()["ledger"].take();
    ledger.as_str().expect("an id").to_owned()
}

/// Appends one event, and returns its id.
pub(super) fn append(node: &Service, ledger: &str, key: &str) -> serde_json::Value {
    let answer = reimport::append(node, ledger, key);
    assert!([200, 201].contains(&answer.status), "{}", answer.text());
    answer.json()["ids"].take()
}

/// Requests a number of a series, and returns it.
pub(super) fn number(node: &Service, key: &str) -> serde_json::Value {
    let headers = format!("idempotency-key: {key}\r\n");
    let answer = until("it is answered", || {
        let mut client = Client::connect(node.address());
        let answer = client.exchange(request("POST /numbers/inv", &headers, ""));
        Some(answer).filter(|answer| ![503, 504].contains(&answer.status))
    });
    assert!([200, 201].contains(&answer.status), "{}", answer.text());
    answer.json()["number"].take()
}

fn renewals(node: &Service) -> f64 {
    node.metric("idmint_horizon_extensions_total{outcome=\"extended\"}")
}

#[test]
fn a_process_that_has_held_several_slots_counts_as_one_clock_and_stops_nobody() {
    // Run twice. In the first run, the clock is ahead by less than the clocks of nodes may differ,
    // for comparison.
    for ahead_s in [3, 30] {
        let etcd = EtcdCluster::start(1);
        let homes: [Home; 2] = std::array::from_fn(|_| Home::new());
        let right = starting(&homes[1], &etcd, 16);
        right.wait_until_ready();
        let wall = WallClock::of(&homes[0]);
        wall.set(ahead_s);
        let ahead = wall.start(serve(&homes[0], &etcd.endpoints(), 16, ""));
        let before = until("of two clocks nobody knows which is right", || {
            slot_of(&ahead)
        });
        // The node with the right clock has now seen several clock readings of that slot.
        until_within(LONG, "both have renewed", || {
            (renewals(&ahead) >= 6.0 && renewals(&right) >= 6.0).then_some(())
        });
        // Wait until the node with the right clock has reserved its maximum time. From then on, it
        // is unready only if its clock is refused.
        wait_until_reserved(&right);
        let key = format!("/idmint/v1/default/slot/{before:05}");
        // Stop the node meanwhile. Otherwise it can write its slot again between the two commands
        // that give the slot to another process (the thief).
        ahead.send(Signal::STOP);
        let holder = etcd.etcdctl(&["get", &key, "--print-value-only"]);
        let mut thief: serde_json::Value = serde_json::from_str(&holder).unwrap();
        thief["instance"] = "0".repeat(32).into();
        thief["node"] = "thief".into();
        etcd.etcdctl(&["del", &key]);
        etcd.etcdctl(&["put", &key, &thief.to_string()]);
        ahead.send(Signal::CONT);
        until_within(LONG, "it has another slot", || {
            slot_of(&ahead).filter(|slot| *slot != before)
        });
        let seen = renewals(&right);
        until_within(LONG, "the right node has compared its clock since", || {
            assert_eq!(right.get("/health/ready").status, 200, "{ahead_s} s ahead");
            (renewals(&right) >= seen + 4.0).then_some(())
        });
    }
}

#[test]
fn a_fence_on_a_machine_whose_clock_is_behind_is_refused_and_no_id_is_minted_twice() {
    let window = "storage.window = '3s'";
    let mut etcd = EtcdCluster::start(1);
    let homes: [Home; 2] = std::array::from_fn(|_| Home::new());
    let first = Service::start(serve(&homes[0], &etcd.endpoints(), 1, window));
    first.wait_until_ready();
    let ledger = create(&first, "before");
    let snapshot = etcd.save();
    let minter = Minter::at(&first);
    let seen = renewals(&first);
    until_within(LONG, "it has minted for a while", || {
        (renewals(&first) >= seen + 5.0).then_some(())
    });
    append(&first, &ledger, "after");
    first.kill();
    let before = minter.stop();
    etcd.restore(&snapshot);

    let config = homes[1].path("idmint.toml");
    let fresh = serve(&homes[1], &etcd.endpoints(), 1, window);
    let wall = WallClock::of(&homes[1]);
    let fence = |behind_s: i64| {
        wall.set(-behind_s);
        let journal = homes[0].data_dir();
        fence_until_answered(&config, [("--journal", journal)], |command| {
            wall.give_to(command)
        })
    };
    for behind_s in [600, 3_600] {
        let refused = fence(behind_s);
        refused.assert(
            78,
            &["the clock of this machine shows", "--trust-this-clock"],
        );
    }
    // For comparison, fence again with the right clock.
    let fenced = fence(0);
    fenced.assert(0, &[]);
    assert!(
        fenced.out.contains("1 events in 1 ledgers"),
        "{}",
        fenced.out
    );
    let fresh = wall.start(fresh);
    until_within(LONG, "it mints", || slot_of(&fresh));
    let minter = Minter::at(&fresh);
    thread::sleep(Duration::from_secs(2));
    println!(
        "{} ids, none twice",
        assert_all_different([before, minter.stop()])
    );
}

#[test]
fn after_a_fence_that_lowers_a_far_floor_a_later_restore_keeps_what_was_acknowledged_since() {
    // Run twice. In the first run, the clock of the first node is right, for comparison.
    for ahead_s in [0, 400 * 86_400] {
        let mut etcd = EtcdCluster::start(1);
        let homes: [Home; 2] = std::array::from_fn(|_| Home::new());
        let wall = WallClock::of(&homes[0]);
        wall.set(ahead_s);
        let founder = wall.start(serve(&homes[0], &etcd.endpoints(), 4, ""));
        until_within(LONG, "it mints by its clock", || slot_of(&founder));
        founder.kill();
        let node = starting(&homes[1], &etcd, 4);
        until_within(LONG, "it reads the fleet", || {
            (node.get("/health/ready").json()["records"] == "ready").then_some(())
        });
        let ledger = create(&node, "ledger");
        number(&node, "zero");
        let snapshot = etcd.save();
        let both = |key: String| (append(&node, &ledger, &key), number(&node, &key));
        (0..5).for_each(|nth| drop(both(format!("A{nth}"))));
        let (config, files) = (
            homes[1].path("idmint.toml"),
            [
                ("--journal", homes[1].data_dir()),
                (
                    "--high-water",
                    homes[0].data_dir().join("high-water-default"),
                ),
            ],
        );
        let trusting = |files: &[GivenFile]| fence_trusting_the_clock(&config, files.to_vec());
        etcd.restore(&snapshot);
        until_within(LONG, "it notices", || {
            (node.metric("idmint_coordinator_regressed") == 1.0).then_some(())
        });
        // Fence without the journal (the node's copy of its commits), so that the first five
        // records are lost.
        trusting(&files[1..]).assert(0, &[]);
        until_within(LONG, "the numbers are resumed", || {
            let line = "POST /numbers/inv/resume?from=2";
            let resumed = Client::connect(node.address()).exchange(request(line, "", ""));
            (resumed.status == 200).then_some(())
        });
        let kept: Vec<_> = (0..7).map(|nth| both(format!("B{nth}"))).collect();
        etcd.restore(&snapshot);
        until_within(LONG, "it notices", || {
            (node.metric("idmint_coordinator_regressed") == 1.0).then_some(())
        });
        let fenced = trusting(&files);
        println!("{}", fenced.out);
        fenced.assert(65, &["5 events, 0 conjunctions and 5 numbers are lost"]);
        for (nth, kept) in kept.iter().enumerate() {
            assert_eq!(both(format!("B{nth}")), *kept, "B{nth}, {ahead_s} s ahead");
        }
    }
}
