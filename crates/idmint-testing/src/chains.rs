//! The chains of events in the test vectors, in the form in which callers send them: each line is
//! one event that includes its id.

use serde_json::Value;

use crate::cases::{file, rows};

/// A chain of events, and the expected result of checking it.
#[derive(Debug)]
pub struct Chain {
    pub name: String,
    /// The ledger to which all ids of the chain belong.
    pub ledger: String,
    pub lines: Vec<String>,
    /// The last id of the chain if the chain is valid. Otherwise, the index of the first invalid
    /// event and the reason why it is invalid.
    pub outcome: Result<String, (u64, String)>,
}

/// Returns all chains of events in the test vectors, the valid ones first.
pub fn chains() -> Vec<Chain> {
    let vectors = file("evently");
    let valid = rows(&vectors["chains"]).iter().map(|chain| {
        let events = rows(&chain["events"]).iter();
        let (bodies, ids): (Vec<_>, Vec<_>) = events
            .map(|event| (&event["event_json"], &event["event_id"]))
            .unzip();
        chain_of(
            chain,
            &bodies,
            &ids,
            Ok(text(ids[ids.len() - 1]).to_owned()),
        )
    });
    let broken = rows(&vectors["invalid"])
        .iter()
        .filter(|row| row["operation"] == "verify_chain")
        .map(|row| {
            let list = |name: &str| rows(&row["input"][name]).iter().collect::<Vec<_>>();
            let outcome = Err((
                row["index"].as_u64().expect("a place"),
                text(&row["reason"]).to_owned(),
            ));
            chain_of(row, &list("events"), &list("event_ids"), outcome)
        });
    valid.chain(broken).collect()
}

fn chain_of(
    row: &Value,
    bodies: &[&Value],
    ids: &[&Value],
    outcome: Result<String, (u64, String)>,
) -> Chain {
    let lines = bodies
        .iter()
        .zip(ids)
        .map(|(body, id)| line(text(body), text(id)))
        .collect();
    Chain {
        name: text(&row["name"]).to_owned(),
        ledger: text(ids[0])[24..].to_owned(),
        lines,
        outcome,
    }
}

/// Returns an event as one line, with its id as a member. Line breaks outside of strings are
/// replaced by spaces, which have the same meaning.
pub fn line(body: &str, id: &str) -> String {
    let (head, last) = body.rsplit_once('}').expect("an object");
    format!("{head},\"eventId\":\"{id}\"}}{last}").replace(['\n', '\r'], " ")
}

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} should be a text"))
}
