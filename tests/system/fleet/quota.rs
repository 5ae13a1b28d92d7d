//! Checks nodes whose etcd reaches its space quota while they mint.

use std::thread;
use std::time::{Duration, Instant};

use super::client::settings;
use super::etcd_cluster::EtcdCluster;
use super::nodes::{Minter, assert_all_different, serve, until_within};
use idmint_fleet::{Coordinator, CoordinatorError, MemberState, Space, Transaction, Write};
use idmint_testing::http1::{Answer, Client, post_json};
use idmint_testing::service::{Home, Service, until};

/// The space quota of the etcd member in bytes. The node gets it from its configuration, because
/// this version of etcd does not report its quota.
pub(super) const QUOTA: u64 = 16 * 1024 * 1024;

/// A duration that is longer than the interval at which a node asks etcd for its size.
const ASKED: Duration = Duration::from_secs(40);

/// The time for which etcd stays full. Nodes can mint without etcd for longer than that.
const FULL: Duration = Duration::from_secs(40);

/// A duration that is longer than etcd needs to write changes to its database and to count them.
/// This is 100 ms plus the time of the disk.
pub(super) const COUNTED: Duration = Duration::from_millis(150);

/// Creates a new ledger.
pub(super) fn append(node: &Service, number: u64) -> Answer {
    let (minute, second) = (number / 60, number % 60);
    let genesis = format!(
        r#"{{"event":"Ledger Created","entities":{{"ledger":"l{number}"}},"timestamp":"2021-10-03T16:{minute:02}:{second:02}Z"}}"#
    );
    Client::connect(node.address()).exchange(post_json("/ledgers", "", &genesis))
}

fn report(node: &Service, second: u64) -> Answer {
    let report =
        format!(r#"{{"tca":"2024-02-01T00:00:{second:02}Z","primary":25544,"secondary":48274}}"#);
    Client::connect(node.address()).exchange(post_json("/ids/conjunction", "", &report))
}

pub(super) fn state_of(client: &dyn Coordinator) -> MemberState {
    // On a busy machine, a member may not respond in time.
    until("the first member responds", || {
        client.members().remove(0).state.ok()
    })
}

/// Writes data that uses up a part of the quota. Every write uses the same keys, so the earlier
/// values become history.
pub(super) fn fill(client: &dyn Coordinator, at: usize) -> Result<(), CoordinatorError> {
    let write = vec![Write::Put {
        key: format!("/fill/{}", at % 2),
        value: vec![7; 256 * 1024],
        lease: None,
    }];
    client
        .commit(&Transaction {
            write,
            ..Transaction::default()
        })
        .map(drop)
}

/// Writes like [`fill`], to an etcd that is not full yet. Ignores a timeout, which is possible on a
/// busy machine. After a timeout, it does not matter whether the write succeeded.
pub(super) fn fill_more(client: &dyn Coordinator, at: usize) {
    match fill(client, at) {
        Ok(()) | Err(CoordinatorError::NoAnswer(_)) => {}
        Err(error) => panic!("it is not full yet: {error:?}"),
    }
}

#[test]
fn appends_stop_at_three_quarters_of_the_quota_and_mints_go_on_even_when_etcd_is_full() {
    let etcd = EtcdCluster::start_with(1, "http", &[format!("--quota-backend-bytes={QUOTA}")], &[]);
    let client = idmint_fleet::connect(&settings(&etcd.endpoints())).unwrap();
    let home = Home::new();
    let node = Service::start(serve(&home, &etcd.endpoints(), 4, "etcd.quota = '16MiB'"));
    node.wait_until_ready();
    let minter = Minter::at(&node);
    let mut numbers = 2..3_600;
    let mut append_another = || append(&node, numbers.next().unwrap());
    assert_eq!(
        (append(&node, 1).status, report(&node, 1).status),
        (201, 200)
    );
    until_within(Duration::from_secs(240), "a minute is reserved", || {
        (node.metric("idmint_horizon_remaining_seconds") > 44.0).then_some(())
    });

    let is_scarce_after = |at: &usize| {
        fill_more(&*client, *at);
        thread::sleep(COUNTED);
        Space::of(&state_of(&*client), QUOTA).is_scarce()
    };
    let parts = (0..64).find(is_scarce_after).expect("it fills up");
    until_within(ASKED, "appends are refused", || {
        let refused = append_another();
        (refused.status == 503 && refused.text().contains("storage-unavailable")).then_some(())
    });
    assert!(
        node.metric("idmint_coordinator_used_bytes")
            >= 0.75 * node.metric("idmint_coordinator_quota_bytes")
    );
    let refused = report(&node, 30);
    assert!(
        refused.status == 503 && refused.text().contains("storage-unavailable"),
        "{}",
        refused.text()
    );
    assert_eq!(
        report(&node, 1).status,
        200,
        "a conjunction that is known needs no room"
    );
    let ready = node.get("/health/ready");
    assert_eq!(
        (ready.status, ready.json()["records"].as_str()),
        (200, Some("storage-unavailable"))
    );
    let renewed = || node.metric("idmint_horizon_extensions_total{outcome=\"extended\"}");
    let before = renewed();
    until_within(ASKED, "the slot is renewed as ever", || {
        (renewed() >= before + 2.0).then_some(())
    });

    let full = (parts + 1..256)
        .find_map(|at| fill(&*client, at).err())
        .expect("it is full at last");
    assert!(matches!(full, CoordinatorError::Full(_)), "{full}");
    let begun = Instant::now();
    while begun.elapsed() < FULL {
        assert_eq!(
            node.get("/health/ready").status,
            200,
            "after {:?}",
            begun.elapsed()
        );
        thread::sleep(Duration::from_millis(200));
    }
    let revision = etcd.revision().to_string();
    etcd.etcdctl(&["compact", "--physical", &revision]);
    etcd.etcdctl(&["defrag"]);
    etcd.etcdctl(&["alarm", "disarm"]);
    until_within(ASKED, "the slot is renewed", || {
        (node.metric("idmint_horizon_remaining_seconds") > 44.0).then_some(())
    });
    until_within(ASKED, "there is room for appends", || {
        (append_another().status == 201).then_some(())
    });
    let minted = minter.stop();
    assert!(
        minted.refused.is_empty() && minted.cut == 0,
        "{:?}, {} cut",
        minted.refused.first(),
        minted.cut
    );
    println!(
        "{} ids, none twice and none refused",
        assert_all_different([minted])
    );
}
