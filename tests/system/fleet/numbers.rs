//! Numbers of one series from three nodes, whoever is killed meanwhile.

use std::thread;

use super::etcd_cluster::EtcdCluster;
use super::lengths::short_or_whole;
use super::nodes::{node, until_within};
use crate::numbering::Callers;
use crate::service::{Home, Service};
use std::time::Duration;

const CALLERS: usize = 12;
const SERIES: usize = 5;
const SLOTS: u32 = 8;
/// An election, and then some hundred transactions, on however slow a machine.
const LONG: Duration = Duration::from_secs(120);

#[test]
fn numbers_of_three_nodes_have_no_gap_while_nodes_and_members_are_killed() {
    let mut etcd = EtcdCluster::start(3);
    let homes: [Home; 3] = std::array::from_fn(|_| Home::new());
    let mut nodes: Vec<Service> = homes.iter().map(|home| node(home, &etcd, SLOTS)).collect();
    let callers = Callers::of(&nodes, SERIES);
    let go_on = |callers: &Callers| {
        let least = callers.told() + 100;
        until_within(LONG, "numbers are given", || (callers.told() >= least).then_some(()));
    };
    let rounds = short_or_whole(2, 10);
    thread::scope(|scope| {
        let _stop = callers.stop_at_the_end();
        for caller in 0..CALLERS {
            let callers = &callers;
            scope.spawn(move || callers.ask(caller));
        }
        for round in 0..rounds {
            go_on(&callers);
            let killed = round % 3;
            nodes.remove(killed).kill();
            nodes.insert(killed, node(&homes[killed], &etcd, SLOTS));
            callers.move_place(killed, nodes[killed].address());
            go_on(&callers);
            etcd.kill(killed);
            go_on(&callers);
            etcd.restart(killed);
            // Its callers ask the others meanwhile.
            nodes[(round + 1) % 3].send(rustix::process::Signal::STOP);
            go_on(&callers);
            nodes[(round + 1) % 3].send(rustix::process::Signal::CONT);
        }
        go_on(&callers);
    });
    println!("{rounds} rounds, each with a node and a member of etcd killed, and a node that stood still");
    let total = callers.check(&nodes[0], CALLERS);
    assert!(total > 500, "{total}");
}
