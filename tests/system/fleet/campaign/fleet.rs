//! Four nodes with clocks and ways to etcd of their own, and what an operator does by the book of docs/FLEET.md.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, thread};

use super::schedule::NODES;
use crate::appending::Place;
use crate::fleet::EtcdCluster;
use crate::fleet::etcd_link::{EtcdLink, Weather};
use crate::fleet::fencing::fence_restore;
use crate::fleet::nodes::{slot_of, until_within};
use crate::service::{Home, Service, Signal};
use crate::torture::formats::FORMATS;
use crate::wall_clock::WallClock;

use super::callers::formats;

/// As many as the format has that has the fewest worker numbers.
const SLOTS: u32 = 13;

/// Longer than a fence, and the slots of nodes that were killed, keep anybody waiting.
pub(super) const LONG: Duration = Duration::from_secs(240);

/// How far the clocks of the nodes are ahead: less apart than is refused.
const AHEAD_S: [i64; NODES] = [0, 2, -1, 1];

/// A node, which may be down.
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
    /// Where callers find the nodes.
    pub(super) places: Arc<Vec<Place>>,
    /// What could not be brought back, as it was printed.
    pub(super) lost: Vec<String>,
    operator: Home,
    /// The folders of nodes that are gone for good.
    gone: Vec<Home>,
}

/// Twice as long as what is reserved ahead. With whole minutes, every fence would hold everybody up for longer than one.
const LONG_TICK: &str = "20s";

/// What started nodes are told.
fn configuration(endpoints: &[String]) -> String {
    let tables: Vec<_> = formats()
        .into_iter()
        .filter_map(|format| FORMATS[format].table())
        .collect();
    let tables = tables
        .concat()
        .replace("tick = \"60s\"", &format!("tick = \"{LONG_TICK}\""));
    format!(
        "storage.engine = 'etcd'\nstorage.window = '10s'\netcd.endpoints = {endpoints:?}\nworker.slots = {SLOTS}\n\
         mint.batch_max = 100000\nclock.max_ahead = '{LONG_TICK}'\n{tables}"
    )
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

    /// Changes its way to etcd, and says how much came of what that was before.
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
    /// A fleet that was founded by a node whose clock is 400 days ahead, which has minted and is gone: `mint` is told where it is.
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
        let operator = Home::new();
        drop(operator.serve_with(&configuration(&etcd.endpoints())));
        let mut fleet = Fleet {
            etcd,
            nodes,
            places,
            lost: Vec::new(),
            operator,
            gone: vec![founder.home],
        };
        fleet.fence();
        fleet.wait_for_slots();
        fleet
    }

    pub(super) fn kill(&mut self, node: usize) {
        self.nodes[node].service.take().expect("it runs").kill();
    }

    pub(super) fn start(&mut self, node: usize) {
        self.nodes[node].start(&[]);
        self.places[node].move_to(self.nodes[node].service().address());
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

    /// Waits until each node has renewed its slot twice.
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

    /// Waits until each of these nodes refuses what etcd tells it.
    pub(super) fn wait_until_noticed(&self, nodes: impl Iterator<Item = usize>) {
        for node in nodes {
            until_within(LONG, "it notices", || {
                is_regressed(self.nodes[node].service())
            });
        }
    }

    /// Copies what etcd has.
    pub(super) fn save(&self, name: &str) -> PathBuf {
        let kept = self.operator.path(name);
        fs::rename(self.etcd.save(), &kept).expect("both are temporary");
        kept
    }

    /// Fences by the book: with the journals of all, and what nodes knew that do not run. Returns how many events came back.
    pub(super) fn fence(&mut self) -> u64 {
        let journals = self
            .nodes
            .iter()
            .map(|node| ("--journal", node.home.data_dir().join("journal-default")));
        let down = self
            .nodes
            .iter()
            .filter(|node| node.service.is_none())
            .map(Node::high_water);
        let known = down
            .chain(self.gone.iter().map(high_water))
            .filter(|file| file.exists());
        let files = journals.chain(known.map(|file| ("--high-water", file)));
        let ended = fence_restore(&self.operator.path("idmint.toml"), files);
        let out = &ended.out;
        println!("{out}{}", ended.err);
        // The callers are heard first whether they were told of it.
        let lost: Vec<String> = out
            .lines()
            .filter(|line| line.starts_with("lost:"))
            .map(str::to_owned)
            .collect();
        ended.assert(if lost.is_empty() { 0 } else { 65 }, &[]);
        self.lost.extend(lost);
        let events = out
            .split_once(" files of journals ")
            .and_then(|(_, rest)| rest.split_once(" events"));
        events.map_or(0, |(events, _)| events.parse().expect("a number"))
    }

    /// A node that knows nothing founds a fleet by a clock that is so far ahead, and is gone.
    pub(super) fn have_strangers_found(&mut self, ahead_s: i64) {
        let mut stranger = Node::new(&self.etcd, ahead_s);
        stranger.start(&[]);
        // One whose founding was done and not answered says nothing of it.
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
