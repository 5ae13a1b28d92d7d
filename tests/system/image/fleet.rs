//! Checks the fleet of `docker-compose.fleet.yml` with nginx in front of it. Each node and each
//! etcd member is killed in turn while callers mint.

use std::collections::BTreeSet;
use std::time::Duration;

use super::composed::{Composed, docker, docker_succeeds};
use super::{UNDER_LOAD, ask_prometheus};
use crate::fleet::until_within;
use idmint_testing::http1::{Client, request};
use idmint_testing::ids::assert_no_id_twice;
use idmint_testing::load::{
    CLIENTS, End, Load, assert_only_exhaustion_was_seen, fresh_callers, into_received,
};
use idmint_testing::service::until;

const NODES: [&str; 3] = ["idmint-1", "idmint-2", "idmint-3"];
const MEMBERS: [&str; 3] = ["etcd-1", "etcd-2", "etcd-3"];

/// A timeout that is longer than creating a fleet takes.
const FIRST_START: Duration = Duration::from_secs(240);

/// A duration that is longer than the election of another leader.
const AFTER_A_KILL: Duration = Duration::from_secs(2);

pub(super) fn assert_no_kill_is_noticed(composed: &Composed) {
    composed.compose_fleet(&["build"]);
    composed.compose_fleet(&["up", "--detach"]);
    NODES
        .iter()
        .for_each(|node| until_within(FIRST_START, node, || mints(composed, node)));
    assert_all_are_scraped(composed);
    assert_nginx_starts_while_a_node_is_down(composed);

    let mut callers = fresh_callers();
    let mut cut = 0;
    for (node, member) in NODES.into_iter().zip(MEMBERS) {
        for killed in [node, member] {
            let load = Load::start(composed.ready("nginx"), callers);
            std::thread::sleep(UNDER_LOAD);
            load.wait_until_each_has_ids();
            docker(&["kill", &composed.container(killed)]);
            std::thread::sleep(AFTER_A_KILL);
            composed.compose_fleet(&["up", "--detach"]);
            NODES
                .iter()
                .for_each(|node| wait_until_it_mints(composed, node));
            let minted = load.stop();
            assert_only_exhaustion_was_seen(&minted);
            let cut_now = minted
                .iter()
                .filter(|minted| minted.end == End::Cut)
                .count();
            assert!(
                minted.iter().all(|minted| minted.end != End::Closed),
                "nginx keeps connections"
            );
            assert!(
                cut_now == 0 || killed == node,
                "{cut_now} answers were cut when {killed} was killed"
            );
            cut += cut_now;
            callers = into_received(minted);
        }
    }
    let ids = assert_no_id_twice(callers);
    println!("a fleet: 3 nodes and 3 members killed, ids {ids:?}, none twice, {cut} answers cut");
    assert!(ids.iter().all(|count| *count > 100), "{ids:?}");
    assert!(cut <= NODES.len() * CLIENTS);
}

/// Asserts that nginx starts while a node is down. Docker's DNS does not resolve the name of a
/// stopped container.
fn assert_nginx_starts_while_a_node_is_down(composed: &Composed) {
    let down = composed.container(NODES[0]);
    docker(&["stop", &down]);
    docker(&["restart", &composed.container("nginx")]);
    let address = composed.ready("nginx");
    for turn in 0..60 {
        let answer = Client::connect(address).exchange(request("POST /ids/snowflake", "", ""));
        assert_eq!(answer.status, 200, "{turn}: {}", answer.text());
    }
    docker(&["start", &down]);
    wait_until_it_mints(composed, NODES[0]);
    let mut slots = BTreeSet::new();
    until("nginx sends requests to all of them", || {
        let answer = Client::connect(address).exchange(request("GET /health/ready", "", ""));
        slots.extend(answer.json()["slot"].as_u64());
        (slots.len() == NODES.len()).then_some(())
    });
}

fn wait_until_it_mints(composed: &Composed, node: &str) {
    until(node, || mints(composed, node));
}

fn mints(composed: &Composed, node: &str) -> Option<()> {
    docker_succeeds(&["exec", &composed.container(node), "/idmint", "health"]).then_some(())
}

fn assert_all_are_scraped(composed: &Composed) {
    until("Prometheus has scraped all nodes", || {
        let found = ask_prometheus(
            composed,
            "fleet-prometheus",
            "/api/v1/query?query=sum%28up%7Bjob%3D%22idmint%22%7D%29",
        )?;
        (found["data"]["result"][0]["value"][1] == "3").then_some(())
    });
}
