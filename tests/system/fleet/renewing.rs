//! Checks that a node uses renewed certificates for etcd while it runs.

use std::fs;
use std::time::{Duration, SystemTime};

use super::etcd_cluster::EtcdCluster;
use super::nodes::starting_at;
use idmint_testing::authority::Authority;
use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, Service, idmint, run, until};

const DAY: Duration = Duration::from_hours(24);
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// Requests a number with the idempotency key `key`, and returns the status of the response.
fn number(service: &Service, key: &str) -> u16 {
    let headers = format!("idempotency-key: {key}\r\n");
    let ask = request("POST /numbers/invoices", &headers, "");
    Client::connect(service.address()).exchange(ask).status
}

#[test]
fn renewed_certificates_for_etcd_are_used_without_a_restart() {
    let home = Home::new();
    let path = |name: &str| home.path(name).display().to_string();
    let renew = |authority: &Authority, name: &str, end: SystemTime| {
        authority.sign_ending(&NAMES, end).write(&home, name);
    };
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let (yesterday, next_year) = (SystemTime::now() - DAY, SystemTime::now() + DAY * 365);
    fs::write(path("ca.pem"), &old.pem).unwrap();
    for name in ["etcd", "etcdctl"] {
        renew(&old, name, next_year);
    }
    let flag = |name: &str, file: &str| format!("--{name}={}", path(file));
    let etcd = [
        flag("cert-file", "etcd.crt"),
        flag("key-file", "etcd.key"),
        flag("trusted-ca-file", "ca.pem"),
        "--client-cert-auth=true".to_owned(),
    ];
    let etcdctl = [
        flag("cacert", "ca.pem"),
        flag("cert", "etcdctl.crt"),
        flag("key", "etcdctl.key"),
    ];
    let mut cluster = EtcdCluster::start_with(1, "https", &etcd, &etcdctl);

    // The node's certificate has expired, so etcd refuses the node.
    renew(&old, "node", yesterday);
    let tls = format!(
        "etcd.ca = '{}'\netcd.certificate = '{}'\netcd.key = '{}'\n",
        path("ca.pem"),
        path("node.crt"),
        path("node.key")
    );
    let node = starting_at(&home, &cluster.endpoints(), 1, &tls);
    node.log_once_it_says("the certificate in etcd.certificate expired at ");
    node.log_once_it_says("fatal alert");
    let config = path("idmint.toml");
    run(idmint(&["check", "--config", &config])).assert(78, &["etcd.certificate expired at "]);
    assert_eq!(number(&node, "before"), 503);

    renew(&old, "node", next_year);
    node.wait_until_ready();
    until("a number is given", || {
        (number(&node, "one") < 300).then_some(())
    });
    run(idmint(&["check", "--config", &config])).assert(0, &[]);

    // Replace the certificate authority, and restart etcd with certificates of the new authority.
    for name in ["etcd", "etcdctl"] {
        renew(&new, name, next_year);
    }
    fs::write(path("ca.pem"), &new.pem).unwrap();
    cluster.kill(0);
    cluster.restart(0);
    cluster.wait_until_writable();
    // For comparison, the request is still refused. The node already trusts the new authority, but
    // its own certificate is from the old one.
    assert_eq!(number(&node, "two"), 503);
    renew(&new, "node", next_year);
    until("a number is given", || {
        (number(&node, "two") < 300).then_some(())
    });
}
