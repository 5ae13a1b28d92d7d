//! Checks what nodes do when etcd is restored from a backup while they mint, and what a fence then
//! changes.

use std::time::Duration;

use rustix::process::Signal;

use super::etcd_cluster::EtcdCluster;
use super::fencing::fence_restore;
use super::nodes::{Minter, assert_all_different, node, starting, until_within};
use crate::status::assert_status_says;
use idmint_testing::http1::{Client, post_json};
use idmint_testing::service::{Home, Service, until};

const SLOTS: u32 = 4;

/// A timeout that is longer than a fenced fleet waits before it mints, even on a slow machine.
const LONG: Duration = Duration::from_secs(240);

fn is_regressed(node: &Service) -> bool {
    node.metric("idmint_coordinator_regressed") == 1.0
}

fn extensions(node: &Service) -> f64 {
    node.metric("idmint_horizon_extensions_total{outcome=\"extended\"}")
}

/// Mints ids with one request. On a busy machine, a node that was ready can need a moment to reserve
/// more time, so this function retries a request that is refused.
pub(super) fn mint_when_ready(node: &Service, order: &str) -> Vec<String> {
    let answer = until("it mints", || {
        Some(node.post(&format!("/ids/{order}"))).filter(|answer| answer.status != 503)
    });
    assert_eq!(answer.status, 200, "{order}: {}", answer.text());
    answer.text().lines().map(str::to_owned).collect()
}

#[test]
fn nodes_of_a_restored_etcd_refuse_until_it_is_fenced_and_no_id_is_minted_twice() {
    let mut etcd = EtcdCluster::start(3);
    let homes: [Home; 2] = std::array::from_fn(|_| Home::new());
    let [one, two] = [0, 1].map(|number| node(&homes[number], &etcd, SLOTS));
    let minters = [&one, &two].map(Minter::at);
    let snapshot = etcd.save();
    let at_backup = [&one, &two].map(extensions);
    for (node, before) in [&one, &two].into_iter().zip(at_backup) {
        until("its slot is renewed after the backup", || {
            (extensions(node) >= before + 2.0).then_some(())
        });
    }

    etcd.restore(&snapshot);
    for node in [&one, &two] {
        until_within(LONG, "it notices", || is_regressed(node).then_some(()));
        let ready = node.get("/health/ready");
        assert_eq!(
            (ready.status, ready.json()["reason"].as_str()),
            (503, Some("no-worker-slot"))
        );
        let detail = ready.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("idmint fleet fence-restore"), "{detail}");
        assert_status_says(
            node,
            1,
            &["no, no-worker-slot", &detail],
            &["start no node", "idmint fleet fence-restore"],
        );
        let refused = node.post("/ids/snowflake");
        assert_eq!(
            (refused.status, refused.json()["detail"].as_str()),
            (503, Some(detail.as_str()))
        );
        let event = r#"{"event":"Ledger Created","entities":{"ledger":"a"},"timestamp":"2021-10-03T16:32:12Z"}"#;
        let refused = Client::connect(node.address()).exchange(post_json("/ledgers", "", event));
        assert_eq!(refused.status, 503, "{}", refused.text());
    }
    // Restart a node. It must know from its own file that etcd has lost data.
    two.send(Signal::TERM);
    two.wait();
    let two = starting(&homes[1], &etcd, SLOTS);
    minters[1].turn_to(&two);
    until_within(LONG, "it knows", || is_regressed(&two).then_some(()));

    let file = homes[0].path("high-water");
    std::fs::copy(homes[1].data_dir().join("high-water-default"), &file).unwrap();
    let fenced = fence_restore(&homes[0].path("idmint.toml"), [("--high-water", file)]);
    fenced.assert(0, &[]);
    let printed = fenced.out;
    println!("{printed}");
    assert!(
        printed.contains("the fleet is ") && printed.contains("2 horizons in etcd"),
        "{printed}"
    );
    for node in [&one, &two] {
        until_within(LONG, "it mints again", || {
            (node.get("/health/ready").status == 200).then_some(())
        });
        assert!(!is_regressed(node));
        assert_eq!(mint_when_ready(node, "snowflake").len(), 1);
    }
    let minted = minters.map(Minter::stop);
    let told = minted
        .iter()
        .filter(|minted| {
            minted
                .refused
                .iter()
                .any(|why| why.contains("fence-restore"))
        })
        .count();
    assert_eq!(told, 2, "callers of both were told");
    println!("{} ids, none twice", assert_all_different(minted));
}

#[test]
fn a_node_founds_no_new_fleet_in_an_etcd_that_was_wiped() {
    let etcd = EtcdCluster::start(1);
    let home = Home::new();
    let first = node(&home, &etcd, SLOTS);
    first.send(Signal::TERM);
    first.wait();
    let (before, empty) = (etcd.revision(), EtcdCluster::start(1));
    assert!(before > empty.revision());
    let node = starting(&home, &empty, SLOTS);
    until("it notices", || is_regressed(&node).then_some(()));
    assert_eq!(
        empty
            .etcdctl(&["get", "/idmint/", "--prefix", "--keys-only"])
            .trim(),
        ""
    );
}
