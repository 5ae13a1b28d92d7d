//! Three nodes append to the same ledger at the same time, on a real etcd with three members. The
//! ledger must stay a single chain, even if processes are killed and cut off.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::etcd_cluster::EtcdCluster;
use super::etcd_link::{EtcdLink, Weather};
use super::lengths::short_or_whole;
use super::nodes::{starting_at, until_within};
use crate::appending::{Appender, Begun, NOWHERE, Order, Place, Seen, assert_all_is_kept, begin};
use idmint_testing::service::{Home, LONG, Service};

/// The number of slots, which is more than nodes use up when they are killed over and over.
const SLOTS: u32 = 32;

/// The number of callers. It is high enough that several appends of one node share a transaction.
const CALLERS: usize = 60;

/// Three nodes. The last one reaches the etcd members through links that the test can disturb.
struct Fleet {
    etcd: EtcdCluster,
    links: Vec<EtcdLink>,
    homes: [Home; 3],
    nodes: Vec<Service>,
}

/// A failure of one part of the fleet.
#[derive(Debug, Clone, Copy)]
enum Mishap {
    /// The leader of etcd is killed and started again.
    Leader,
    /// The node with this index is killed and started again.
    Node(usize),
    /// The links of the last node to all etcd members are in a bad condition for a while.
    Partition(Weather),
}

impl Fleet {
    fn start() -> Fleet {
        let etcd = EtcdCluster::start(3);
        let links = etcd
            .endpoints()
            .iter()
            .map(|endpoint| EtcdLink::to(endpoint))
            .collect();
        let homes = std::array::from_fn(|_| Home::new());
        let mut fleet = Fleet {
            etcd,
            links,
            homes,
            nodes: Vec::new(),
        };
        fleet.nodes = (0..3).map(|number| fleet.start_node(number)).collect();
        fleet.nodes.iter().for_each(|node| {
            node.wait_until_ready();
        });
        fleet
    }

    fn start_node(&self, number: usize) -> Service {
        let endpoints = match number {
            2 => self.links.iter().map(EtcdLink::endpoint).collect(),
            _ => self.etcd.endpoints(),
        };
        starting_at(&self.homes[number], &endpoints, SLOTS, "")
    }

    /// Causes a failure. It lasts until `others_go_on` returns, which waits until the other
    /// processes have made progress.
    fn befall(&mut self, mishap: Mishap, places: &[Place], others_go_on: impl FnOnce()) {
        match mishap {
            Mishap::Leader => {
                let leader = self.etcd.leader();
                self.etcd.kill(leader);
                others_go_on();
                self.etcd.restart(leader);
                self.etcd.wait_until_healthy();
            }
            Mishap::Node(number) => {
                places[number].move_to(NOWHERE);
                self.nodes.remove(number).kill();
                others_go_on();
                self.nodes.insert(number, self.start_node(number));
                places[number].move_to(self.nodes[number].address());
            }
            Mishap::Partition(weather) => {
                self.links.iter().for_each(|link| link.turn(weather));
                others_go_on();
                self.links.iter().for_each(|link| link.turn(Weather::Clear));
            }
        }
    }
}

/// Appends to the ledger from all callers, with `requests` requests of `events` events each.
/// Meanwhile, calls `meanwhile` with the number of appends that were acknowledged so far.
fn append(
    places: &[Place],
    ledgers: &[Begun],
    (requests, events): (u64, usize),
    meanwhile: impl FnOnce(&AtomicU64),
) -> Vec<Seen> {
    let (asked, acknowledged) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        let caller = |number| {
            let (asked, acknowledged) = (&asked, &acknowledged);
            let mut caller = Appender::among(number, places, ledgers);
            scope.spawn(move || {
                for turn in 0.. {
                    if asked.fetch_add(1, Ordering::Relaxed) >= requests {
                        break;
                    }
                    caller.append(
                        turn,
                        &Order {
                            ledger: 0,
                            count: events,
                            expects: false,
                        },
                    );
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                    // Return to the first node. Otherwise all callers would soon use the nodes
                    // without failures.
                    caller.return_to_first();
                }
                caller.seen
            })
        };
        let callers: Vec<_> = (0..CALLERS).map(caller).collect();
        meanwhile(&acknowledged);
        callers
            .into_iter()
            .map(|caller| caller.join().expect("the caller found nothing wrong"))
            .collect()
    })
}

/// Prints the number of responses for each status, and returns these numbers.
fn print_answers(what: &str, begun: Instant, seen: &[Seen]) -> BTreeMap<u16, u64> {
    let events: usize = seen.iter().map(|seen| seen.kept.len()).sum();
    let mut answers = BTreeMap::<u16, u64>::new();
    for (status, count) in seen.iter().flat_map(|seen| &seen.answers) {
        *answers.entry(*status).or_default() += count;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let a_second = f64::from(u32::try_from(events).unwrap()) / seconds;
    println!(
        "{what}: {events} events in {seconds:.1} s, {a_second:.0} a second; answers by status, 0 for lost: {answers:?}"
    );
    answers
}

#[test]
fn appends_by_three_nodes_are_one_chain_while_members_are_killed() {
    const ROUND: [Mishap; 4] = [
        Mishap::Leader,
        Mishap::Node(0),
        Mishap::Partition(Weather::Cut),
        Mishap::Leader,
    ];
    const OTHER_ROUND: [Mishap; 4] = [
        Mishap::Node(2),
        Mishap::Partition(Weather::Silent),
        Mishap::Node(1),
        Mishap::Partition(Weather::Stalled),
    ];
    let requests = short_or_whole(6_000, 100_000);
    let rounds = short_or_whole(vec![ROUND], [ROUND, OTHER_ROUND].repeat(3));
    let mishaps = rounds.concat();
    let mut fleet = Fleet::start();
    let places: Vec<Place> = fleet.nodes.iter().map(Place::of).collect();
    let ledgers = begin(&fleet.nodes[0], 1);
    let begun = Instant::now();
    let seen = append(&places, &ledgers, (requests, 1), |acknowledged| {
        let until_acknowledged = |count: u64| {
            until_within(LONG, "the callers go on", || {
                (acknowledged.load(Ordering::Relaxed) >= count.min(requests)).then_some(())
            });
        };
        let parts = u64::try_from(mishaps.len()).unwrap() + 1;
        for (mishap, part) in mishaps.iter().zip(1..) {
            until_acknowledged(part * requests / parts);
            let others_go_on = || {
                let now = acknowledged.load(Ordering::Relaxed);
                until_acknowledged(now + 2 * u64::try_from(CALLERS).unwrap());
            };
            fleet.befall(*mishap, &places, others_go_on);
        }
    });
    let answers = print_answers(&format!("{} mishaps", mishaps.len()), begun, &seen);
    let (lost, refused) = (answers.get(&0).copied(), answers.get(&503).copied());
    assert!(
        lost.is_some() && refused.is_some(),
        "no caller noticed a node that was killed, or one that was cut off"
    );
    assert_eq!(
        seen.iter().map(|seen| seen.kept.len()).sum::<usize>(),
        usize::try_from(requests).unwrap()
    );
    assert_all_is_kept(&fleet.nodes[1], ledgers, seen);
}

#[test]
fn requests_of_a_hundred_events_by_three_nodes_are_one_chain() {
    const EVENTS: usize = 100;
    let requests = short_or_whole(60, 2_000);
    let fleet = Fleet::start();
    let places: Vec<Place> = fleet.nodes.iter().map(Place::of).collect();
    let ledgers = begin(&fleet.nodes[0], 1);
    let begun = Instant::now();
    let seen = append(&places, &ledgers, (requests, EVENTS), |_| ());
    print_answers("requests of a hundred", begun, &seen);
    assert_all_is_kept(&fleet.nodes[1], ledgers, seen);
}
