//! Checks a node that waits for a slot while etcd is restored, and while other nodes write to the
//! restored etcd.

use std::time::Duration;

use super::client::{answered, settings};
use super::etcd_cluster::EtcdCluster;
use super::fencing::fence_restore;
use super::nodes::{node, starting, until_within};
use super::reimport::wait_for_renewals;
use super::wrong_clocks::{append, create, number};
use idmint_fleet::{Transaction, Write};
use idmint_testing::http1::{Client, post_json, request};
use idmint_testing::service::{Home, Service};

/// A timeout that is longer than a fenced fleet waits before it mints, even on a slow machine.
const LONG: Duration = Duration::from_secs(240);

/// Sends an append and a request for a number. Returns how many of these two requests were
/// acknowledged.
fn acknowledged(node: &Service, ledger: &str, key: &str) -> usize {
    let body = format!(r#"{{"ledger":"{ledger}","events":[{{"event":"x","entities":{{}}}}]}}"#);
    let headers = format!("idempotency-key: {key}\r\n");
    let requests = [
        post_json("/ids/evently", &headers, &body),
        request("POST /numbers/inv", &headers, ""),
    ];
    let answers = requests.map(|request| Client::connect(node.address()).exchange(request));
    answers.iter().filter(|answer| answer.status < 300).count()
}

#[test]
fn a_node_without_a_slot_writes_nothing_to_a_restored_etcd_that_others_have_carried_on() {
    // Run twice. In the second run, other nodes continue to write until etcd has a higher revision
    // than the waiting node has seen. In the first run, they do not write, for comparison.
    for others in [0, 300] {
        let mut etcd = EtcdCluster::start(1);
        let homes: [Home; 2] = std::array::from_fn(|_| Home::new());
        let holder = node(&homes[0], &etcd, 1);
        let waiting = starting(&homes[1], &etcd, 1);
        until_within(LONG, "it reads the fleet", || {
            (waiting.get("/health/ready").json()["records"] == "ready").then_some(())
        });
        let ledger = create(&waiting, "ledger");
        let snapshot = etcd.save();
        let own_key = || etcd.etcdctl(&["get", "/idmint/v1/default/waiting/", "--prefix"]);
        let before = own_key();
        until_within(LONG, "it rewrites its own key", || {
            (own_key() != before).then_some(())
        });
        wait_for_renewals(std::slice::from_ref(&holder));
        let told: Vec<_> = (0..6)
            .map(|nth| format!("key-{nth}"))
            .map(|key| (append(&waiting, &ledger, &key), number(&waiting, &key), key))
            .collect();

        etcd.restore(&snapshot);
        let client = idmint_fleet::connect(&settings(&etcd.endpoints())).unwrap();
        for _ in 0..others {
            let other = Transaction {
                write: vec![Write::put("/other".to_owned(), Vec::new())],
                ..Transaction::default()
            };
            answered(|| client.commit(&other)).unwrap();
        }
        for nth in 0..30 {
            let count = acknowledged(&waiting, &ledger, &format!("late-{nth}"));
            assert_eq!(count, 0, "after {others} writes of others");
            std::thread::sleep(Duration::from_millis(300));
        }
        let journals = homes.each_ref().map(|home| ("--journal", home.data_dir()));
        let fenced = fence_restore(&homes[0].path("idmint.toml"), journals);
        println!("{}", fenced.out);
        fenced.assert(0, &[]);
        for (event, given, key) in told {
            assert_eq!(append(&holder, &ledger, &key), event, "{key}");
            assert_eq!(number(&waiting, &key), given, "{key}");
        }
    }
}
