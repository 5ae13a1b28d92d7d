//! Callers who list ledgers whose appends are as long as appends can be.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::aim::{Aim, Deeds};
use super::ask::{self, Ask};
use super::door::Door;
use crate::http1::request;

pub(super) const LISTERS: usize = 8;
const LEDGERS: usize = 150;

/// As many events as a request may have: half a megabyte.
const EVENTS: usize = 10_000;

/// The list of all ledgers is longer than this: some 200 bytes for each.
pub(super) const ANSWER_LEN_MIN: usize = LEDGERS * 200;

/// Gives the service its ledgers.
pub(super) fn prepare(door: &Door) {
    fill(door, LEDGERS, EVENTS);
}

/// So many ledgers with so many events each, behind the first.
pub(super) fn fill(door: &Door, ledgers: usize, events: usize) {
    let mut client = door.connect();
    let mut post = |target: &str, key: &str, body: &str| -> Value {
        let headers = format!("content-type: application/json\r\nidempotency-key: {key}\r\n");
        let answer = client.exchange(request(&format!("POST {target}"), &headers, body));
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()
    };
    let events = vec![r#"{"event":"Counted","entities":{}}"#; events].join(",");
    for number in 0..ledgers {
        let genesis = json!({ "event": "Begun", "entities": {}, "data": number });
        let ledger = post("/ledgers", &format!("begin-{number}"), &genesis.to_string());
        let ledger = ledger["ledger"].as_str().expect("it has an id");
        post(
            "/ids/evently",
            &format!("fill-{ledger}"),
            &format!(r#"{{"ledger":"{ledger}","events":[{events}]}}"#),
        );
    }
}

/// The request for the list.
pub(super) fn list() -> Ask {
    Ask::get("/ledgers")
}

/// The first ledger of the service behind this door.
pub(super) fn any_ledger(door: &Door) -> String {
    let list = door.connect().exchange(list().http1()).json();
    list["ledgers"][0]["ledger"]
        .as_str()
        .expect("there is one")
        .to_owned()
}

/// Each asks for the list again as soon as it has it.
pub(super) fn lists(aim: &Aim) -> JoinSet<()> {
    ask::again(aim, LISTERS, &list(), 1)
}

/// Whether every list that was sent named every ledger, and each lister had one.
pub(super) fn are_whole(deeds: &Deeds) -> bool {
    let lists = deeds.of_status(200);
    lists >= LISTERS as u64 && deeds.received.get() >= lists * ANSWER_LEN_MIN as u64
}
