//! `idmint fleet status` of real nodes on real members.

use serde_json::Value;

use super::etcd_cluster::EtcdCluster;
use super::nodes::node;
use crate::service::{Ended, Home, idmint, run};

const SLOTS: u32 = 4;

fn status(home: &Home, more: &[&str]) -> Ended {
    let config = home.path("idmint.toml");
    let mut command = idmint(&["fleet", "status", "--config", config.to_str().unwrap()]);
    command.args(more).env("IDMINT_STORAGE__DATA_DIR", home.data_dir());
    run(command)
}

/// The exit code must be `code`, and what was printed must say `words`.
#[track_caller]
fn assert_says(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!(ended.status.code(), Some(code), "{}\n{}", ended.out, ended.err);
    for word in words {
        assert!(ended.out.contains(word), "{word:?} is not in {}", ended.out);
    }
}

#[test]
fn it_says_who_holds_which_slot_and_what_is_wrong_with_the_members_and_with_another_region() {
    let mut etcd = EtcdCluster::start(3);
    let homes: [Home; 3] = std::array::from_fn(|_| Home::new());
    let _nodes = [0, 1].map(|number| node(&homes[number], &etcd, SLOTS));
    let well = status(&homes[0], &[]);
    println!("{}", well.out);
    assert_says(&well, 0, &["all is well", "clock ", "free    2 slots", "leads"]);
    let printed = status(&homes[0], &["--json"]);
    assert_says(&printed, 0, &["\"well\": true"]);
    let json: Value = serde_json::from_str(&printed.out).unwrap();
    let states: Vec<&str> =
        json["slots"].as_array().unwrap().iter().map(|slot| slot["state"].as_str().unwrap()).collect();
    assert_eq!(states.iter().filter(|state| **state == "held").count(), 2, "{states:?}");
    assert_eq!(json["members"].as_array().unwrap().len(), 3);

    let west = EtcdCluster::start(1);
    let _there = node(&homes[2], &west, SLOTS);
    let peer = west.endpoints().remove(0);
    assert_says(
        &status(&homes[0], &["--peer", &peer]),
        1,
        &["slots 0-3 belong to two regions", "do   stop the nodes of one"],
    );
    drop(west);
    assert_says(&status(&homes[0], &["--peer", &peer]), 1, &["cannot be asked"]);

    etcd.kill(2);
    assert_says(&status(&homes[0], &[]), 1, &["does not answer", "bring this one back"]);
    etcd.kill(1);
    status(&homes[0], &[]).assert(75, &["coordinator"]);
}
