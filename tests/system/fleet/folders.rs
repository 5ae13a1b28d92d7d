//! Checks who may use a data folder. Only one process of a fleet can use a folder. A node of a
//! fleet must not continue in a folder in which a single node has minted.

use std::fs;

use rustix::process::Signal;

use super::adopting::{SLOTS, adopt, single_node};
use super::etcd_cluster::EtcdCluster;
use super::fencing::run_until_answered;
use super::nodes::{Minted, Minter, assert_all_different, minted_by, node, serve, starting};
use idmint_testing::service::{Home, Service, run, until};

/// Waits until the [`Minter`] at a node has received ids. When the node has minted two more batches
/// of 2000 ids, the client has received the first one, because it requests one batch after another.
pub(super) fn wait_until_minted(node: &Service) {
    let before = minted_by(node);
    until("a client mints", || {
        (minted_by(node) >= before + 4_000.0).then_some(())
    });
}

/// Mints for a while, and then ends the node.
fn mint_and_end(node: Service) -> Minted {
    let minter = Minter::at(&node);
    wait_until_minted(&node);
    let minted = minter.stop();
    assert!(!minted.ids.is_empty(), "it mints");
    node.send(Signal::TERM);
    node.wait();
    minted
}

#[test]
fn a_node_of_a_fleet_starts_on_a_single_nodes_folder_only_once_it_is_adopted_and_a_single_node_on_its_own_above_a_floor()
 {
    let etcd = EtcdCluster::start(1);
    let home = Home::new();
    let alone = mint_and_end(single_node(&home));
    let refused = run(serve(&home, &etcd.endpoints(), SLOTS, ""));
    refused.assert(
        78,
        &[
            &format!("idmint fleet adopt {}", home.data_dir().display()),
            "another storage.data_dir",
        ],
    );
    assert_eq!(
        etcd.etcdctl(&["get", "/idmint/", "--prefix", "--keys-only"])
            .trim(),
        "",
        "it has founded nothing"
    );

    run_until_answered(|| adopt(&home, &etcd)).assert(0, &[]);
    let adopted = mint_and_end(node(&home, &etcd, SLOTS));
    run(home.serve()).assert(78, &["was adopted by the fleet default"]);
    let strange = EtcdCluster::start(1);
    run(serve(
        &home,
        &strange.endpoints(),
        SLOTS,
        "etcd.namespace = 'other'",
    ))
    .assert(78, &["default", "other"]);

    let other = Home::new();
    let of_fleet = mint_and_end(node(&other, &etcd, SLOTS));
    run(other.serve()).assert(78, &["high-water-default", "--floor"]);
    assert!(
        !other.data_dir().join("horizon").exists(),
        "nothing was begun"
    );
    let back = mint_and_end(single_node(&other));
    let count = assert_all_different([alone, adopted, of_fleet, back]);
    println!("{count} ids of two single nodes and a fleet on two folders, none twice");
}

#[test]
fn two_processes_of_fleets_have_a_folder_each() {
    let etcd = EtcdCluster::start(1);
    let (home, other) = (Home::new(), Home::new());
    let first = node(&home, &etcd, SLOTS);
    let holder = format!("process {}", first.pid());
    for namespace in ["default", "other"] {
        let second = serve(
            &home,
            &etcd.endpoints(),
            SLOTS,
            &format!("etcd.namespace = '{namespace}'"),
        );
        run(second).assert(75, &["is in use by", &holder]);
    }
    run(home.serve()).assert(75, &["is in use by", &holder]);
    let second = starting(&other, &etcd, SLOTS);
    second.wait_until_ready();
    assert_eq!(first.mint("snowflake").len(), 1);
    first.kill();
    node(&home, &etcd, SLOTS);

    // If the folder cannot be created, the node must still start, because the lock in the folder is
    // optional.
    let without = Home::new();
    fs::write(without.data_dir(), "").unwrap();
    let node = node(&without, &etcd, SLOTS);
    assert!(
        node.log().contains("continuing without a lock"),
        "{}",
        node.log()
    );
}
