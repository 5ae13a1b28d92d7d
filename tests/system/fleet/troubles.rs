//! Checks a fleet of real nodes in three kinds of failure: leases are revoked, etcd has no space,
//! and there are more nodes than slots.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use idmint_fleet::{CoordinatorError, Range, Transaction, Write};
use rustix::process::Signal;

use super::client::{answered, settings};
use super::etcd_cluster::EtcdCluster;
use super::nodes::{
    Minted, Minter, assert_all_different, assert_none_failed, assert_stays_ready, minted_by, node,
    slot_of, starting, until_within, wait_until_reserved,
};
use idmint_testing::service::{Home, LONG, Service, until};

#[test]
fn nodes_whose_leases_are_revoked_every_two_seconds_keep_their_slots_and_fail_no_mint() {
    const REVOCATIONS: usize = 10;
    let etcd = EtcdCluster::start(1);
    let homes: [Home; 3] = std::array::from_fn(|_| Home::new());
    let nodes = homes.each_ref().map(|home| node(home, &etcd, 8));
    nodes.iter().for_each(wait_until_reserved);
    let slots = nodes.each_ref().map(slot_of);
    let minters = nodes.each_ref().map(Minter::at);
    let (begun, mut rounds, mut revoked) = (Instant::now(), 0, 0);
    while rounds < REVOCATIONS || revoked < REVOCATIONS {
        assert!(begun.elapsed() < LONG, "{revoked} leases revoked");
        let leases = etcd.etcdctl(&["lease", "list"]);
        for lease in leases
            .lines()
            .filter(|line| line.len() == 16 && !line.contains(' '))
        {
            // Revoke only leases that hold a slot. If a node's new lease ended before the node had
            // attached its slot to it, the node would give up the slot.
            let keys = etcd.etcdctl(&["lease", "timetolive", lease, "--keys"]);
            if keys.contains("/slot/") {
                // Ignore a failure, because the node itself may have revoked the lease meanwhile.
                etcd.etcdctl_if_any(&["lease", "revoke", lease]);
                revoked += 1;
            }
        }
        rounds += 1;
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
    // Returns the slot of each node as soon as every slot is held.
    let held_if_all = |nodes: &[Service]| {
        let held = slots_of(nodes);
        (held.iter().copied().flatten().collect::<BTreeSet<u64>>() == all).then_some(held)
    };
    let held = until("each slot is held", || held_if_all(&nodes));
    assert_eq!(held.iter().flatten().count(), 4, "{held:?}");
    let all_mint = |nodes: &[Service]| {
        let held = held_if_all(nodes)?;
        let mut pairs = nodes.iter().zip(held);
        pairs
            .all(|(node, slot)| slot.is_none() || minted_by(node) > 0.0)
            .then_some(())
    };
    until("each of the four mints", || all_mint(&nodes));
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
    until("another node has it", || held_if_all(&left));
    println!("slot {slot} has gone to another node");
    until("that one mints, too", || all_mint(&left));
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
    wait_until_reserved(&service);
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
    let full = (0..64)
        .find_map(|at| answered(|| fill(at)).err())
        .expect("it is full at last");
    assert!(matches!(full, CoordinatorError::Full(_)), "{full}");
    let begun = Instant::now();
    let minter = Minter::at(&service);
    assert_stays_ready(&service, begun, Duration::from_secs(38));
    let bridged = minter.stop();
    assert_none_failed([&bridged]);
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

    let revision = answered(|| client.read(&[Range::one("/a")]))
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
