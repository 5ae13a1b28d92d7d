//! Numbers of one series from three nodes, whoever is killed meanwhile.

use std::thread;
use std::time::Duration;

use super::etcd_cluster::EtcdCluster;
use super::lengths::short_or_whole;
use super::nodes::{starting_at, until_within};
use crate::numbering::{BLOCK_RULES, BlockCallers, Callers};
use crate::service::{Home, Service};

const CALLERS: usize = 12;
const BLOCK_CALLERS: usize = 3;
const SERIES: usize = 5;
const SLOTS: u32 = 8;
/// An election, and then some hundred transactions, on however slow a machine.
const LONG: Duration = Duration::from_secs(120);

#[test]
fn numbers_of_three_nodes_have_no_gap_while_nodes_and_members_are_killed() {
    let mut etcd = EtcdCluster::start(3);
    let homes: [Home; 3] = std::array::from_fn(|_| Home::new());
    let endpoints = etcd.endpoints();
    let node = |home| {
        let node = starting_at(home, &endpoints, SLOTS, BLOCK_RULES);
        node.wait_until_ready();
        node
    };
    let mut nodes: Vec<Service> = homes.iter().map(node).collect();
    let (callers, for_blocks) = (Callers::of(&nodes, SERIES), BlockCallers::of(&nodes));
    let go_on = || {
        let (least, least_blocks) = (callers.told() + 100, for_blocks.told() + 100);
        let have_more = || callers.told() >= least && for_blocks.told() >= least_blocks;
        until_within(LONG, "numbers are given", || have_more().then_some(()));
    };
    let rounds = short_or_whole(2, 10);
    thread::scope(|scope| {
        let _stop = (callers.stop_at_the_end(), for_blocks.stop_at_the_end());
        for caller in 0..CALLERS {
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
            nodes.remove(killed).kill();
            nodes.insert(killed, node(&homes[killed]));
            callers.move_place(killed, nodes[killed].address());
            for_blocks.move_place(killed, nodes[killed].address());
            go_on();
            etcd.kill(killed);
            go_on();
            etcd.restart(killed);
            // Its callers ask the others meanwhile.
            nodes[(round + 1) % 3].send(rustix::process::Signal::STOP);
            go_on();
            nodes[(round + 1) % 3].send(rustix::process::Signal::CONT);
        }
        go_on();
    });
    println!("{rounds} rounds, each with a node and a member of etcd killed, and a node that stood still");
    let total = callers.check(&nodes[0], CALLERS);
    let (in_blocks, _) = for_blocks.check();
    assert!(total > 500 && in_blocks > 5_000, "{total} and {in_blocks}");
}
