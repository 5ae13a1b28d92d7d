//! The fleet of the campaign: four nodes, each with its own clock and its own links to etcd. An
//! operator follows docs/FLEET.md.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, thread};

use super::guests::Guest;
use super::schedule::{NODES, Slip};
use crate::appending::{NOWHERE, Place};
use crate::fleet::EtcdCluster;
use crate::fleet::etcd_link::{EtcdLink, Weather};
use crate::fleet::fencing::{
    GivenFile, fence_trusting_the_clock, fence_until_answered, run_until_answered,
};
use crate::fleet::nodes::{slot_of, until_within};
use crate::torture::callers::Minted;
use crate::torture::formats::FORMATS;
use crate::wall_clock::WallClock;
use idmint_testing::numbering::Callers;
use idmint_testing::service::{Ended, Home, Service, Signal};

use super::callers::formats;

/// The number of slots, which is the number of workers in the format with the fewest workers.
const SLOTS: u32 = 13;

/// A timeout that is longer than a node ever waits after a fence, or for the slot of a killed node.
pub(super) const LONG: Duration = Duration::from_secs(240);

/// The time by which the clock of each node is ahead, in seconds. The clocks differ by less than
/// the limit at which a node refuses its clock.
const AHEAD_S: [i64; NODES] = [0, 2, -1, 1];

/// The number of series from which callers take numbers.
pub(super) const SERIES: usize = 3;

/// The pause of a caller between two numbers.
const NUMBERS_PAUSE: Duration = Duration::from_millis(40);

/// A node of the fleet. It may be down at the moment.
pub(super) struct Node {
    home: Home,
    wall: WallClock,
    ahead_s: i64,
    links: Vec<EtcdLink>,
    service: Option<Service>,
}

pub(super) struct Fleet {
    pub(super) etcd: EtcdCluster,
    pub(super) nodes: Vec<Node>,
    /// The current address of each node, which the callers use.
    pub(super) places: Arc<Vec<Place>>,
    /// The callers that take numbers from a few series.
    pub(super) numbers: Arc<Callers>,
    /// The lines that the fence printed about events that it could not recover.
    pub(super) lost: Vec<String>,
    /// The single nodes that were adopted into the fleet.
    pub(super) guests: Vec<Guest>,
    /// The number of fences after which the guests (adopted single nodes) had to be adopted again.
    pub(super) adopted_again: u64,
    operator: Home,
    /// The clock of the machine on which the operator works.
    wall: WallClock,
    /// The folders of nodes that will never be started again.
    gone: Vec<Home>,
}

/// The longest tick of a format, which is twice the reserved time. With a tick of a minute, each
/// fence would block all callers for more than a minute.
const LONG_TICK: &str = "20s";

/// Returns the settings that nodes of the fleet and single nodes have in common.
fn settings() -> String {
    let tables: Vec<_> = formats()
        .into_iter()
        .filter_map(|format| FORMATS[format].table())
        .collect();
    let tables = tables
        .concat()
        .replace("tick = \"60s\"", &format!("tick = \"{LONG_TICK}\""));
    format!("mint.batch_max = 100000\nclock.max_ahead = '{LONG_TICK}'\n{tables}")
}

/// Returns the configuration of a node.
fn configuration(endpoints: &[String]) -> String {
    let settings = settings();
    format!(
        "storage.engine = 'etcd'\nstorage.window = '10s'\netcd.endpoints = {endpoints:?}\nworker.slots = {SLOTS}\n{settings}"
    )
}

/// `true` if nodes refuse records after this fence, because an adoption is missing.
fn refuses_records(fenced: &Ended) -> bool {
    fenced.err.contains("the fleet refuses records")
}

fn is_regressed(node: &Service) -> Option<()> {
    (node.metric("idmint_coordinator_regressed") == 1.0).then_some(())
}

impl Node {
    fn new(etcd: &EtcdCluster, ahead_s: i64) -> Node {
        let home = Home::new();
        let wall = WallClock::of(&home);
        wall.set(ahead_s);
        let links = etcd
            .endpoints()
            .iter()
            .map(|endpoint| EtcdLink::to(endpoint))
            .collect();
        Node {
            home,
            wall,
            ahead_s,
            links,
            service: None,
        }
    }

    fn serve(&self) -> Command {
        let endpoints: Vec<String> = self.links.iter().map(EtcdLink::endpoint).collect();
        self.home.serve_with(&configuration(&endpoints))
    }

    fn start(&mut self, args: &[&str]) {
        let mut serve = self.serve();
        serve.args(args);
        self.service = Some(self.wall.start(serve));
    }

    pub(super) fn service(&self) -> &Service {
        self.service.as_ref().expect("it runs")
    }

    pub(super) fn set_clock(&self, by_s: i64) {
        self.wall.set(self.ahead_s + by_s);
    }

    /// Sets the condition of the node's links to etcd. Returns how often bad conditions have
    /// affected these links so far.
    pub(super) fn turn(&self, weather: Weather) -> u64 {
        self.links.iter().for_each(|link| link.turn(weather));
        self.links.iter().map(EtcdLink::mishaps).sum()
    }

    fn high_water(&self) -> PathBuf {
        high_water(&self.home)
    }
}

fn high_water(home: &Home) -> PathBuf {
    home.data_dir().join("high-water-default")
}

impl Fleet {
    /// Creates a fleet whose first node has a clock that is 400 days ahead. That node mints through
    /// `mint`, and is then never started again.
    pub(super) fn found(mint: impl FnOnce(&Service)) -> Fleet {
        let etcd = EtcdCluster::start(3);
        let mut founder = Node::new(&etcd, 400 * 86_400);
        founder.start(&["--new-fleet"]);
        until_within(LONG, "it mints by its clock", || slot_of(founder.service()));
        mint(founder.service());
        let mut nodes: Vec<Node> = AHEAD_S
            .iter()
            .map(|ahead_s| Node::new(&etcd, *ahead_s))
            .collect();
        nodes.iter_mut().for_each(|node| node.start(&[]));
        let says_why = |node: &Node| {
            let ready = node.service().get("/health/ready").json();
            ready["detail"]
                .as_str()
                .is_some_and(|detail| detail.contains("the fleet begins at "))
                .then_some(())
        };
        nodes
            .iter()
            .for_each(|node| until_within(LONG, "it says what it waits for", || says_why(node)));
        founder.service.take().expect("it runs").kill();
        let places = Arc::new(nodes.iter().map(|node| Place::of(node.service())).collect());
        let callers = Callers::of(nodes.iter().map(Node::service), SERIES, 3);
        let numbers = Arc::new(callers.pausing(NUMBERS_PAUSE));
        let operator = Home::new();
        let wall = WallClock::of(&operator);
        drop(operator.serve_with(&configuration(&etcd.endpoints())));
        let mut fleet = Fleet {
            etcd,
            nodes,
            places,
            numbers,
            lost: Vec::new(),
            guests: Vec::new(),
            adopted_again: 0,
            operator,
            wall,
            gone: vec![founder.home],
        };
        fleet.fence(Slip::None);
        fleet.wait_for_slots();
        fleet
    }

    /// Kills a node. Until it runs again, its callers try a port at which nobody listens, because
    /// another process may get the port of the node.
    pub(super) fn kill(&mut self, node: usize) {
        self.places[node].move_to(NOWHERE);
        self.numbers.places.move_place(node, NOWHERE);
        self.nodes[node].service.take().expect("it runs").kill();
    }

    pub(super) fn start(&mut self, node: usize) {
        self.nodes[node].start(&[]);
        let address = self.nodes[node].service().address();
        self.places[node].move_to(address);
        self.numbers.places.move_place(node, address);
    }

    pub(super) fn signal(&self, node: usize, signal: Signal) {
        self.nodes[node].service().send(signal);
    }

    /// Waits until every node has a slot.
    pub(super) fn wait_for_slots(&self) {
        for node in &self.nodes {
            until_within(LONG, "it has a slot", || slot_of(node.service()));
        }
    }

    /// Waits until each node has renewed the lease of its slot twice.
    pub(super) fn wait_for_renewals(&self) {
        let extensions = |node: &Node| {
            node.service()
                .metric("idmint_horizon_extensions_total{outcome=\"extended\"}")
        };
        let before: Vec<f64> = self.nodes.iter().map(extensions).collect();
        for (node, before) in self.nodes.iter().zip(before) {
            until_within(LONG, "its slot is renewed", || {
                (extensions(node) >= before + 2.0).then_some(())
            });
        }
    }

    /// Waits until each of these nodes has noticed that etcd has lost data, and refuses to use it.
    pub(super) fn wait_until_noticed(&self, nodes: impl Iterator<Item = usize>) {
        for node in nodes {
            until_within(LONG, "it notices", || {
                is_regressed(self.nodes[node].service())
            });
        }
    }

    /// Saves a snapshot of etcd, and returns its path.
    pub(super) fn save(&self, name: &str) -> PathBuf {
        let kept = self.operator.path(name);
        fs::rename(self.etcd.save(), &kept).expect("both are temporary");
        kept
    }

    /// Makes the operator's mistake `slip`, and then fences the fleet as docs/FLEET.md prescribes.
    /// A fence sets a time below which nobody mints. It also brings back lost events from the
    /// journals, which are the nodes' copies of their commits.
    ///
    /// The fence gets the journals of all nodes, and the high-water files of nodes that are down or
    /// gone. Returns the number of recovered events.
    pub(super) fn fence(&mut self, slip: Slip) -> u64 {
        let config = self.operator.path("idmint.toml");
        let mut recovered = 0;
        match slip {
            Slip::None => {}
            Slip::Behind(by_s) => {
                self.wall.set(-by_s);
                let refused = fence_until_answered(&config, self.journals(), |command| {
                    self.wall.give_to(command);
                    command.arg("--yes");
                });
                refused.assert(78, &["the clock of this machine shows"]);
            }
            Slip::Ahead(by_s) => {
                self.wall.set(by_s);
                let fenced = fence_until_answered(&config, self.files(), |command| {
                    self.wall.give_to(command);
                    command.args(["--yes", "--trust-this-clock"]);
                });
                recovered += self.take_in(&fenced);
            }
            Slip::WithoutJournals => {
                // Stop all nodes first. A record that is written before the journals are read would
                // take the place of a record in the journals.
                self.signal_all(Signal::STOP);
                let fenced = fence_trusting_the_clock(&config, self.high_waters());
                println!("{}{}", fenced.out, fenced.err);
                // Nodes refuse records after this fence if the high-water file of a node shows that
                // an adoption was lost. The fence then exits with 65.
                let is_complete = !refuses_records(&fenced);
                fenced.assert(if is_complete { 0 } else { 65 }, &[]);
                assert!(
                    fenced.out.contains("idmint numbers resume"),
                    "{}",
                    fenced.out
                );
            }
        }
        // Trust the clock of this machine, because the high-water file of the founder shows a time
        // that is 400 days in the future.
        let fenced = fence_trusting_the_clock(&config, self.files());
        recovered += self.take_in(&fenced);
        if slip == Slip::WithoutJournals {
            self.signal_all(Signal::CONT);
        }
        if refuses_records(&fenced) {
            recovered += self.adopt_again();
        }
        recovered
    }

    /// Has a single node write records, and adopts its folder into the running fleet.
    pub(super) fn take_in_guest(&mut self, minted: &mut Minted) {
        let guest = Guest::live(self.guests.len(), &settings(), minted);
        self.guests.push(guest);
        self.adopt(self.guests.len() - 1);
        self.visit_guests();
    }

    fn adopt(&self, guest: usize) {
        let config = self.operator.path("idmint.toml");
        let adopted = run_until_answered(|| self.guests[guest].adopt(&config));
        println!("{}{}", adopted.out, adopted.err);
        adopted.assert(0, &[]);
    }

    /// Writes more records of the guests (adopted single nodes) at a node, whose journal then
    /// contains these records. From this journal, a later fence notices that an older backup lacks
    /// the adopted records.
    fn visit_guests(&mut self) {
        let node = self.nodes[0].service();
        self.guests
            .iter_mut()
            .for_each(|guest| guest.go_on_at(node));
    }

    /// Follows docs/FLEET.md after a restore to a time before adoptions: ends all nodes, adopts all
    /// folders again, fences again and starts the nodes. Returns the number of recovered events.
    fn adopt_again(&mut self) -> u64 {
        let running: Vec<usize> = (0..NODES)
            .filter(|node| self.nodes[*node].service.is_some())
            .collect();
        running.iter().for_each(|node| self.kill(*node));
        (0..self.guests.len()).for_each(|guest| self.adopt(guest));
        let config = self.operator.path("idmint.toml");
        let fenced = fence_trusting_the_clock(&config, self.files());
        let recovered = self.take_in(&fenced);
        assert!(!refuses_records(&fenced), "{}", fenced.out);
        running.into_iter().for_each(|node| self.start(node));
        self.adopted_again += 1;
        recovered
    }

    fn journals(&self) -> Vec<GivenFile> {
        let journal = |node: &Node| ("--journal", node.home.data_dir().join("journal-default"));
        self.nodes.iter().map(journal).collect()
    }

    fn high_waters(&self) -> Vec<GivenFile> {
        let down = self.nodes.iter().filter(|node| node.service.is_none());
        let files = down.map(Node::high_water);
        let files = files.chain(self.gone.iter().map(high_water));
        files
            .filter(|file| file.exists())
            .map(|file| ("--high-water", file))
            .collect()
    }

    fn files(&self) -> Vec<GivenFile> {
        [self.journals(), self.high_waters()].concat()
    }

    fn signal_all(&self, signal: Signal) {
        let running = self.nodes.iter().filter_map(|node| node.service.as_ref());
        running.for_each(|service| service.send(signal));
    }

    /// Prints the output of a fence. Returns the number of events that it recovered.
    fn take_in(&mut self, ended: &Ended) -> u64 {
        let out = &ended.out;
        println!("{out}{}", ended.err);
        // Only record lost events here. At the end, the campaign checks whether any of them was
        // acknowledged.
        let lost: Vec<String> = out
            .lines()
            .filter(|line| line.starts_with("lost:"))
            .map(str::to_owned)
            .collect();
        let is_complete = lost.is_empty() && !refuses_records(ended);
        ended.assert(if is_complete { 0 } else { 65 }, &[]);
        self.lost.extend(lost);
        let events = out
            .split_once(" journal files: ")
            .and_then(|(_, rest)| rest.split_once(" events"));
        events.map_or(0, |(events, _)| events.parse().expect("a number"))
    }

    /// Starts a node that has no state, with a clock that is `ahead_s` seconds ahead. The node
    /// creates a new fleet, and is then ended.
    pub(super) fn have_strangers_found(&mut self, ahead_s: i64) {
        let mut stranger = Node::new(&self.etcd, ahead_s);
        stranger.start(&[]);
        // Look into etcd, because the node does not report a new fleet if etcd committed it but the
        // response was lost.
        let has_founded = || {
            self.etcd
                .etcdctl(&["get", "--keys-only", "/idmint/v1/default/meta"])
                .contains("meta")
        };
        until_within(LONG, "it founds a fleet", || has_founded().then_some(()));
        thread::sleep(Duration::from_secs(1));
        stranger.service.take().expect("it runs").kill();
        self.gone.push(stranger.home);
    }
}
