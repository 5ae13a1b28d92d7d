//! Attackers that list ledgers whose appends have the maximum length.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::aim::{Aim, Deeds};
use super::ask::{self, Ask};
use super::door::Door;
use idmint_testing::http1::request;

pub(super) const LISTERS: usize = 8;
const LEDGERS: usize = 150;

/// The maximum number of events in one request, which is half a megabyte.
pub(super) const EVENTS: usize = 10_000;

/// The minimum length in bytes of the list of all ledgers, with about 200 bytes for each ledger.
pub(super) const ANSWER_LEN_MIN: usize = LEDGERS * 200;

/// Creates the ledgers that the attackers list.
pub(super) fn prepare(door: &Door) {
    fill(door, LEDGERS, EVENTS);
}

/// Creates `ledgers` ledgers, each with `events` events in addition to its first event.
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

/// Returns the request for the list of ledgers.
pub(super) fn list() -> Ask {
    Ask::get("/ledgers")
}

/// Returns the id of the first ledger in the list.
pub(super) fn any_ledger(door: &Door) -> String {
    let list = door.connect().exchange(list().http1()).json();
    list["ledgers"][0]["ledger"]
        .as_str()
        .expect("there is one")
        .to_owned()
}

/// Requests the list again as soon as the previous list has arrived.
pub(super) fn lists(aim: &Aim) -> JoinSet<()> {
    ask::again(aim, LISTERS, &list(), 1)
}

/// Returns `true` if the attackers received at least one list each, and enough bytes to contain
/// every ledger.
pub(super) fn are_whole(deeds: &Deeds) -> bool {
    let lists = deeds.of_status(200);
    lists >= LISTERS as u64 && deeds.received.get() >= lists * ANSWER_LEN_MIN as u64
}
