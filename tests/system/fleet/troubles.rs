//! Checks a fleet of real nodes in three kinds of failure: leases are revoked, etcd has no space,
//! and there are more nodes than slots.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use idmint_fleet::{CoordinatorError, Range, Transaction, Write};
use rustix::process::Signal;

use super::client::settings;
use super::etcd_cluster::EtcdCluster;
use super::nodes::{
    Minted, Minter, assert_all_different, minted_by, node, slot_of, starting, until_within,
};
use idmint_testing::service::{Home, Service, until};

fn assert_none_failed(minted: &[Minted]) {
    for one in minted {
        assert!(
            one.refused.is_empty() && one.cut == 0,
            "{:?}, {} cut",
            one.refused.first(),
            one.cut
        );
    }
}

fn is_reserved_for(node: &Service, seconds: f64) -> Option<()> {
    (node.metric("idmint_horizon_remaining_seconds") > seconds).then_some(())
}

#[test]
fn nodes_whose_leases_are_revoked_every_two_seconds_keep_their_slots_and_fail_no_mint() {
    const REVOCATIONS: usize = 10;
    let etcd = EtcdCluster::start(1);
    let homes: [Home; 3] = std::array::from_fn(|_| Home::new());
    let nodes = homes.each_ref().map(|home| node(home, &etcd, 8));
    for node in &nodes {
        until_within(Duration::from_secs(240), "time is reserved", || {
            is_reserved_for(node, 10.0)
        });
    }
    let slots = nodes.each_ref().map(slot_of);
    let minters = nodes.each_ref().map(Minter::at);
    let mut revoked = 0;
    for _ in 0..REVOCATIONS {
        let leases = etcd.etcdctl(&["lease", "list"]);
        for lease in leases
            .lines()
            .filter(|line| line.len() == 16 && !line.contains(' '))
        {
            // Ignore a failure, because the node itself may have revoked the lease in the meantime.
            etcd.etcdctl_if_any(&["lease", "revoke", lease]);
            revoked += 1;
        }
        thread::sleep(Duration::from_secs(2));
    }
    until("each slot is held again", || {
        let held = etcd.etcdctl(&["get", "--prefix", "--keys-only", "/idmint/v1/default/slot/"]);
        (held.split_whitespace().count() == nodes.len()).then_some(())
    });
    let minted = minters.map(Minter::stop);
    assert_none_failed(&minted);
    assert_eq!(nodes.each_ref().map(slot_of), slots);
    assert!(
        nodes
            .iter()
            .all(|node| node.metric("idmint_fenced_total") == 0.0)
    );
    println!(
        "{revoked} leases revoked, {} ids, none twice and none refused",
        assert_all_different(minted)
    );
    assert!(revoked >= REVOCATIONS, "{revoked}");
}

#[test]
fn four_of_six_nodes_have_the_four_slots_and_one_that_waits_takes_over_from_one_that_ends() {
    const SLOTS: u32 = 4;
    let etcd = EtcdCluster::start(1);
    let homes: [Home; 6] = std::array::from_fn(|_| Home::new());
    let mut nodes: Vec<Service> = homes
        .iter()
        .map(|home| starting(home, &etcd, SLOTS))
        .collect();
    let minters: Vec<Minter> = nodes.iter().map(Minter::at).collect();
    let slots_of = |nodes: &[Service]| nodes.iter().map(slot_of).collect::<Vec<Option<u64>>>();
    let all: BTreeSet<u64> = (0..u64::from(SLOTS)).collect();
    let have_all = |nodes: &[Service]| {
        slots_of(nodes)
            .into_iter()
            .flatten()
            .collect::<BTreeSet<u64>>()
            == all
    };
    until("each slot is held", || have_all(&nodes).then_some(()));
    let held = slots_of(&nodes);
    assert_eq!(held.iter().flatten().count(), 4, "{held:?}");
    let all_mint = |nodes: &[Service]| {
        nodes
            .iter()
            .all(|node| slot_of(node).is_none() || minted_by(node) > 0.0)
    };
    until("each of the four mints", || all_mint(&nodes).then_some(()));
    for (node, _) in nodes.iter().zip(&held).filter(|(_, slot)| slot.is_none()) {
        let refused = node.post("/ids/snowflake");
        assert_eq!(refused.status, 503);
        assert!(
            refused.text().contains("no-worker-slot") && refused.header("retry-after").is_some(),
            "{refused:?}"
        );
        assert_eq!(
            node.post("/ids/flax").status,
            200,
            "random ids need no slot"
        );
    }
    let mut left: Vec<Service> = Vec::new();
    let mut ended = None;
    for (node, slot) in nodes.drain(..).zip(&held) {
        match (slot, ended) {
            (Some(slot), None) => {
                ended = Some(*slot);
                node.send(Signal::TERM);
                node.wait().assert(0, &[]);
            }
            _ => left.push(node),
        }
    }
    let slot = ended.expect("one had a slot");
    until("another node has it", || have_all(&left).then_some(()));
    println!("slot {slot} has gone to another node");
    until("that one mints, too", || all_mint(&left).then_some(()));
    let minted: Vec<Minted> = minters.into_iter().map(Minter::stop).collect();
    let refused = minted
        .iter()
        .flat_map(|minted| &minted.refused)
        .filter(|refusal| refusal.contains("no-worker-slot"));
    assert!(refused.count() > 0, "two nodes had no slot");
    let by = minted
        .iter()
        .filter(|minted| !minted.ids.is_empty())
        .count();
    assert_eq!(by, 5, "four nodes, and the one that took over");
    println!("{} ids, none twice", assert_all_different(minted));
}

#[test]
fn an_etcd_without_space_is_bridged_for_forty_seconds_then_told_and_nodes_go_on_when_there_is_room()
{
    let etcd = EtcdCluster::start_with(
        1,
        "http",
        &["--quota-backend-bytes=16777216".to_owned()],
        &[],
    );
    let home = Home::new();
    let service = node(&home, &etcd, 4);
    until_within(Duration::from_secs(240), "a minute is reserved", || {
        is_reserved_for(&service, 44.0)
    });
    let client = idmint_fleet::connect(&settings(&etcd.endpoints())).unwrap();
    let fill = |at: usize| {
        let (key, value) = (format!("/fill/{}", at % 2), vec![7; 1024 * 1024]);
        client.commit(&Transaction {
            write: vec![Write::Put {
                key,
                value,
                lease: None,
            }],
            ..Transaction::default()
        })
    };
    // On a busy machine, a large write may get no response in time.
    let is_answered = |error: &CoordinatorError| !matches!(error, CoordinatorError::NoAnswer(_));
    let full = (0..64)
        .find_map(|at| fill(at).err().filter(is_answered))
        .expect("it is full at last");
    assert!(matches!(full, CoordinatorError::Full(_)), "{full}");
    let begun = Instant::now();
    let minter = Minter::at(&service);
    while begun.elapsed() < Duration::from_secs(38) {
        assert_eq!(
            service.get("/health/ready").status,
            200,
            "after {:?}",
            begun.elapsed()
        );
        thread::sleep(Duration::from_millis(200));
    }
    let bridged = minter.stop();
    assert_none_failed(std::slice::from_ref(&bridged));
    let refused = until_within(
        Duration::from_secs(240),
        "nothing is reserved any more",
        || Some(service.post("/ids/snowflake")).filter(|answer| answer.status == 503),
    );
    println!("refused after {:?}: {}", begun.elapsed(), refused.text());
    assert!(
        refused.text().contains("no-worker-slot"),
        "{}",
        refused.text()
    );
    assert!(service.metric("idmint_coordinator_requests_total{outcome=\"full\"}") > 0.0);
    assert!(
        service.log().contains("the coordinator (etcd) is full"),
        "{}",
        service.log()
    );

    let revision = client
        .read(&[Range::one("/a")])
        .unwrap()
        .revision
        .0
        .to_string();
    etcd.etcdctl(&["compact", &revision]);
    etcd.etcdctl(&["defrag"]);
    etcd.etcdctl(&["alarm", "disarm"]);
    let again = Instant::now();
    service.wait_until_ready();
    println!("ready {:?} after there was room", again.elapsed());
    let mut after = Minted::default();
    after.ids.extend(
        service
            .mint("snowflake?count=1000")
            .iter()
            .map(|id| id.parse::<u64>().unwrap()),
    );
    println!("{} ids, none twice", assert_all_different([bridged, after]));
}
