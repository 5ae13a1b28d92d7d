//! Checks nodes whose etcd reaches its space quota while they mint.

use std::thread;
use std::time::{Duration, Instant};

use super::client::{answered, settings};
use super::etcd_cluster::EtcdCluster;
use super::nodes::{
    Minter, assert_all_different, assert_none_failed, assert_stays_ready, serve, until_within,
    wait_until_reserved,
};
use idmint_fleet::{Coordinator, CoordinatorError, MemberState, Space, Transaction, Write};
use idmint_testing::http1::{Answer, Client, post_json};
use idmint_testing::service::{Home, Service, until};

/// The space quota of the etcd member in bytes. The node gets it from its configuration, because
/// this version of etcd does not report its quota.
pub(super) const QUOTA: u64 = 16 * 1024 * 1024;

/// A duration that is much longer than the interval at which a node asks etcd for its size.
const ASKED: Duration = Duration::from_secs(240);

/// The time for which etcd stays full. Nodes can mint without etcd for longer than that.
const FULL: Duration = Duration::from_secs(40);

/// A duration that is longer than etcd needs to write changes to its database and to count them.
/// etcd needs 100 ms, plus the time of the disk.
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

/// Writes like [`fill`], to an etcd that is not full yet. Ignores a missing response, which is
/// possible on a busy machine. It then does not matter whether the write succeeded.
pub(super) fn fill_more(client: &dyn Coordinator, at: usize) {
    match fill(client, at) {
        Ok(()) | Err(CoordinatorError::NoAnswer(_) | CoordinatorError::NotSent(_)) => {}
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
    let mut numbers = 1..3_600;
    let mut append_another = || append(&node, numbers.next().unwrap());
    // On a busy machine, a node may get no response from etcd for a moment.
    until_within(ASKED, "an event is appended", || {
        (append_another().status == 201).then_some(())
    });
    let wait_until_reported = || {
        until_within(ASKED, "a conjunction is reported", || {
            (report(&node, 1).status == 200).then_some(())
        });
    };
    wait_until_reported();
    wait_until_reserved(&node);
    let minter = Minter::at(&node);

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
    until_within(ASKED, "a new conjunction is refused", || {
        let refused = report(&node, 30);
        assert!([503, 504].contains(&refused.status), "{}", refused.text());
        (refused.status == 503 && refused.text().contains("storage-unavailable")).then_some(())
    });
    // A report of a known conjunction needs no space in etcd, so it must still succeed.
    wait_until_reported();
    until_within(ASKED, "the node reports it", || {
        let ready = node.get("/health/ready");
        assert_eq!(ready.status, 200, "{}", ready.text());
        (ready.json()["records"] == "storage-unavailable").then_some(())
    });
    let renewed = || node.metric("idmint_horizon_extensions_total{outcome=\"extended\"}");
    let before = renewed();
    until_within(ASKED, "the slot is renewed as ever", || {
        (renewed() >= before + 2.0).then_some(())
    });

    let full = (parts + 1..256)
        .find_map(|at| answered(|| fill(&*client, at)).err())
        .expect("it is full at last");
    assert!(matches!(full, CoordinatorError::Full(_)), "{full}");
    let begun = Instant::now();
    assert_stays_ready(&node, begun, FULL);
    let minted = minter.stop();
    assert_none_failed([&minted]);
    // How long it takes to make room depends on the machine, so mints may be refused meanwhile.
    let revision = etcd.revision().to_string();
    etcd.etcdctl(&["compact", "--physical", &revision]);
    etcd.etcdctl(&["defrag"]);
    etcd.etcdctl(&["alarm", "disarm"]);
    wait_until_reserved(&node);
    let minter = Minter::at(&node);
    until_within(ASKED, "there is room for appends", || {
        (append_another().status == 201).then_some(())
    });
    let after = minter.stop();
    assert_none_failed([&after]);
    println!(
        "{} ids, none twice and none refused",
        assert_all_different([minted, after])
    );
}
