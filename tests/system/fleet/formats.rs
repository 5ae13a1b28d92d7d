//! Checks that all nodes of a fleet mint and write each format in the same way. A node with another
//! definition must be refused.

use std::collections::HashSet;

use super::etcd_cluster::EtcdCluster;
use super::nodes::serve;
use super::restore::mint_when_ready;
use idmint_testing::service::{Home, Service, idmint, run};

const SLOTS: u32 = 4;

#[test]
fn a_node_that_writes_a_number_otherwise_is_refused_by_its_fleet() {
    let etcd = EtcdCluster::start(1);
    let with = |home: &Home, alphabet: &str, salt: &str| {
        let encodings = format!(
            "{{ kind = 'radix', name = 'letters', alphabet = '{alphabet}' }}, {{ kind = 'hashids', salt = '{salt}' }}"
        );
        let formats =
            format!("formats.invoice = {{ like = 'snowflake', encodings = [{encodings}] }}");
        serve(home, &etcd.endpoints(), SLOTS, &formats)
    };
    let (alphabet, exchanged) = ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "ABCDEFGHIJLKNMOPQRSTUVWXZY");
    let homes: [Home; 3] = std::array::from_fn(|_| Home::new());
    let nodes = [&homes[0], &homes[1]].map(|home| Service::start(with(home, alphabet, "pepper")));
    for node in &nodes {
        node.wait_until_ready();
    }
    for (alphabet, salt, told) in [
        (exchanged, "pepper", "\"letters\""),
        (alphabet, "salt", "\"hashids\""),
    ] {
        run(with(&homes[2], alphabet, salt)).assert(
            78,
            &["encoding", told, "\"invoice\"", "digest of its texts"],
        );
    }
    let ids: Vec<String> = nodes
        .iter()
        .flat_map(|node| mint_when_ready(node, "invoice?count=1000"))
        .collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 2_000);

    let kept = etcd.etcdctl(&["get", "/idmint/", "--prefix"]);
    assert!(
        kept.contains("invoice/hashids") && !kept.contains("pepper"),
        "a digest, never a salt: {kept}"
    );
    let config = homes[0].path("idmint.toml");
    let status = run(idmint(&[
        "fleet",
        "status",
        "--config",
        config.to_str().unwrap(),
    ]));
    assert!(status.out.contains(" formats"), "{}", status.out);
    assert!(!status.out.contains("invoice/"), "{}", status.out);
    println!("2000 texts of two nodes, none twice; two nodes that write otherwise refused");
}
