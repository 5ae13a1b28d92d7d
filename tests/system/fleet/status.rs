//! Checks `idmint fleet status` with real nodes and real etcd members.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::etcd_cluster::EtcdCluster;
use super::etcd_link::{EtcdLink, Weather};
use super::fencing::run_until_answered;
use super::nodes::{node, serve, until_within};
use crate::wall_clock::WallClock;
use idmint_testing::service::{Ended, Home, Service, StopOnDrop, idmint, run, until};

const SLOTS: u32 = 4;

/// A timeout that is longer than a node needs to notice that etcd has lost data, even on a slow
/// machine.
const LONG: Duration = Duration::from_secs(240);

fn status(home: &Home, more: &[&str]) -> Ended {
    status_by(home, home, more)
}

/// Runs `idmint fleet status` with the configuration of `config` and the data folder of `folder`.
/// Repeats the command until etcd responds.
fn status_by(config: &Home, folder: &Home, more: &[&str]) -> Ended {
    run_until_answered(|| command(config, folder, more))
}

/// Repeats `idmint fleet status` until it finds no problem. On a busy machine, a node may not renew
/// its slot in time, or an etcd member may not respond.
fn status_when_well(config: &Home, folder: &Home, more: &[&str]) -> Ended {
    until_within(LONG, "no problem is found", || {
        Some(status_by(config, folder, more)).filter(|ended| ended.status.code() == Some(0))
    })
}

/// Returns the command that [`status_by`] runs.
fn command(config: &Home, folder: &Home, more: &[&str]) -> Command {
    let config = config.path("idmint.toml");
    let mut command = idmint(&["fleet", "status", "--config", config.to_str().unwrap()]);
    command
        .args(more)
        .env("IDMINT_STORAGE__DATA_DIR", folder.data_dir());
    command
}

/// Asserts that a command ended with exit code `code`, and that its output contains all `words`.
#[track_caller]
fn assert_says(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!(
        ended.status.code(),
        Some(code),
        "{}\n{}",
        ended.out,
        ended.err
    );
    for word in words {
        assert!(ended.out.contains(word), "{word:?} is not in {}", ended.out);
    }
}

#[test]
fn it_says_who_holds_which_slot_and_what_is_wrong_with_the_members_and_with_another_region() {
    let mut etcd = EtcdCluster::start(3);
    let homes: [Home; 3] = std::array::from_fn(|_| Home::new());
    let _nodes = [0, 1].map(|number| node(&homes[number], &etcd, SLOTS));
    let well = status_when_well(&homes[0], &homes[0], &[]);
    println!("{}", well.out);
    assert_says(
        &well,
        0,
        &[
            "no problem found",
            "clock at most ",
            "free    2 slots",
            "leads",
        ],
    );
    let printed = status_when_well(&homes[0], &homes[0], &["--json"]);
    assert_says(&printed, 0, &["\"well\": true"]);
    let json: Value = serde_json::from_str(&printed.out).unwrap();
    let states: Vec<&str> = json["slots"]
        .as_array()
        .unwrap()
        .iter()
        .map(|slot| slot["state"].as_str().unwrap())
        .collect();
    assert_eq!(
        states.iter().filter(|state| **state == "held").count(),
        2,
        "{states:?}"
    );
    assert_eq!(json["members"].as_array().unwrap().len(), 3);

    let west = EtcdCluster::start(1);
    let _there = node(&homes[2], &west, SLOTS);
    let peer = west.endpoints().remove(0);
    assert_says(
        &status(&homes[0], &["--peer", &peer]),
        1,
        &[
            "slots 0-3 belong to two regions",
            "do   stop the nodes of one",
        ],
    );
    drop(west);
    assert_says(
        &status(&homes[0], &["--peer", &peer]),
        1,
        &["is unreachable"],
    );

    etcd.kill(2);
    assert_says(
        &status(&homes[0], &[]),
        1,
        &["does not answer", "restore this member"],
    );
    etcd.kill(1);
    run(command(&homes[0], &homes[0], &[])).assert(75, &["coordinator"]);
}

#[test]
fn after_a_restore_it_names_the_fence_whether_this_machine_knows_what_was_lost_or_not() {
    let mut etcd = EtcdCluster::start(1);
    let homes: [Home; 3] = std::array::from_fn(|_| Home::new());
    let [one, two] = [0, 1].map(|number| node(&homes[number], &etcd, SLOTS));
    let snapshot = etcd.save();
    let extensions =
        |node: &Service| node.metric("idmint_horizon_extensions_total{outcome=\"extended\"}");
    for node in [&one, &two] {
        let before = extensions(node);
        until("its slot is renewed after the backup", || {
            (extensions(node) >= before + 2.0).then_some(())
        });
    }
    assert_says(
        &status_when_well(&homes[0], &homes[2], &[]),
        0,
        &["no problem found"],
    );
    // End a node, because it writes its high-water marks (the highest revisions and times that it
    // has seen) when it ends.
    two.send(Signal::TERM);
    two.wait();

    etcd.restore(&snapshot);
    until_within(LONG, "it notices", || {
        (one.metric("idmint_coordinator_regressed") == 1.0).then_some(())
    });
    // Run both commands at the same time, because the leases of the slots expire after a minute.
    let config = &homes[0];
    let [knows_nothing, knows] = thread::scope(|scope| {
        [&homes[2], &homes[1]]
            .map(|folder| scope.spawn(move || status_by(config, folder, &[])))
            .map(|ended| ended.join().expect("the command ends"))
    });
    println!("{}", knows_nothing.out);
    let likely = [
        "2 of the 2 nodes that hold a slot do not renew it",
        "idmint fleet fence-restore",
        "check that the node runs",
    ];
    assert_says(&knows_nothing, 1, &likely);
    println!("{}", knows.out);
    let certain = [
        "etcd has lost acknowledged writes: ",
        "the node renews nothing until you run idmint fleet fence-restore",
    ];
    assert_says(&knows, 1, &certain);
    assert!(
        !knows
            .out
            .contains("check that the node runs and reaches etcd"),
        "{}",
        knows.out
    );
}

#[test]
fn a_clock_that_is_ahead_is_told_and_a_slow_way_to_etcd_is_no_clock_that_is_wrong() {
    let etcd = EtcdCluster::start(1);
    let homes: [Home; 5] = std::array::from_fn(|_| Home::new());
    let _right = [0, 1, 2].map(|number| node(&homes[number], &etcd, 8));
    let link = EtcdLink::to(&etcd.endpoints()[0]);
    drop(serve(&homes[4], &[link.endpoint()], 8, ""));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let running = StopOnDrop(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for (weather, millis) in [(Weather::Stalled, 800), (Weather::Clear, 200)] {
                    link.turn(weather);
                    thread::sleep(Duration::from_millis(millis));
                }
            }
            link.turn(Weather::Clear);
        });
        let mut looks = 0;
        until_within(LONG, "it sees how the fleet is", || {
            let slow = status(&homes[4], &[]);
            assert!(
                !slow.out.contains("the clock of"),
                "all are of this machine: {}",
                slow.out
            );
            // Retry, because etcd may not respond at all while the link is stalled.
            looks += u32::from(slow.out.contains("clock at most "));
            (looks == 3).then_some(())
        });
        drop(running);
    });
    assert!(link.mishaps() > 0, "the way was slow");

    let wall = WallClock::of(&homes[3]);
    wall.set(3);
    let ahead = wall.start(serve(&homes[3], &etcd.endpoints(), 8, ""));
    ahead.wait_until_ready();
    let addr = ahead.address().to_string();
    let is_told = |line: &str| line.contains(&addr) && line.contains(" s ahead of this machine's");
    let told = until_within(LONG, "a renewal of it is seen in time", || {
        let status = status(&homes[0], &[]);
        (status.status.code() == Some(1) && status.out.lines().any(is_told)).then_some(status.out)
    });
    println!("{told}");
    assert_eq!(told.matches("the clock of").count(), 1, "{told}");
}
