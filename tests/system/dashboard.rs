//! Checks the dashboard `deploy/grafana/idmint.json`. Each query of each panel must return data for
//! real nodes under load.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::fleet::{EtcdCluster, fleet_node};
use crate::prometheus::{Prometheus, value_of};
use idmint_testing::http1::{Client, post_json, request};
use idmint_testing::load::Load;
use idmint_testing::service::{Home, Service, until};

/// The panels whose queries return 0 in normal operation. For these, the test can only check that
/// there is a value.
const ZERO_WHILE_WELL: [&str; 6] = [
    "Slots",
    "Rejected, by reason",
    "etcd lost acknowledged writes",
    "Fencing and journal failures",
    "Clock difference in the fleet",
    "Log lines dropped",
];

/// Replaces the variables in a query by values, as Grafana does.
fn as_grafana_asks(query: &str) -> String {
    let query = query
        .replace("$__rate_interval", "30s")
        .replace("$job", ".*")
        .replace("$instance", ".*");
    assert!(!query.contains('$'), "{query}");
    query
}

fn dashboard() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/grafana/idmint.json");
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Returns the title of each panel with each of its queries.
fn queries() -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let dashboard = dashboard();
    let panels = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|panel| panel["type"] != "row");
    let queries = panels.flat_map(|panel| {
        let targets = panel["targets"].as_array().unwrap();
        targets
            .iter()
            .map(move |target| (text(&panel["title"]), text(&target["expr"])))
    });
    queries.collect()
}

/// Sends requests for each outcome that a panel shows, such as refused, decoded, stored and
/// reported.
fn ask_for_everything(service: &Service, round: usize) {
    for target in [
        "decode/1",
        "decode/hello",
        "decode/175928847299117063",
        "nonesuch",
    ] {
        service.get(&format!("/{target}"));
    }
    service.post("/ids/snowflake?count=0");
    // Report the same two objects two seconds after the previous report. This is a different
    // conjunction, but near enough to be listed as near.
    let tca = format!(
        "2026-02-01T00:{:02}:{:02}Z",
        round / 30 % 60,
        2 * round % 60
    );
    let report = format!(r#"{{"tca":"{tca}","primary":25544,"secondary":48274}}"#);
    let mut client = Client::connect(service.address());
    client.exchange(post_json("/ids/conjunction", "", &report));
    client.exchange(post_json(
        "/ledgers",
        &format!("idempotency-key: {round}\r\n"),
        r#"{"event":"Begun","entities":{}}"#,
    ));
    // Request more ids than all workers of a node can mint in one second. The request must then
    // wait for the next tick, even on a slow machine.
    client.exchange(request("POST /ids/payment?count=15000", "", ""));
}

#[test]
fn every_panel_of_the_dashboard_shows_something_of_nodes_under_load() {
    let homes: [Home; 2] = std::array::from_fn(|_| Home::new());
    let etcd = EtcdCluster::start(1);
    let alone = Service::start(homes[0].serve_with("mint.wait_max = '5s'"));
    alone.wait_until_ready();
    let of_fleet = fleet_node(&homes[1], &etcd, 4);
    let jobs = [
        ("idmint", vec![alone.address()]),
        ("idmint-fleet", vec![of_fleet.address()]),
    ];
    let prometheus = Prometheus::start(&jobs, "groups: []\n");

    let loads = [&alone, &of_fleet].map(|service| Load::fresh(service.address()));
    let mut empty: Vec<(String, String)> = queries();
    let (count, mut round) = (empty.len(), 0);
    let shows = |title: &str, query: &str| {
        let zero_will_do = ZERO_WHILE_WELL.contains(&title)
            || query.contains("skew")
            || query.contains("regressions");
        let values: Vec<f64> = prometheus
            .query(&as_grafana_asks(query))
            .iter()
            .filter_map(value_of)
            .collect();
        values.iter().any(|value| zero_will_do || *value != 0.0)
    };
    until("every panel shows something", || {
        ask_for_everything(&alone, round);
        round += 1;
        empty.retain(|(title, query)| !shows(title, query));
        if round % 50 == 0 {
            println!("after {round} rounds these show nothing: {empty:#?}");
        }
        empty.is_empty().then_some(())
    });
    loads.into_iter().for_each(|load| drop(load.stop()));
    println!("{count} queries show something");
    assert!(count >= 30, "{count} queries");
}

#[test]
fn the_dashboard_is_one_that_grafana_can_import() {
    let dashboard = dashboard();
    assert_eq!(
        (&dashboard["uid"], &dashboard["schemaVersion"]),
        (&"idmint".into(), &39.into())
    );
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels
        .iter()
        .map(|panel| panel["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids.len(), panels.len(), "each has a number of its own");
    let place = |panel: &Value, side: &str| panel["gridPos"][side].as_u64().unwrap();
    for panel in panels {
        assert!(place(panel, "x") + place(panel, "w") <= 24, "{panel}");
        let overlaps = |other: &&Value| {
            let apart = |side: &str, len: &str| {
                place(panel, side) + place(panel, len) <= place(other, side)
                    || place(other, side) + place(other, len) <= place(panel, side)
            };
            other["id"] != panel["id"] && !apart("x", "w") && !apart("y", "h")
        };
        assert!(
            !panels.iter().any(|other| overlaps(&other)),
            "{} lies over another one",
            panel["title"]
        );
    }
    let titles: Vec<&str> = panels
        .iter()
        .filter_map(|panel| panel["title"].as_str())
        .collect();
    for title in ZERO_WHILE_WELL {
        assert!(titles.contains(&title), "{title}");
    }
    let variables: Vec<&Value> = dashboard["templating"]["list"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variable| &variable["name"])
        .collect();
    assert_eq!(variables, ["datasource", "job", "instance"]);
}
