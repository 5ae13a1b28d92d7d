//! Checks the numbers of one series that three nodes give, while nodes are killed, stopped and cut
//! off.

use std::thread;
use std::time::Duration;

use super::etcd_cluster::EtcdCluster;
use super::etcd_link::{EtcdLink, Weather};
use super::lengths::short_or_whole;
use super::nodes::{starting_at, until_within};
use crate::appending::NOWHERE;
use idmint_testing::numbering::{BLOCK_RULES, BlockCallers, Callers};
use idmint_testing::service::{Home, Service, Signal};

const BLOCK_CALLERS: usize = 3;
const SLOTS: u32 = 8;
/// The number of failures in a round. Numbers must be given after each of them.
const HAPPENINGS: usize = 4;
/// A timeout for an election and for the numbers before the next failure, even on a slow machine.
const LONG: Duration = Duration::from_secs(600);

/// A node that reaches each etcd member through a link, which the test can disturb.
struct Far {
    home: Home,
    links: Vec<EtcdLink>,
}

impl Far {
    fn from(etcd: &EtcdCluster) -> Far {
        Far {
            home: Home::new(),
            links: etcd
                .endpoints()
                .iter()
                .map(|endpoint| EtcdLink::to(endpoint))
                .collect(),
        }
    }

    fn start(&self) -> Service {
        let endpoints: Vec<String> = self.links.iter().map(EtcdLink::endpoint).collect();
        let service = starting_at(&self.home, &endpoints, SLOTS, BLOCK_RULES);
        service.wait_until_ready();
        service
    }

    fn turn(&self, weather: Weather) {
        self.links.iter().for_each(|link| link.turn(weather));
    }

    fn mishaps(&self) -> u64 {
        self.links.iter().map(EtcdLink::mishaps).sum()
    }
}

#[test]
fn numbers_of_three_nodes_have_no_gap_while_nodes_and_members_are_killed_and_cut_off() {
    let (wanted, series, count_max, caller_count, rounds) =
        short_or_whole((700, 5, 3, 12, 2), (1_000_000, 1_000, 10, 35, 6));
    let mut etcd = EtcdCluster::start(3);
    let places: [Far; 3] = std::array::from_fn(|_| Far::from(&etcd));
    let mut nodes: Vec<Service> = places.iter().map(Far::start).collect();
    let (callers, for_blocks) = (
        Callers::of(&nodes, series, count_max),
        BlockCallers::of(&nodes),
    );
    let least_at_once = wanted / (count_max / 2 + 1) / (rounds * HAPPENINGS + 1);
    let go_on = || {
        let (least, least_blocks) = (
            callers.told() + least_at_once,
            for_blocks.told() + least_at_once,
        );
        let have_more = || callers.told() >= least && for_blocks.told() >= least_blocks;
        until_within(LONG, "numbers are given", || have_more().then_some(()));
    };
    thread::scope(|scope| {
        let _stop = (
            callers.places.stop_at_the_end(),
            for_blocks.places.stop_at_the_end(),
        );
        for caller in 0..caller_count {
            let callers = &callers;
            scope.spawn(move || callers.ask(caller));
        }
        for caller in 0..BLOCK_CALLERS {
            let for_blocks = &for_blocks;
            scope.spawn(move || for_blocks.ask(caller));
        }
        for round in 0..rounds {
            go_on();
            let killed = round % 3;
            callers.places.move_place(killed, NOWHERE);
            for_blocks.places.move_place(killed, NOWHERE);
            nodes.remove(killed).kill();
            nodes.insert(killed, places[killed].start());
            callers.places.move_place(killed, nodes[killed].address());
            for_blocks
                .places
                .move_place(killed, nodes[killed].address());
            go_on();
            etcd.kill(killed);
            go_on();
            etcd.restart(killed);
            // While the node is stopped, its callers use the other nodes.
            let stopped = &nodes[(round + 1) % 3];
            stopped.send(Signal::STOP);
            go_on();
            stopped.send(Signal::CONT);
            let cut_off = &places[(round + 2) % 3];
            let mishaps = cut_off.mishaps();
            cut_off.turn([Weather::Silent, Weather::Cut, Weather::Stalled][round % 3]);
            go_on();
            assert!(cut_off.mishaps() > mishaps, "nothing was on the way");
            cut_off.turn(Weather::Clear);
        }
        go_on();
    });
    println!(
        "{rounds} rounds, each with a node and a member of etcd killed, a node that stood still, and one cut off"
    );
    let total = callers.check(&nodes[0], caller_count);
    let (in_blocks, _) = for_blocks.check();
    assert!(
        total > wanted as u64 * 2 / 3 && in_blocks > 5_000,
        "{total} and {in_blocks}"
    );
}
