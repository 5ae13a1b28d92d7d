//! Checks that nodes of one fleet never mint the same id. Three or more nodes use a real etcd with
//! three members, while processes are killed, stopped and cut off. The tests compare every id in a
//! response with every other one.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::etcd_cluster::EtcdCluster;
use super::lengths::short_or_whole;
use crate::wall_clock::WallClock;
use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, LONG, Service, run, until};

const BATCH: &str = "POST /ids/snowflake?count=2000";

/// The time that a [`Minter`] waits for a response. It is enough even on a busy machine.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// Starts a node that uses this cluster, and waits until it is ready.
pub(crate) fn node(home: &Home, etcd: &EtcdCluster, slots: u32) -> Service {
    let service = starting(home, etcd, slots);
    service.wait_until_ready();
    service
}

pub(super) fn starting(home: &Home, etcd: &EtcdCluster, slots: u32) -> Service {
    Service::start(serve(home, &etcd.endpoints(), slots, ""))
}

/// Starts a node that uses these etcd endpoints. `more` is added to its configuration.
pub(super) fn starting_at(home: &Home, endpoints: &[String], slots: u32, more: &str) -> Service {
    Service::start(serve(home, endpoints, slots, more))
}

/// Returns a command that starts a node with these etcd endpoints. `more` is added to its
/// configuration.
pub(super) fn serve(home: &Home, endpoints: &[String], slots: u32, more: &str) -> Command {
    let mut serve = home.serve_with(&format!(
        "storage.engine = 'etcd'\netcd.endpoints = {endpoints:?}\nworker.slots = {slots}\nmint.batch_max = 10000\n{more}"
    ));
    // Say that the fleet is new, because each test has a new etcd in which no node has minted.
    serve.arg("--new-fleet");
    serve
}

/// A client that mints at one node until [`Minter::stop`], and keeps all received ids.
pub(super) struct Minter {
    address: Arc<Mutex<SocketAddr>>,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Minted>,
}

#[derive(Default)]
pub(super) struct Minted {
    pub(super) ids: Vec<u64>,
    /// The bodies of the responses that refused to mint.
    pub(super) refused: Vec<String>,
    /// The number of requests that got no complete response.
    pub(super) cut: u64,
}

impl Minter {
    pub(super) fn at(node: &Service) -> Minter {
        let (address, is_over) = (
            Arc::new(Mutex::new(node.address())),
            Arc::new(AtomicBool::new(false)),
        );
        let (at, stop) = (Arc::clone(&address), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            let mut minted = Minted::default();
            while !stop.load(Ordering::Relaxed) {
                let address = *at.lock().unwrap();
                minted.ask(address);
                thread::sleep(Duration::from_millis(20));
            }
            minted
        });
        Minter {
            address,
            is_over,
            thread,
        }
    }

    pub(super) fn turn_to(&self, node: &Service) {
        *self.address.lock().unwrap() = node.address();
    }

    pub(super) fn stop(self) -> Minted {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

impl Minted {
    fn ask(&mut self, address: SocketAddr) {
        let asked = Client::try_connect_within(address, ANSWER_MAX)
            .ok()
            .and_then(|mut client| {
                client.send(request(BATCH, "accept: text/plain\r\n", ""));
                client.try_receive_within(ANSWER_MAX).ok()
            });
        match asked {
            Some(answer) if answer.status == 200 => {
                self.ids
                    .extend(answer.text().lines().map(|id| id.parse::<u64>().unwrap()));
            }
            Some(answer) => self.refused.push(answer.text()),
            None => self.cut += 1,
        }
    }
}

/// Asserts that every request got ids.
pub(super) fn assert_none_failed<'a>(minted: impl IntoIterator<Item = &'a Minted>) {
    for one in minted {
        assert!(
            one.refused.is_empty() && one.cut == 0,
            "{:?}, {} cut",
            one.refused.first(),
            one.cut
        );
    }
}

/// Asserts that no id occurs twice, and returns the number of ids.
pub(super) fn assert_all_different(minted: impl IntoIterator<Item = Minted>) -> usize {
    let mut ids: Vec<u64> = minted.into_iter().flat_map(|minted| minted.ids).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(
        ids.len(),
        count,
        "{} of {count} ids were minted before",
        count - ids.len()
    );
    count
}

#[test]
fn no_id_is_minted_twice_while_nodes_and_members_are_killed_and_a_stopped_node_loses_its_slot() {
    const SLOTS: u32 = 4;
    let mut etcd = EtcdCluster::start(3);
    let homes: [Home; 5] = std::array::from_fn(|_| Home::new());
    let [one, two, three] = [0, 1, 2].map(|number| node(&homes[number], &etcd, SLOTS));
    let minters = [&one, &two, &three].map(Minter::at);
    thread::sleep(Duration::from_secs(1));

    let leader = etcd.leader();
    etcd.kill(leader);
    until("another member leads", || {
        (etcd.leader_if_any().is_some_and(|other| other != leader)).then_some(())
    });
    etcd.restart(leader);

    // Restart the first node. It takes the fourth slot, because the slot of its killed process is
    // still leased. Then stop the second node and start two more. When the leases have expired, one
    // of these two gets the slot of the killed process, and the other one gets the slot of the
    // stopped node.
    one.kill();
    let one = node(&homes[0], &etcd, SLOTS);
    minters[0].turn_to(&one);
    let slot_before = slot_when_ready(&two);
    two.send(Signal::STOP);
    let stopped = Instant::now();
    let (four, five) = (
        starting(&homes[3], &etcd, SLOTS),
        starting(&homes[4], &etcd, SLOTS),
    );
    let more = [&four, &five].map(Minter::at);
    let of_killed = until_within(
        Duration::from_secs(300),
        "a node has the slot of the stopped one",
        || {
            [&four, &five]
                .into_iter()
                .position(|node| slot_of(node) == Some(slot_before))
        },
    );
    println!(
        "its slot was taken {:?} after it was stopped",
        stopped.elapsed()
    );
    // End the node that has the slot of the killed process, which frees this slot.
    let [four, five] = [four, five];
    let (taker, other) = if of_killed == 0 {
        (four, five)
    } else {
        (five, four)
    };
    other.send(Signal::TERM);
    other.wait();
    two.send(Signal::CONT);
    let continued = Instant::now();
    until("it has another slot", || {
        slot_of(&two).filter(|slot| *slot != slot_before)
    });
    println!(
        "it had another slot {:?} after it went on",
        continued.elapsed()
    );
    assert_eq!(two.metric("idmint_fenced_total"), 1.0);
    assert_eq!(slot_when_ready(&taker), slot_before);
    mint_when_ready(&two);

    let minted: Vec<Minted> = minters.into_iter().chain(more).map(Minter::stop).collect();
    let (refused, cut): (usize, u64) = minted.iter().fold((0, 0), |(refused, cut), minted| {
        (refused + minted.refused.len(), cut + minted.cut)
    });
    for refusal in minted.iter().flat_map(|minted| &minted.refused) {
        // Shortly after a start, a node has reserved little time, and an election takes longer than
        // that. A refusal because of the horizon is therefore allowed.
        let is_known = ["no-worker-slot", "horizon-reached", "draining"]
            .iter()
            .any(|slug| refusal.contains(slug));
        assert!(is_known, "{refusal}");
    }
    let count = assert_all_different(minted);
    println!(
        "{count} ids, none twice; {refused} requests refused, {cut} cut; one kill, one change of leader, one fence"
    );
    assert!(count >= 100_000, "{count} ids");
}

#[test]
fn while_two_members_of_three_are_gone_for_forty_seconds_no_mint_fails() {
    const GONE: Duration = Duration::from_secs(40);
    let mut etcd = EtcdCluster::start(3);
    let home = Home::new();
    let service = node(&home, &etcd, 4);
    // Wait until the node reserves its maximum time, which takes half a minute. From then on, only
    // the lease of a minute limits how long the node can mint without etcd. More than 47 s are left
    // only just after a renewal. A node that has reserved less time can refuse mints on a busy
    // machine, so the minter starts only then.
    until_within(LONG, "a minute is reserved", || {
        (service.metric("idmint_horizon_remaining_seconds") > 47.0).then_some(())
    });
    let minter = Minter::at(&service);
    let begun = Instant::now();
    [0, 1].into_iter().for_each(|member| etcd.kill(member));
    assert_stays_ready(&service, begun, GONE);
    let minted = minter.stop();
    assert_none_failed([&minted]);
    // How long the members take to start depends on the machine, so mints may be refused meanwhile.
    [0, 1].into_iter().for_each(|member| etcd.restart(member));
    wait_until_reserved(&service);
    let after = Minter::at(&service);
    thread::sleep(Duration::from_millis(200));
    println!(
        "{} ids, none twice and none refused while the members were gone",
        assert_all_different([minted, after.stop()])
    );
}

#[test]
fn a_node_whose_clock_is_wrong_waits_until_it_is_right_and_stops_nobody() {
    let etcd = EtcdCluster::start(1);
    let homes: [Home; 3] = std::array::from_fn(|_| Home::new());
    let right = [0, 1].map(|number| node(&homes[number], &etcd, 8));
    let minters = [&right[0], &right[1]].map(Minter::at);

    let wall = WallClock::of(&homes[2]);
    for (ahead_s, reason, sign) in [(30, "clock-jumped", 1.0), (-30, "clock-behind", -1.0)] {
        wall.set(ahead_s);
        let wrong = wall.start(serve(&homes[2], &etcd.endpoints(), 8, ""));
        let reason_of = || {
            wrong.get("/health/ready").json()["reason"]
                .as_str()
                .map(str::to_owned)
        };
        until("its clock is refused", || {
            (reason_of().as_deref() == Some(reason)).then_some(())
        });
        let refused = wrong.post("/ids/snowflake");
        assert_eq!(
            (refused.status, refused.json()["type"].as_str()),
            (503, Some(format!("/problems/{reason}").as_str()))
        );
        assert_eq!(
            wrong.post("/ids/flax").status,
            200,
            "a random id needs no slot"
        );
        // The first estimate of the clock difference can be too high. A node assumes that a record
        // is at most 5 s old when it first reads that record. On a busy machine, the record can be
        // older.
        until("the difference is known", || {
            let skew = wrong.metric("idmint_peer_clock_skew_seconds") * sign;
            (5.0..=30.5).contains(&skew).then_some(())
        });
        assert_eq!(wrong.metric("idmint_worker_slot"), -1.0);
        thread::sleep(Duration::from_secs(12));
        assert_eq!(
            reason_of().as_deref(),
            Some(reason),
            "for as long as it is wrong"
        );
        wall.set(0);
        wrong.wait_until_ready();
        mint_when_ready(&wrong);
        until("no difference is proven any more", || {
            (wrong.metric("idmint_peer_clock_skew_seconds") == 0.0).then_some(())
        });
        wrong.log_once_it_says("agrees with the clocks of the fleet again");
        wrong.send(Signal::TERM);
        wrong.wait();
    }

    wall.set(3);
    let served = wall.start(serve(&homes[2], &etcd.endpoints(), 8, ""));
    served.wait_until_ready();
    let third = Minter::at(&served);
    thread::sleep(Duration::from_secs(12));
    let minted = minters
        .into_iter()
        .chain([third])
        .map(Minter::stop)
        .collect::<Vec<Minted>>();
    let refused: Vec<&String> = minted.iter().flat_map(|minted| &minted.refused).collect();
    let of_clocks = refused
        .iter()
        .filter(|refusal| refusal.contains("clock-"))
        .count();
    assert_eq!(of_clocks, 0, "{refused:?}");
    println!("{} requests refused, none for a clock", refused.len());
    println!("{} ids, none twice", assert_all_different(minted));
}

#[test]
fn a_region_that_has_lost_its_etcd_holds_up_nobody_in_the_other() {
    const SHARES: [&str; 2] = ["0-3", "4-7"];
    let mut etcds = [EtcdCluster::start(1), EtcdCluster::start(1)];
    let homes: [Home; 5] = std::array::from_fn(|_| Home::new());
    let command = |number: usize, region: usize, share: &str| {
        serve(
            &homes[number],
            &etcds[region].endpoints(),
            8,
            &format!("cluster.slots = '{share}'"),
        )
    };
    let nodes: [Service; 4] = std::array::from_fn(|number| {
        let region = number / 2;
        let node = Service::start(command(number, region, SHARES[region]));
        node.wait_until_ready();
        let slot = slot_when_ready(&node);
        assert_eq!(
            slot / 4,
            u64::try_from(region).unwrap(),
            "slot {slot} of region {region}"
        );
        node
    });
    let stray = run(command(4, 1, SHARES[0]));
    stray.assert(78, &["the slots 4-7", "cluster.slots is \"0-3\""]);

    // Wait until each node has reserved its maximum time. A node with less reserved time can refuse
    // mints on a busy machine.
    nodes.iter().for_each(wait_until_reserved);
    let minters = [0, 1, 2, 3].map(|number| Minter::at(&nodes[number]));
    thread::sleep(Duration::from_secs(2));
    etcds[0].kill(0);
    // Wait until the nodes of the lost region have stopped minting.
    until_within(LONG, "a node of the lost region has stopped", || {
        slot_of(&nodes[0]).is_none().then_some(())
    });
    for node in &nodes[2..] {
        slot_when_ready(node);
    }
    etcds[0].restart(0);
    until_within(LONG, "it mints again", || slot_of(&nodes[0]));
    let wanted = short_or_whole(100_000, 10_000_000);
    let minted_by = |node: &Service| node.metric("idmint_ids_minted_total{format=\"snowflake\"}");
    until_within(5 * LONG, "enough of them", || {
        (nodes.iter().map(minted_by).sum::<f64>() >= f64::from(wanted)).then_some(())
    });
    let [one, two, three, four] = minters.map(Minter::stop);
    assert_none_failed([&three, &four]);
    assert!(
        !one.refused.is_empty(),
        "it was without its etcd for longer than its slot lasts"
    );
    println!(
        "{} ids of two regions, none twice",
        assert_all_different([one, two, three, four])
    );
}

/// Returns the slot of a node. On a busy machine, a node that was ready can need a moment to reserve
/// more time.
pub(super) fn slot_when_ready(node: &Service) -> u64 {
    until("a node is ready", || slot_of(node))
}

/// Mints one id. On a busy machine, a node that was ready can need a moment to reserve more time.
fn mint_when_ready(node: &Service) {
    let minted = until("a node mints", || {
        Some(node.post("/ids/snowflake")).filter(|answer| answer.status == 200)
    });
    assert_eq!(minted.text().lines().count(), 1);
}

/// Waits until a node has reserved its maximum time, which takes half a minute.
pub(super) fn wait_until_reserved(node: &Service) {
    until_within(LONG, "a minute is reserved", || {
        (node.metric("idmint_horizon_remaining_seconds") > 44.0).then_some(())
    });
}

/// Asserts that a node is ready until the time `lasts` has passed since `begun`. Ignores a response
/// that arrives later, because the node then need not be ready any more.
pub(super) fn assert_stays_ready(node: &Service, begun: Instant, lasts: Duration) {
    loop {
        let status = node.get("/health/ready").status;
        let elapsed = begun.elapsed();
        if elapsed >= lasts {
            break;
        }
        assert_eq!(status, 200, "after {elapsed:?}");
        thread::sleep(Duration::from_millis(200));
    }
}

pub(super) fn slot_of(node: &Service) -> Option<u64> {
    let answer = node.get("/health/ready");
    (answer.status == 200)
        .then(|| answer.json()["slot"].as_u64())
        .flatten()
}

/// Returns the number of `snowflake` ids that a node has minted.
pub(super) fn minted_by(node: &Service) -> f64 {
    node.metric("idmint_ids_minted_total{format=\"snowflake\"}")
}

pub(crate) fn until_within<T>(
    most: Duration,
    what: &str,
    mut look: impl FnMut() -> Option<T>,
) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < most, "{what}, within {most:?}");
        thread::sleep(Duration::from_millis(100));
    }
}
