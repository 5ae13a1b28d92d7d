//! Checks nodes whose etcd has no quorum for minutes. The nodes must mint until their slots expire,
//! and then refuse requests. Seconds after the quorum is back, they must mint again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::etcd_cluster::EtcdCluster;
use super::lengths::short_or_whole;
use super::nodes::{Minted, assert_all_different, node, slot_of, until_within};
use crate::status::assert_status_says;
use idmint_testing::http1::{Answer, Client, request};
use idmint_testing::service::{Home, Service};

const NODES: usize = 3;
const SLOTS: u32 = 8;

/// The time from sending the last renewal that etcd acknowledged until the slot expires.
const DEADLINE: Duration = Duration::from_secs(50);

/// The maximum difference per minute between the clock of this test and the clock of a node, which
/// follows the wall clock.
const SLEWED: Duration = Duration::from_millis(100);

/// The maximum time until a node sends its next request to etcd. A node retries at most 2 s after a
/// failure, and a request has a timeout of 1 s.
const READY_AFTER: Duration = Duration::from_secs(3);

/// Additional time that a busy machine may need.
const SLACK: Duration = Duration::from_secs(237);

/// A request for ids and its response, with their times.
struct Asked {
    sent: Instant,
    answered: Instant,
    answer: Answer,
}

/// A client that mints at one node until [`Asker::stop`], and keeps all responses with their times.
struct Asker {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Asked>>,
}

impl Asker {
    fn at(address: SocketAddr) -> Asker {
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let (mut client, mut all) = (Client::connect(address), Vec::new());
            while !stop.load(Ordering::Relaxed) {
                let sent = Instant::now();
                let answer = client.exchange(request(
                    "POST /ids/snowflake?count=100",
                    "accept: text/plain\r\n",
                    "",
                ));
                all.push(Asked {
                    sent,
                    answered: Instant::now(),
                    answer,
                });
                thread::sleep(Duration::from_millis(20));
            }
            all
        });
        Asker { is_over, thread }
    }

    fn stop(self) -> Vec<Asked> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("each request was answered")
    }
}

/// Returns the earliest and the latest instant at which the node's slot can expire, unless the slot
/// is renewed.
fn end_of_slot(node: &Service) -> (Instant, Instant) {
    let before = Instant::now();
    let remaining = Duration::from_secs_f64(node.metric("idmint_horizon_remaining_seconds"));
    (
        before + remaining - SLEWED,
        Instant::now() + remaining + SLEWED,
    )
}

/// Waits until all nodes reserve their maximum time, which takes half a minute after a start.
/// Returns the earliest and the latest end of each node's slot.
fn ends_when_warm(nodes: &[Service]) -> Vec<(Instant, Instant)> {
    until_within(Duration::from_secs(240), "a minute is reserved", || {
        let ends: Vec<_> = nodes.iter().map(end_of_slot).collect();
        let warm = Instant::now() + Duration::from_secs(44);
        ends.iter().all(|(least, _)| *least > warm).then_some(ends)
    })
}

/// Returns the ids that were minted. Asserts that no request was refused before the slot expired.
/// Also asserts that every request was then refused until the quorum was back.
fn minted(asked: Vec<Asked>, lost: Instant, end: (Instant, Instant), restored: Instant) -> Minted {
    let mut minted = Minted::default();
    for Asked {
        sent,
        answered,
        answer,
    } in asked
    {
        let after = sent.duration_since(lost);
        match answer.status {
            200 => {
                assert!(
                    sent <= end.1 || answered >= restored,
                    "minted {after:?} after the quorum was lost"
                );
                minted
                    .ids
                    .extend(answer.text().lines().map(|id| id.parse::<u64>().unwrap()));
            }
            _ => {
                assert!(
                    answered >= end.0,
                    "refused {after:?} after the quorum was lost: {}",
                    answer.text()
                );
                assert_eq!(answer.status, 503, "{}", answer.text());
                assert!(
                    answer.text().contains("/problems/no-worker-slot"),
                    "{}",
                    answer.text()
                );
                assert!(answer.header("retry-after").is_some(), "{}", answer.head);
                minted.refused.push(answer.text());
            }
        }
    }
    minted
}

/// Kills two of three etcd members for the time `lasts`, while clients mint at the nodes. Returns
/// the ids that each client received.
fn without_quorum(etcd: &mut EtcdCluster, nodes: &[Service], lasts: Duration) -> Vec<Minted> {
    let known = ends_when_warm(nodes);
    let askers: Vec<Asker> = nodes.iter().map(|node| Asker::at(node.address())).collect();
    [0, 1].into_iter().for_each(|member| etcd.kill(member));
    let lost = Instant::now();
    // Wait until no renewal can be acknowledged any more, and then read when the slots expire.
    thread::sleep(Duration::from_secs(2));
    let ends: Vec<_> = nodes.iter().map(end_of_slot).collect();
    thread::sleep(lasts.saturating_sub(lost.elapsed()));
    assert!(
        nodes.iter().all(|node| slot_of(node).is_none()),
        "no node is ready"
    );
    assert_status_says(
        &nodes[0],
        1,
        &["no, no-worker-slot"],
        &["restore the quorum of etcd"],
    );
    let restored = Instant::now();
    [0, 1].into_iter().for_each(|member| etcd.restart(member));
    until_within(Duration::from_secs(240), "there is a leader", || {
        etcd.leader_if_any()
    });
    etcd.wait_until_writable();
    let quorum = Instant::now();
    until_within(READY_AFTER + SLACK, "each node is ready again", || {
        nodes
            .iter()
            .all(|node| slot_of(node).is_some())
            .then_some(())
    });
    let (after_quorum, after_start) = (quorum.elapsed(), restored.elapsed());
    println!(
        "{lasts:?} without a quorum: every node was ready {after_quorum:?} after etcd took a write, {after_start:?} after its members \
         were started"
    );
    let asked = askers.into_iter().map(Asker::stop);
    let minted: Vec<Minted> = asked
        .zip(&ends)
        .map(|(asked, end)| minted(asked, lost, *end, restored))
        .collect();
    for (((least, most), Minted { refused, .. }), known) in ends.iter().zip(&minted).zip(known) {
        assert!(*most >= known.0, "a slot ended before its reserved time");
        let (least, most) = (least.duration_since(lost), most.duration_since(lost));
        println!(
            "its slot ended {least:?} after the quorum was lost; {} requests were refused",
            refused.len()
        );
        assert!(least <= DEADLINE, "from {least:?} to {most:?}");
        assert!(!refused.is_empty());
    }
    minted
}

#[test]
fn without_a_quorum_for_minutes_nodes_mint_until_their_slots_end_and_again_seconds_after_it_is_back()
 {
    let mut etcd = EtcdCluster::start(3);
    let homes: [Home; NODES] = std::array::from_fn(|_| Home::new());
    let nodes = homes.each_ref().map(|home| node(home, &etcd, SLOTS));
    let minted: Vec<Minted> = short_or_whole(&[80][..], &[120, 600])
        .iter()
        .flat_map(|seconds| without_quorum(&mut etcd, &nodes, Duration::from_secs(*seconds)))
        .collect();
    println!("{} ids, none twice", assert_all_different(minted));
}
