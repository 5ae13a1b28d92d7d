//! A rolling restart of a fleet: each node in turn is ended and started again, while callers use
//! any node that is ready. No caller may notice. If `OLDER_PROGRAM` names a program of an earlier
//! version, each node alternates between that program and the present one.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::Signal;

use super::etcd_cluster::EtcdCluster;
use super::lengths::short_or_whole;
use super::nodes::{Minted, assert_all_different, assert_none_failed, serve, slot_when_ready};
use crate::appending::{Appender, Place, assert_all_is_kept, begin};
use idmint_testing::http1::{Answer, Client, request};
use idmint_testing::numbering::Callers;
use idmint_testing::service::{Home, Service, StopOnDrop, until};

const SLOTS: u32 = 8;
const CALLERS: usize = 3;
const APPENDERS: usize = 2;

const NUMBER_CALLERS: usize = 3;
const SERIES: usize = 4;

/// The settings of all nodes. The delay of a node's shutdown is longer than the balancer needs to
/// notice that the node is no longer ready.
const SETTINGS: &str = "http.drain_delay = '15s'
numbers.all = { pattern = 'series-*', text = '{series}:{n:03}' }";

/// A series that the test closes.
const YEARLY: &str = "yearly";

/// The state of a load balancer: the address of each node, and its readiness at the last check.
#[derive(Default)]
struct Balancer {
    nodes: RwLock<BTreeMap<usize, (SocketAddr, bool)>>,
    is_over: AtomicBool,
    minted: AtomicU64,
}

impl Balancer {
    /// Starts a thread that keeps checking whether the node at `place` is ready.
    fn watch(self: Arc<Balancer>, place: usize) -> JoinHandle<()> {
        thread::spawn(move || {
            while !self.is_over.load(Ordering::Relaxed) {
                let (address, _) = self.nodes.read().unwrap()[&place];
                if let Some(is_ready) = is_ready(address) {
                    let mut nodes = self.nodes.write().unwrap();
                    nodes.entry(place).and_modify(|known| {
                        if known.0 == address {
                            known.1 = is_ready;
                        }
                    });
                }
                thread::sleep(Duration::from_millis(50));
            }
        })
    }

    fn add(&self, place: usize, node: &Service) {
        self.nodes
            .write()
            .unwrap()
            .insert(place, (node.address(), true));
    }

    fn ready(&self) -> Vec<SocketAddr> {
        self.nodes
            .read()
            .unwrap()
            .values()
            .filter(|(_, is_ready)| *is_ready)
            .map(|(address, _)| *address)
            .collect()
    }

    /// Starts a caller that mints without a pause. It keeps each connection until the node closes
    /// it.
    fn call(self: Arc<Balancer>, number: usize) -> JoinHandle<Minted> {
        thread::spawn(move || {
            let (mut minted, mut kept) = (Minted::default(), BTreeMap::new());
            for turn in number.. {
                if self.is_over.load(Ordering::Relaxed) {
                    break;
                }
                let ready = self.ready();
                assert!(!ready.is_empty(), "a node is ready at any time");
                kept.retain(|address, _| ready.contains(address));
                let address = ready[turn % ready.len()];
                let client = kept
                    .entry(address)
                    .or_insert_with(|| Client::connect(address));
                let before = minted.ids.len();
                let is_kept = mint(client, &mut minted);
                self.minted.fetch_add(
                    u64::try_from(minted.ids.len() - before).unwrap(),
                    Ordering::Relaxed,
                );
                if !is_kept {
                    kept.remove(&address);
                }
                thread::sleep(Duration::from_millis(5));
            }
            minted
        })
    }
}

/// Returns `Some(true)` if a node is ready. Returns `Some(false)` if the node responds that it is
/// not ready, or if no process listens at the address. Returns `None` if no response arrives in
/// time, which is possible on a busy machine.
fn is_ready(address: SocketAddr) -> Option<bool> {
    match Client::try_connect_within(address, Duration::from_secs(1)) {
        Ok(mut client) => {
            client.send(request("GET /health/ready", "", ""));
            let answer = client.try_receive_within(Duration::from_secs(1)).ok()?;
            Some(answer.status == 200)
        }
        Err(error) => (error.kind() == ErrorKind::ConnectionRefused).then_some(false),
    }
}

/// Mints once on the connection. Returns `true` if the node keeps the connection open.
fn mint(client: &mut Client, minted: &mut Minted) -> bool {
    client.send(request(
        "POST /ids/snowflake?count=200",
        "accept: text/plain\r\n",
        "",
    ));
    match client.try_receive_within(Duration::from_secs(60)) {
        Ok(answer) if answer.status == 200 => {
            minted
                .ids
                .extend(answer.text().lines().map(|id| id.parse::<u64>().unwrap()));
            answer.header("connection") != Some("close")
        }
        Ok(answer) => {
            minted.refused.push(answer.text());
            false
        }
        Err(_) => {
            minted.cut += 1;
            false
        }
    }
}

/// Returns the program that the nodes get in a round. All nodes start with the older program. They
/// then get the present one, node by node, and then the older one again.
fn program(older: Option<&OsStr>, round: usize) -> &OsStr {
    older
        .filter(|_| round.is_multiple_of(2))
        .unwrap_or(OsStr::new(env!("CARGO_BIN_EXE_idmint")))
}

/// Starts a node with this program, and waits until it is ready.
fn node_of(program: &OsStr, home: &Home, etcd: &EtcdCluster) -> Service {
    let present = serve(home, &etcd.endpoints(), SLOTS, SETTINGS);
    let mut command = Command::new(program);
    command.args(present.get_args());
    for (name, _) in present.get_envs() {
        command.env_remove(name);
    }
    let service = Service::start(command);
    service.wait_until_ready();
    service
}

/// Returns the older program if `OLDER_PROGRAM` names one. Asserts that it differs from the present
/// one.
fn older_program() -> Option<OsString> {
    let older = std::env::var_os("OLDER_PROGRAM")?;
    let is_same = fs::read(&older).expect("it can be read") == fs::read(program(None, 0)).unwrap();
    assert!(!is_same, "{} is the present program", older.display());
    println!("taking turns with {}", older.display());
    Some(older)
}

/// Requests a number of the series that the test closes.
fn take_yearly(node: &Service, key: &str) -> Answer {
    let headers = format!("idempotency-key: {key}\r\n");
    let asked = request(&format!("POST /numbers/{YEARLY}"), &headers, "");
    Client::connect(node.address()).exchange(asked)
}

fn close_yearly(node: &Service) -> Answer {
    let asked = request(&format!("POST /numbers/{YEARLY}/close"), "", "");
    Client::connect(node.address()).exchange(asked)
}

#[test]
fn a_rolling_restart_of_three_nodes_fails_no_mint() {
    let (older, rounds) = (older_program(), short_or_whole(2, 6));
    let older = older.as_deref();
    let etcd = EtcdCluster::start(1);
    let homes: [Home; 3] = std::array::from_fn(|_| Home::new());
    let mut nodes: Vec<Service> = homes
        .iter()
        .map(|home| node_of(program(older, 0), home, &etcd))
        .collect();
    // Wait until each node has reserved enough time for batches. A new node has too little.
    let is_warm = |node: &Service| node.metric("idmint_horizon_remaining_seconds") > 10.0;
    until("time is reserved", || {
        nodes.iter().all(is_warm).then_some(())
    });
    let balancer = Arc::<Balancer>::default();
    nodes
        .iter()
        .enumerate()
        .for_each(|(place, node)| balancer.add(place, node));
    let watches: Vec<_> = (0..nodes.len())
        .map(|place| Arc::clone(&balancer).watch(place))
        .collect();
    let callers: Vec<_> = (0..CALLERS)
        .map(|number| Arc::clone(&balancer).call(number))
        .collect();
    let (ledgers, places) = (
        begin(&nodes[0], 2),
        nodes.iter().map(Place::of).collect::<Vec<Place>>(),
    );
    let (granted, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let numbering = Callers::of(&nodes, SERIES, 3);
    let number = until("a number", || {
        let answer = take_yearly(&nodes[0], "first");
        [200, 201].contains(&answer.status).then(|| answer.json())
    });
    let mut slots = Vec::new();
    let seen = thread::scope(|scope| {
        let _stop = numbering.places.stop_at_the_end();
        for caller in 0..NUMBER_CALLERS {
            let numbering = &numbering;
            scope.spawn(move || numbering.ask(caller));
        }
        let appender = |number| {
            let appender = Appender::among(number, &places, &ledgers);
            scope.spawn(|| appender.run(&granted, &stop))
        };
        let appenders: Vec<_> = (0..APPENDERS).map(appender).collect();
        let running = StopOnDrop(&stop);
        for restart in 0..rounds * homes.len() {
            let place = restart % homes.len();
            let before = balancer.minted.load(Ordering::Relaxed);
            let ended = nodes.remove(place);
            slots.push(slot_when_ready(&ended));
            ended.send(Signal::TERM);
            ended.wait().assert(0, &[]);
            assert!(
                balancer.minted.load(Ordering::Relaxed) > before,
                "the others mint meanwhile"
            );
            let program_of_round = program(older, restart / homes.len() + 1);
            let begun = node_of(program_of_round, &homes[place], &etcd);
            let others_are_older = older.is_some() && place + 1 < homes.len();
            if others_are_older && older != Some(program_of_round) {
                // A node may be ready before it has opened its records.
                until("the older nodes prevent it", || {
                    let refused = close_yearly(&begun);
                    assert_eq!(refused.status, 503, "{}", refused.text());
                    refused.text().contains("update all nodes").then_some(())
                });
            }
            until("time is reserved", || is_warm(&begun).then_some(()));
            balancer.add(place, &begun);
            places[place].move_to(begun.address());
            numbering.places.move_place(place, begun.address());
            nodes.insert(place, begun);
        }
        drop(running);
        appenders
            .into_iter()
            .map(|one| one.join().expect("the caller found nothing wrong"))
            .collect::<Vec<_>>()
    });
    balancer.is_over.store(true, Ordering::Relaxed);
    watches.into_iter().for_each(|watch| watch.join().unwrap());
    let minted: Vec<Minted> = callers
        .into_iter()
        .map(|caller| caller.join().unwrap())
        .collect();
    assert_none_failed(&minted);
    let appends = granted.load(Ordering::Relaxed);
    println!(
        "{} ids and {appends} appends, none twice and no mint refused, through {} restarts",
        assert_all_different(minted),
        slots.len()
    );
    assert!(
        slots.len() >= 6 && appends > 0,
        "{} restarts, {appends} appends",
        slots.len()
    );
    assert_all_is_kept(&nodes[0], ledgers, seen);
    for node in &nodes {
        numbering.check(node, NUMBER_CALLERS);
    }
    if older.is_none() {
        assert_eq!(close_yearly(&nodes[0]).status, 201);
        for node in &nodes {
            assert_eq!(take_yearly(node, "second").status, 409);
            assert_eq!(take_yearly(node, "first").json(), number);
        }
    }
}
