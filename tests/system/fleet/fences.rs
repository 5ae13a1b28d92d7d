//! Checks `idmint fleet fence-restore` on a real etcd: the confirmation that it asks for, the cases
//! that it refuses, and what is possible after it. A fence sets a time below which no node mints,
//! after etcd was restored.

use rustix::process::Signal;

use super::etcd_cluster::EtcdCluster;
use super::fencing::{fence_restore, fence_until_answered};
use super::nodes::{node, slot_of, slot_when_ready, starting};
use super::wrong_clocks::{append, create, number};
use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, until};

fn meta(etcd: &EtcdCluster) -> String {
    etcd.etcdctl(&["get", "/idmint/v1/default/meta", "--print-value-only"])
}

#[test]
fn a_fleet_that_renews_its_slots_is_fenced_only_with_its_configuration_and_once_it_is_confirmed() {
    let etcd = EtcdCluster::start(1);
    let homes: [Home; 2] = std::array::from_fn(|_| Home::new());
    let first = node(&homes[0], &etcd, 4);
    let (mut before, config) = (meta(&etcd), homes[0].path("idmint.toml"));
    drop(super::nodes::serve(&homes[1], &etcd.endpoints(), 8, ""));
    let other = fence_restore(&homes[1].path("idmint.toml"), []);
    other.assert(
        78,
        &[
            "this is not the configuration of the fleet",
            "worker.slots = 4",
        ],
    );
    let asked = until("the fence sees that the node renews its slot", || {
        let asked = fence_until_answered(&config, [], |_| {});
        if asked.status.code() == Some(0) {
            // The command watches etcd for 7 s and asks for a confirmation if a node renews its
            // slot. The node was too slow, so the command has fenced the fleet. Try again when the
            // node mints in the fenced fleet.
            until("it has seen the fence", || {
                slot_of(&first).is_none().then_some(())
            });
            slot_when_ready(&first);
            before = meta(&etcd);
            return None;
        }
        Some(asked)
    });
    asked.assert(1, &["renew their slots", "nothing was changed", "--yes"]);
    assert_eq!(meta(&etcd), before);
    assert_eq!(first.get("/health/ready").status, 200);

    fence_restore(&config, []).assert(0, &[]);
    assert_ne!(meta(&etcd), before, "the control is confirmed");
    first.kill();
    // No node renews its slot now, so the command asks for no confirmation.
    fence_until_answered(&config, [], |_| {}).assert(0, &[]);
}

#[test]
fn a_fence_of_endpoints_that_belong_to_two_etcds_changes_neither() {
    let etcds = [EtcdCluster::start(1), EtcdCluster::start(1)];
    let homes: [Home; 2] = std::array::from_fn(|_| Home::new());
    let node = node(&homes[0], &etcds[0], 4);
    let before = etcds.each_ref().map(meta);
    let both = etcds.each_ref().map(EtcdCluster::endpoints).concat();
    drop(super::nodes::serve(&homes[1], &both, 4, ""));
    let refused = fence_restore(&homes[1].path("idmint.toml"), []);
    refused.assert(78, &["members of 2 etcd clusters", "nothing was changed"]);
    assert_eq!(etcds.each_ref().map(meta), before);
    assert_eq!(node.get("/health/ready").status, 200);
}

#[test]
fn after_a_wipe_and_a_fence_without_journals_a_later_fence_brings_their_records_back() {
    // Run twice. The second run first fences without the journal (the node's copy of its commits).
    // The first run fences with the journal immediately, for comparison.
    for is_without_first in [false, true] {
        let mut etcd = EtcdCluster::start(1);
        let home = Home::new();
        let first = node(&home, &etcd, 4);
        let ledger = create(&first, "ledger");
        let told: Vec<_> = (0..20)
            .map(|nth| format!("key-{nth}"))
            .map(|key| (append(&first, &ledger, &key), number(&first, &key), key))
            .collect();
        first.send(Signal::TERM);
        first.wait();
        etcd.wipe();
        let config = home.path("idmint.toml");
        if is_without_first {
            let known = home.data_dir().join("high-water-default");
            fence_restore(&config, [("--high-water", known)]).assert(0, &[]);
        }
        let fenced = fence_restore(&config, [("--journal", home.data_dir())]);
        println!("{}", fenced.out);
        fenced.assert(0, &[]);
        let again = starting(&home, &etcd, 4);
        for (event, given, key) in told {
            assert_eq!(append(&again, &ledger, &key), event, "{key}");
            assert_eq!(number(&again, &key), given, "{key}");
        }
    }
}

#[test]
fn after_a_fence_without_journals_numbers_wait_until_they_are_resumed_or_brought_back() {
    // Run twice. In the first run, an operator resumes the numbers. In the second run, a fence with
    // the journal (the node's copy of its commits) brings the numbers back.
    for is_resumed in [true, false] {
        let mut etcd = EtcdCluster::start(1);
        let home = Home::new();
        let first = node(&home, &etcd, 4);
        number(&first, "before");
        first.send(Signal::TERM);
        first.wait();
        etcd.wipe();
        let config = home.path("idmint.toml");
        let known = home.data_dir().join("high-water-default");
        let fenced = fence_restore(&config, [("--high-water", known)]);
        fenced.assert(0, &[]);
        assert!(
            fenced.out.contains("idmint numbers resume"),
            "{}",
            fenced.out
        );

        let service = starting(&home, &etcd, 4);
        let take = |key: &str| {
            let headers = format!("idempotency-key: {key}\r\n");
            let line = "POST /numbers/inv";
            Client::connect(service.address()).exchange(request(line, &headers, ""))
        };
        // Retry, because the node gives another reason until it has seen the fence.
        until("the hold is known", || {
            let refused = take("after");
            assert_eq!(refused.status, 503, "{}", refused.text());
            (refused.json()["type"] == "/problems/numbers-held").then_some(())
        });
        if is_resumed {
            until("the numbers are resumed", || {
                let line = "POST /numbers/inv/resume?from=2";
                let resumed = Client::connect(service.address()).exchange(request(line, "", ""));
                (resumed.status == 200).then_some(())
            });
        } else {
            let fenced = fence_restore(&config, [("--journal", home.data_dir())]);
            fenced.assert(0, &[]);
        }
        let given = until("numbers go on", || {
            let given = take("after");
            // The status is 200 if an earlier attempt took the number but got the status 504.
            let is_given = [200, 201].contains(&given.status);
            is_given.then(|| given.json()["number"].clone())
        });
        assert_eq!(given, "2");
    }
}
