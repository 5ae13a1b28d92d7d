//! Checks that each alert about a fleet fires in a real Prometheus. The tests produce the cause of
//! each alert on real nodes and their etcd.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use idmint_fleet::Space;
use rustix::process::Signal;

use super::client::settings;
use super::etcd_cluster::EtcdCluster;
use super::nodes::{node, serve, slot_of, starting, until_within};
use super::quota::{COUNTED, QUOTA, append, fill_more, state_of};
use crate::prometheus::Prometheus;
use crate::provoked::{OF_A_FLEET, firing, rules, wait_for_scrapes};
use crate::small_disk::SmallDisk;
use crate::wall_clock::WallClock;
use idmint_testing::service::{Home, Service, serve_from, until};

/// A timeout that is longer than a lease and its consequences, even on a slow machine.
const LONG: Duration = Duration::from_secs(240);

#[test]
fn what_is_done_to_a_fleet_fires_its_alert() {
    let homes: [Home; 8] = std::array::from_fn(|_| Home::new());
    let mut lost = EtcdCluster::start(1);
    let mut restored = EtcdCluster::start(1);
    let small =
        EtcdCluster::start_with(1, "http", &[format!("--quota-backend-bytes={QUOTA}")], &[]);

    let right = [0, 1, 2].map(|place| node(&homes[place], &lost, 8));
    let wall = WallClock::of(&homes[3]);
    // Set the clock so far ahead that its error is certain. The readings of the other nodes' clocks
    // may be a few seconds old.
    wall.set(30);
    let ahead = wall.start(serve(&homes[3], &lost.endpoints(), 8, ""));
    // Use one slot, so that a waiting node can only get the slot of the stopped node.
    let holder = node(&homes[4], &restored, 1);
    let waiter = starting(&homes[5], &restored, 1);
    let filling = Service::start(serve(
        &homes[6],
        &small.endpoints(),
        4,
        "etcd.quota = '16MiB'",
    ));
    let disk = SmallDisk::empty(1);
    // Drop this command, because only the configuration file that `serve` writes is needed.
    drop(serve(&homes[7], &lost.endpoints(), 8, ""));
    let mut on_disk = serve_from(&disk.path().join("data"));
    on_disk
        .arg("--config")
        .arg(homes[7].path("idmint.toml"))
        .arg("--new-fleet");
    let full = Service::start(disk.beside(&on_disk));

    let nodes = [
        &right[0], &right[1], &right[2], &ahead, &holder, &waiter, &filling, &full,
    ];
    for node in [&filling, &full] {
        node.wait_until_ready();
    }
    let of = |nodes: &[&Service]| nodes.iter().map(|node| node.address()).collect::<Vec<_>>();
    // Each namespace is a separate job of Prometheus, because each fleet has its own slots.
    let jobs = [
        (
            "idmint-lost",
            of(&[&right[0], &right[1], &right[2], &ahead, &full]),
        ),
        ("idmint-restored", of(&[&holder, &waiter])),
        ("idmint-small", of(&[&filling])),
    ];
    let prometheus = Prometheus::start(&jobs, &rules());
    wait_for_scrapes(&prometheus, nodes.len());
    let mut wanted: BTreeSet<&str> = OF_A_FLEET.into_iter().collect();
    let mut are_left = |wait_for: &[&str]| {
        let firing = firing(&prometheus);
        let before = wanted.len();
        wanted.retain(|alert| !firing.contains(*alert));
        if wanted.len() < before {
            println!("these do not fire yet: {wanted:?}");
        }
        (!wait_for.iter().any(|alert| wanted.contains(alert))).then_some(())
    };

    disk.fill();
    holder.send(Signal::STOP);
    let client = idmint_fleet::connect(&settings(&small.endpoints())).unwrap();
    let (mut parts, mut numbers) = (0, 0);
    until_within(LONG, "clocks, journals and a filling etcd are told", || {
        if !Space::of(&state_of(&*client), QUOTA).is_scarce() {
            fill_more(&*client, parts);
            parts += 1;
            thread::sleep(COUNTED);
        }
        numbers += 1;
        append(&full, numbers);
        are_left(&[
            "IdmintPeerClockSkewed",
            "IdmintJournalNotWritten",
            "IdmintCoordinatorFilling",
        ])
    });
    lost.kill(0);
    until_within(LONG, "the waiter has the slot", || slot_of(&waiter));
    holder.send(Signal::CONT);
    until_within(LONG, "the fence and the silence are told", || {
        are_left(&["IdmintFenced", "IdmintCoordinatorSilent"])
    });

    let snapshot = restored.save();
    let extensions = || waiter.metric("idmint_horizon_extensions_total{outcome=\"extended\"}");
    let before = extensions();
    until("its slot is renewed after the backup", || {
        (extensions() >= before + 2.0).then_some(())
    });
    restored.restore(&snapshot);
    until_within(LONG, "the loss is told", || {
        are_left(&["IdmintCoordinatorRegressed"])
    });
    println!("{} alerts fire", OF_A_FLEET.len());
}
