//! Lets three nodes mint as fast as they can, compares all ids, and counts the requests to etcd in
//! the meantime. `FLEET_IDS` sets the number of ids.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::etcd_cluster::EtcdCluster;
use super::nodes::{node, until_within};
use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, LONG, Service, until};

const IDS: u64 = 100_000_000;

/// The minimum duration for counting requests to etcd, which includes a few renewals.
const COUNTED: Duration = Duration::from_secs(12);

const BATCH: &str = "POST /ids/snowflake?count=10000";
const AS_NUMBERS: &str = "accept: application/octet-stream\r\n";

/// The interval at which a node renews the lease of its slot. It does not depend on the load.
const RENEWAL: Duration = Duration::from_secs(5);

/// The first and the last id of consecutive ids.
type Run = (u64, u64);

/// A client that mints at one node until [`Taker::stop`].
struct Taker {
    address: Arc<Mutex<SocketAddr>>,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Run>>,
}

impl Taker {
    /// Starts a client of the node. `taken` counts the ids of all clients together.
    fn at(node: &Service, taken: &Arc<AtomicU64>) -> Taker {
        let (address, is_over) = (
            Arc::new(Mutex::new(node.address())),
            Arc::new(AtomicBool::new(false)),
        );
        let (at, stop, taken) = (
            Arc::clone(&address),
            Arc::clone(&is_over),
            Arc::clone(taken),
        );
        let thread = thread::spawn(move || {
            let mut runs = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let connected =
                    Client::try_connect_within(*at.lock().unwrap(), Duration::from_secs(1));
                if let Ok(client) = connected {
                    take(client, &stop, &taken, &mut runs);
                }
                thread::sleep(Duration::from_millis(10));
            }
            runs
        });
        Taker {
            address,
            is_over,
            thread,
        }
    }

    fn turn_to(&self, node: &Service) {
        *self.address.lock().unwrap() = node.address();
    }

    fn stop(self) -> Vec<Run> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Mints batches on one connection. Returns when the connection ends, a batch is refused, or `stop`
/// is set.
fn take(mut client: Client, stop: &AtomicBool, taken: &AtomicU64, runs: &mut Vec<Run>) {
    while !stop.load(Ordering::Relaxed) {
        client.send(request(BATCH, AS_NUMBERS, ""));
        // Do not count the ids of a response that was cut off. A caller must treat all of them as
        // unused.
        let Ok(answer) = client.try_receive_within(LONG) else {
            return;
        };
        if answer.status != 200 {
            return;
        }
        let ids = answer
            .body
            .chunks_exact(8)
            .map(|id| u64::from_be_bytes(id.try_into().expect("eight bytes")));
        for id in ids {
            taken.fetch_add(1, Ordering::Relaxed);
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == id => *last = id,
                _ => runs.push((id, id)),
            }
        }
    }
}

/// Returns the number of ids. Panics if the same id occurs twice.
fn count_different(mut runs: Vec<Run>) -> u64 {
    runs.sort_unstable();
    for pair in runs.windows(2) {
        assert!(pair[0].1 < pair[1].0, "{} was minted twice", pair[1].0);
    }
    runs.iter().map(|(first, last)| last - first + 1).sum()
}

/// Returns the number of transactions and reads that etcd has handled so far.
fn asked(etcd: &EtcdCluster) -> f64 {
    let of_member = |endpoint: &String| {
        let address: SocketAddr = endpoint
            .strip_prefix("http://")
            .expect("in the clear")
            .parse()
            .expect("an address");
        let answer = Client::connect(address).exchange(request("GET /metrics", "", ""));
        assert_eq!(answer.status, 200, "{answer:?}");
        let text = answer.text();
        let of_keys = |line: &&str| {
            line.starts_with("grpc_server_started_total{")
                && line.contains("grpc_service=\"etcdserverpb.KV\"")
        };
        let counts: Vec<f64> = text
            .lines()
            .filter(of_keys)
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert!(!counts.is_empty(), "etcd counts what it is asked");
        counts.iter().sum::<f64>()
    };
    etcd.endpoints().iter().map(of_member).sum()
}

/// Returns the number of a node's renewals that etcd did not answer in time.
fn failed_requests(node: &Service) -> f64 {
    let of = |outcome: &str| format!("idmint_coordinator_requests_total{{outcome=\"{outcome}\"}}");
    node.metric(&of("no_answer")) + node.metric(&of("not_sent"))
}

#[test]
fn etcd_is_asked_for_renewals_and_not_for_ids_and_none_comes_twice() {
    let wanted = std::env::var("FLEET_IDS").map_or(IDS, |text| text.parse().expect("a number"));
    let mut etcd = EtcdCluster::start(3);
    let homes: [Home; 3] = std::array::from_fn(|_| Home::new());
    let nodes = homes.each_ref().map(|home| node(home, &etcd, 4));
    // Wait until the nodes reserve their maximum time, which they reach within half a minute.
    for node in &nodes {
        until_within(LONG, "a minute is reserved", || {
            (node.metric("idmint_horizon_remaining_seconds") > 44.0).then_some(())
        });
    }
    let taken = Arc::new(AtomicU64::new(0));
    let is_taken = |count: u64| (taken.load(Ordering::Relaxed) >= count).then_some(());
    let failed = || nodes.iter().map(failed_requests).sum::<f64>();
    let (failed_before, asked_before, begun) = (failed(), asked(&etcd), Instant::now());
    let takers = nodes.each_ref().map(|node| Taker::at(node, &taken));
    until_within(LONG * 10, "half of them", || {
        is_taken(wanted / 2).filter(|()| begun.elapsed() >= COUNTED)
    });
    let (asked_for_half, lasted) = (asked(&etcd) - asked_before, begun.elapsed());
    let half = taken.load(Ordering::Relaxed);
    let renewals = lasted.as_secs() / RENEWAL.as_secs() + 1;
    println!(
        "{half} ids in {lasted:?}: etcd was asked {asked_for_half} times, by three nodes that renewed {renewals} times each"
    );
    // Allow one more request for each node and minute. This is the sweep of old idempotency keys,
    // which runs at most once a minute. A node also repeats each renewal that failed.
    let most = 3 * (renewals + 1 + lasted.as_secs() / 60 + 1);
    let repeated = failed() - failed_before;
    assert!(
        asked_for_half <= most as f64 + repeated,
        "{asked_for_half}, {repeated} of them repeated"
    );

    let leader = etcd.leader();
    etcd.kill(leader);
    let [one, two, three] = nodes;
    one.kill();
    let one = node(&homes[0], &etcd, 4);
    takers[0].turn_to(&one);
    until("another member leads", || {
        etcd.leader_if_any()
            .is_some_and(|other| other != leader)
            .then_some(())
    });
    etcd.restart(leader);
    until_within(LONG * 10, "all of them", || is_taken(wanted));
    let count = count_different(takers.into_iter().flat_map(Taker::stop).collect());
    println!(
        "{count} ids of three nodes, none twice; one leader and one node were killed meanwhile"
    );
    assert!(count >= wanted, "{count}");
    until("all nodes are ready", || {
        let is_ready = |node: &Service| node.get("/health/ready").status == 200;
        [&one, &two, &three].into_iter().all(is_ready).then_some(())
    });
}
