//! Checks the creation of a fleet, and the time from which it mints. After etcd was wiped, a new
//! fleet must mint above all ids that other nodes may mint. A single wrong clock must not determine
//! this time forever.

use std::collections::HashSet;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use super::etcd_cluster::EtcdCluster;
use super::fencing::{fence_restore, fence_trusting_the_clock};
use super::folders::wait_until_minted;
use super::nodes::{Minter, assert_all_different, node, serve, slot_of, starting, until_within};
use crate::status::assert_status_says;
use crate::wall_clock::WallClock;
use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, PREFER_TEXT, Service, until};

/// The number of slots. With one slot, nodes that do not know each other get the same worker
/// numbers.
const SLOTS: u32 = 1;

/// A timeout that is longer than a new or fenced fleet waits before it mints, even on a slow
/// machine.
const LONG: Duration = Duration::from_secs(240);

const DAYS_400: i64 = 400 * 86_400;

/// Returns a command that starts a node without any state, so the node knows only what etcd
/// contains. The command has no `--new-fleet`, so the operator does not confirm that the fleet is
/// new.
fn serve_unsaid(home: &Home, etcd: &EtcdCluster, slots: u32) -> Command {
    let endpoints = etcd.endpoints();
    let text = format!(
        "storage.engine = 'etcd'\netcd.endpoints = {endpoints:?}\nworker.slots = {slots}\nmint.batch_max = 10000"
    );
    home.serve_with(&text)
}

fn detail_of(node: &Service) -> String {
    node.get("/health/ready").json()["detail"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn fence(home: &Home, high_waters: &[&Home]) -> idmint_testing::service::Ended {
    let file = |other: &&Home| ("--high-water", other.data_dir().join("high-water-default"));
    fence_trusting_the_clock(&home.path("idmint.toml"), high_waters.iter().map(file))
}

/// Sends requests to two nodes at the same moment, until both mint the same id. The callers at the
/// nodes seldom mint within the same millisecond on a busy machine. Returns the ids of both nodes.
fn mint_until_equal(nodes: [&Service; 2]) -> [Vec<u64>; 2] {
    until("two nodes mint the same id", || {
        let mut clients = nodes.map(|node| Client::connect(node.address()));
        for client in &mut clients {
            client.send(request("POST /ids/snowflake?count=2000", PREFER_TEXT, ""));
        }
        let minted = clients.map(|mut client| -> Vec<u64> {
            let answer = client.receive();
            let lines = answer.text();
            let ids = lines.lines().filter(|_| answer.status == 200);
            ids.map(|id| id.parse().unwrap()).collect()
        });
        let first: HashSet<u64> = minted[0].iter().copied().collect();
        let has_met = minted[1].iter().any(|id| first.contains(id));
        has_met.then_some(minted)
    })
}

#[test]
fn a_wiped_etcd_is_founded_above_all_that_a_node_still_mints_which_was_cut_off() {
    let mut lost = EtcdCluster::start(1);
    let homes: [Home; 3] = std::array::from_fn(|_| Home::new());
    let old = node(&homes[0], &lost, SLOTS);
    let minter = Minter::at(&old);
    until_within(LONG, "a minute is reserved", || {
        (old.metric("idmint_horizon_remaining_seconds") > 44.0).then_some(())
    });
    let wiped = [EtcdCluster::start(1), EtcdCluster::start(1)];
    // For comparison, the operator of the second etcd says that the fleet is new, although it is
    // not. This node mints the same ids as the old node, before and after the old node is cut off.
    let misled = starting(&homes[2], &wiped[1], SLOTS);
    misled.wait_until_ready();
    let misled_minter = Minter::at(&misled);
    let met = mint_until_equal([&old, &misled]);
    // Kill this etcd, so that the node cannot ask it whether minting is still allowed.
    lost.kill(0);
    let founder = Service::start(serve_unsaid(&homes[1], &wiped[0], SLOTS));
    until("it founds the fleet and says so", || {
        (founder.metric("idmint_horizon_cold_starts_total") == 1.0).then_some(())
    });
    founder.log_once_it_says("this node founded a fleet");
    founder.log_once_it_says("this node has no worker slot: the fleet begins at");
    until("it waits for its floor", || {
        detail_of(&founder)
            .contains("the fleet begins at")
            .then_some(())
    });
    until_within(LONG, "the old node has stopped", || {
        slot_of(&old).is_none().then_some(())
    });
    until_within(LONG, "the founder mints", || slot_of(&founder));
    let founder_minter = Minter::at(&founder);
    wait_until_minted(&founder);
    let [mut old, mut misled, founder] = [minter, misled_minter, founder_minter].map(Minter::stop);
    for (minted, met) in [&mut old, &mut misled].into_iter().zip(met) {
        minted.ids.extend(met);
    }
    let before: HashSet<u64> = old.ids.iter().copied().collect();
    let equal = misled.ids.iter().filter(|id| before.contains(id)).count();
    assert!(equal > 0, "the control shows that they can meet");
    assert!(!founder.ids.is_empty());
    println!(
        "{equal} of {} ids of the control are equal",
        misled.ids.len()
    );
    println!("{} ids, none twice", assert_all_different([old, founder]));
}

#[test]
fn one_clock_that_was_ahead_when_it_founded_the_fleet_stops_it_until_it_is_fenced_and_no_longer() {
    let etcd = EtcdCluster::start(1);
    let homes: [Home; 2] = std::array::from_fn(|_| Home::new());
    let wall = WallClock::of(&homes[0]);
    wall.set(DAYS_400);
    let ahead = wall.start(serve(&homes[0], &etcd.endpoints(), 4, ""));
    until_within(LONG, "it mints by its clock", || slot_of(&ahead));
    let of_ahead = Minter::at(&ahead);

    let right = starting(&homes[1], &etcd, 4);
    until("it says what it waits for", || {
        detail_of(&right)
            .contains("the fleet begins at ")
            .then_some(())
    });
    right.log_once_it_says("A fleet that begins too late");
    assert_status_says(
        &right,
        1,
        &["no, no-worker-slot", "the fleet begins at "],
        &["begins too late", "fence-restore"],
    );
    let refused = right.post("/ids/snowflake");
    assert_eq!(refused.status, 503, "{}", refused.text());
    until("its ids are of its false year", || {
        let answer = ahead.post("/ids/snowflake");
        (answer.status == 200 && answer.text().lines().count() == 1).then_some(())
    });
    wait_until_minted(&ahead);
    let of_ahead = of_ahead.stop();
    ahead.send(Signal::TERM);
    ahead.wait();

    let of_founder = homes[0].data_dir().join("high-water-default");
    let config = homes[1].path("idmint.toml");
    fence_restore(&config, [("--high-water", of_founder)]).assert(
        78,
        &["the clock of this machine shows", "--trust-this-clock"],
    );
    let fenced = fence(&homes[1], &[&homes[0]]);
    println!("{}", fenced.out);
    fenced.assert(0, &[]);
    assert!(
        fenced
            .out
            .contains("because its node had a clock far ahead"),
        "{}",
        fenced.out
    );
    until_within(LONG, "the other mints", || slot_of(&right));
    let of_right = Minter::at(&right);
    // After its clock is set right, the first node also joins the fleet, in another slot.
    wall.set(0);
    let mended = wall.start(serve(&homes[0], &etcd.endpoints(), 4, ""));
    until_within(LONG, "it joins", || slot_of(&mended));
    let of_mended = Minter::at(&mended);
    wait_until_minted(&right);
    wait_until_minted(&mended);
    let minted = [of_ahead, of_right.stop(), of_mended.stop()];
    assert!(minted.iter().all(|minted| !minted.ids.is_empty()));
    println!("{} ids, none twice", assert_all_different(minted));
}

#[test]
fn a_slot_that_was_burnt_by_a_clock_ahead_is_fenced_alone() {
    let mut etcd = EtcdCluster::start(1);
    let homes: [Home; 2] = std::array::from_fn(|_| Home::new());
    let right = node(&homes[0], &etcd, 4);
    let wall = WallClock::of(&homes[1]);
    wall.set(DAYS_400);
    let ahead = wall.start(serve(&homes[1], &etcd.endpoints(), 4, ""));
    until_within(LONG, "of two clocks nobody knows which is right", || {
        slot_of(&ahead)
    });
    ahead.kill();
    let minter = Minter::at(&right);
    let snapshot = etcd.save();
    etcd.restore(&snapshot);
    let fenced = fence(&homes[0], &[]);
    println!("{}", fenced.out);
    fenced.assert(0, &[]);
    assert!(
        fenced.out.contains("nodes use other slots instead") && fenced.out.contains("mint in 66 s"),
        "{}",
        fenced.out
    );
    until_within(LONG, "it has seen the fence", || {
        slot_of(&right).is_none().then_some(())
    });
    until_within(LONG, "it mints again", || slot_of(&right));
    println!("{} ids, none twice", assert_all_different([minter.stop()]));
}
