//! Checks that conjunctions are not forgotten because of a clock that is years ahead, on a node of
//! a fleet and on a single node.

use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::etcd_cluster::EtcdCluster;
use super::nodes::serve;
use crate::wall_clock::{WallClock, now_s};
use idmint_testing::http1::{Client, post_json};
use idmint_testing::service::{Home, Service, until};

const CONJUNCTIONS: usize = 50;
const DAYS_400_S: i64 = 400 * 86_400;
const RETENTION: &str = "conjunction.retention = '365d'";

/// A duration that is longer than the delay of the first sweep of old conjunctions in earlier
/// versions. In these versions, the sweep began right after a start.
const A_WHILE: Duration = Duration::from_secs(6);

/// Reports fifty conjunctions in the hour that begins at `hour_s`. Each conjunction is `millis`
/// milliseconds after a whole second. Returns the ids.
fn report(node: &Service, hour_s: i64, millis: i64) -> Vec<Value> {
    let mut client = Client::connect(node.address());
    let mut ids = Vec::new();
    for number in 0..CONJUNCTIONS {
        let at = hour_s + 10 * i64::try_from(number).unwrap();
        let time =
            idmint_core::time::UnixTime::from_nanos(i128::from(at * 1_000 + millis) * 1_000_000);
        let body = json!({ "tca": time.to_string(), "primary": 2 * number + 1, "secondary": 2 * number + 2 });
        let answer = until("it is answered", || {
            let answer = client.exchange(post_json("/ids/conjunction", "", &body.to_string()));
            Some(answer).filter(|answer| ![503, 504].contains(&answer.status))
        });
        assert_eq!(answer.status, 200, "{body}: {}", answer.text());
        ids.push(answer.json()["details"][0]["id"].clone());
    }
    ids
}

/// Reports the same conjunctions half a second later, and returns the number of ids that changed.
/// The later time is in the next second, so a forgotten conjunction would get another id.
fn changed(node: &Service, hour_s: i64, before: &[Value]) -> usize {
    report(node, hour_s, 1_300)
        .iter()
        .zip(before)
        .filter(|(now, before)| now != before)
        .count()
}

fn of_fleet(home: &Home, etcd: &EtcdCluster) -> Command {
    serve(home, &etcd.endpoints(), 8, RETENTION)
}

#[test]
fn a_fleet_whose_fourth_node_is_400_days_ahead_forgets_no_conjunction() {
    let etcd = EtcdCluster::start(1);
    let homes: [Home; 5] = std::array::from_fn(|_| Home::new());
    let right: Vec<Service> = homes[..3]
        .iter()
        .map(|home| Service::start(of_fleet(home, &etcd)))
        .collect();
    for node in &right {
        node.wait_until_ready();
    }
    let hour_s = now_s() / 3600 * 3600;
    let before = report(&right[0], hour_s, 800);
    for (home, ahead_s) in [(&homes[3], 2), (&homes[4], DAYS_400_S)] {
        let wall = WallClock::of(home);
        wall.set(ahead_s);
        let fourth = wall.start(of_fleet(home, &etcd));
        if ahead_s == DAYS_400_S {
            let reason_of = || {
                fourth.get("/health/ready").json()["reason"]
                    .as_str()
                    .map(str::to_owned)
            };
            until("its clock is refused", || {
                (reason_of().as_deref() == Some("clock-jumped")).then_some(())
            });
        } else {
            fourth.wait_until_ready();
        }
        thread::sleep(A_WHILE);
        assert_eq!(changed(&right[1], hour_s, &before), 0, "{ahead_s} s ahead");
        assert_eq!(
            changed(&fourth, hour_s, &before),
            0,
            "asked at the node that is {ahead_s} s ahead"
        );
    }
}

#[test]
fn a_single_node_that_starts_once_400_days_ahead_forgets_no_conjunction() {
    let home = Home::new();
    let wall = WallClock::of(&home);
    let start = |ahead_s: i64| {
        wall.set(ahead_s);
        let mut command = home.serve_with(RETENTION);
        // Allow the node to start although its records are ahead of its clock, because an earlier
        // start had a clock that was ahead.
        command.arg("--run-ahead");
        let node = wall.start(command);
        node.wait_until_ready();
        node
    };
    let hour_s = now_s() / 3600 * 3600;
    let right = start(0);
    let before = report(&right, hour_s, 800);
    right.kill();
    for ahead_s in [2, DAYS_400_S] {
        let ahead = start(ahead_s);
        thread::sleep(A_WHILE);
        ahead.kill();
        let right = start(0);
        assert_eq!(
            changed(&right, hour_s, &before),
            0,
            "after a start {ahead_s} s ahead"
        );
        right.kill();
    }
}
