//! Checks the readiness for records that a node reports to callers and operators while the fleet
//! cannot store records.

use std::fs;
use std::time::Duration;

use super::client::settings;
use super::etcd_cluster::EtcdCluster;
use super::fencing::{fence_restore, run_until_answered};
use super::nodes::{node, serve, until_within};
use super::quota::{COUNTED, QUOTA, append, fill_more, state_of};
use super::reimport::wait_for_renewals;
use super::wrong_clocks::create;
use idmint_fleet::Space;
use idmint_testing::service::{Home, Service, idmint, run, until};

/// A timeout that is longer than a fenced fleet waits before it mints, even on a slow machine.
const LONG: Duration = Duration::from_secs(240);

/// The number of times that the readiness is read in each state.
const POLLS: usize = 200;

/// The responses that a node must give in one state.
struct Expected<'a> {
    /// The expected value of `records` in the response.
    records: &'a str,
    /// A part of the expected reason.
    detail: &'a str,
    /// The expected status of `GET /health/ready?for=records`.
    status: u16,
}

fn is_said(node: &Service, records: &str) -> Option<()> {
    (node.get("/health/ready").json()["records"] == records).then_some(())
}

/// Reads the readiness over and over, and asserts that every response is as expected.
#[track_caller]
fn assert_each_answer(node: &Service, expected: &Expected<'_>) {
    let Expected {
        records,
        detail,
        status,
    } = expected;
    for poll in 0..POLLS {
        // Retry while etcd does not respond in time, which is possible on a busy machine. Until
        // etcd responds, the node reports this cause instead of the expected one.
        let (ready, for_records, ended) = until("etcd answers in time", || {
            let ready = node.get("/health/ready");
            let for_records = node.get("/health/ready?for=records");
            let ended = run(idmint(&["status", "--server", &node.url()]));
            let is_silent = [&ready.text(), &for_records.text(), &ended.out]
                .iter()
                .any(|said| said.contains("does not answer, or has no quorum"));
            (!is_silent).then_some((ready, for_records, ended))
        });
        let said = ready.json();
        assert_eq!(said["records"], *records, "poll {poll}: {}", ready.text());
        let why = said["records_detail"].as_str().unwrap_or_default();
        assert!(why.contains(detail), "poll {poll}: {}", ready.text());
        assert_eq!(for_records.status, *status, "{}", for_records.text());
        ended.assert(1, &[]);
        assert!(
            ended.out.contains(&format!("records  {records}: {why}")),
            "poll {poll}: {}",
            ended.out
        );
    }
}

/// Asserts that creating a ledger is refused, and that the refusal names the cause.
#[track_caller]
fn assert_refused(node: &Service, number: u64, slug: &str, detail: &str) {
    let refused = until("etcd answers in time", || {
        let is_silent = |text: &str| text.contains("does not answer, or has no quorum");
        Some(append(node, number)).filter(|answer| !is_silent(&answer.text()))
    });
    assert_eq!(refused.status, 503, "{}", refused.text());
    let (said, slug) = (refused.json(), format!("/problems/{slug}"));
    assert_eq!(said["type"], slug.as_str(), "{}", refused.text());
    assert!(refused.text().contains(detail), "{}", refused.text());
}

#[test]
fn between_a_restore_and_a_fence_and_while_numbers_are_held_each_answer_says_so() {
    let mut etcd = EtcdCluster::start(1);
    let home = Home::new();
    let nodes = [node(&home, &etcd, 4)];
    let node = &nodes[0];
    create(node, "first");
    let snapshot = etcd.save();
    wait_for_renewals(&nodes);
    etcd.restore(&snapshot);
    until_within(LONG, "it notices", || {
        is_said(node, "coordinator-unavailable")
            .filter(|()| node.get("/health/ready").text().contains("fence-restore"))
    });
    let detail = "run `idmint fleet fence-restore`";
    assert_each_answer(
        node,
        &Expected {
            records: "coordinator-unavailable",
            detail,
            status: 503,
        },
    );
    assert_refused(node, 2, "coordinator-unavailable", detail);

    fence_restore(&home.path("idmint.toml"), []).assert(0, &[]);
    until_within(LONG, "numbers are held", || is_said(node, "numbers-held"));
    assert_each_answer(
        node,
        &Expected {
            records: "numbers-held",
            detail: "run `idmint numbers resume`",
            status: 200,
        },
    );
    let last_numbers = home.path("last-numbers");
    fs::write(&last_numbers, "").unwrap();
    let last_numbers = last_numbers.to_str().unwrap();
    let resume = ["numbers", "resume", "--all", last_numbers, "--server"];
    run_until_answered(|| idmint(&[&resume[..], &[&node.url()]].concat())).assert(0, &[]);
    until_within(LONG, "numbers are resumed", || is_said(node, "ready"));
}

#[test]
fn while_etcd_is_at_its_quota_each_answer_says_so() {
    let etcd = EtcdCluster::start_with(1, "http", &[format!("--quota-backend-bytes={QUOTA}")], &[]);
    let client = idmint_fleet::connect(&settings(&etcd.endpoints())).unwrap();
    let home = Home::new();
    let node = Service::start(serve(&home, &etcd.endpoints(), 4, "etcd.quota = '16MiB'"));
    node.wait_until_ready();
    create(&node, "first");
    let is_scarce_after = |at: &usize| {
        fill_more(&*client, *at);
        std::thread::sleep(COUNTED);
        Space::of(&state_of(&*client), QUOTA).is_scarce()
    };
    (0..64).find(is_scarce_after).expect("it fills up");
    until_within(LONG, "it notices", || is_said(&node, "storage-unavailable"));
    let detail = "compact and defragment etcd";
    assert_each_answer(
        &node,
        &Expected {
            records: "storage-unavailable",
            detail,
            status: 503,
        },
    );
    assert_refused(&node, 2, "storage-unavailable", detail);
    let ended = run(idmint(&["status", "--server", &node.url()]));
    ended.assert(1, &["the node stores no events", detail]);
}

#[test]
fn while_etcd_refuses_the_password_each_answer_says_so() {
    let etcd = EtcdCluster::start(1);
    let as_root = |args: &[&str]| etcd.etcdctl(&[&["--user", "root:secret"], args].concat());
    for command in [
        ["user", "add", "root:secret"].as_slice(),
        &["user", "grant-role", "root", "root"],
        &["user", "add", "idmint:password"],
        &["role", "add", "idmint"],
        &[
            "role",
            "grant-permission",
            "idmint",
            "readwrite",
            "/idmint/",
            "--prefix",
        ],
        &["user", "grant-role", "idmint", "idmint"],
        &["auth", "enable"],
    ] {
        etcd.etcdctl(command);
    }
    let home = Home::new();
    let password = home.path("password");
    fs::write(&password, "password\n").unwrap();
    let access = format!("etcd.user = 'idmint'\netcd.password_file = {password:?}");
    let node = Service::start(serve(&home, &etcd.endpoints(), 4, &access));
    node.wait_until_ready();
    create(&node, "first");
    as_root(&["user", "delete", "idmint"]);
    as_root(&["user", "add", "idmint:another"]);
    as_root(&["user", "grant-role", "idmint", "idmint"]);
    let detail = "etcd refuses the credentials of this node";
    until_within(LONG, "it notices", || {
        let _ = append(&node, 2);
        node.get("/health/ready")
            .text()
            .contains(detail)
            .then_some(())
    });
    assert_each_answer(
        &node,
        &Expected {
            records: "coordinator-unavailable",
            detail,
            status: 503,
        },
    );
    assert_refused(&node, 3, "coordinator-unavailable", detail);
}
