//! The chains of the vectors as a caller sends them: one event a line, with its id among its members.

use serde_json::Value;

use crate::cases::{file, rows};

/// A chain as it is sent, and what comes out.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) name: String,
    /// The ledger that the ids of the chain name.
    pub(crate) ledger: String,
    pub(crate) lines: Vec<String>,
    /// The last id of a chain that holds; else the place of the first event that does not, and why.
    pub(crate) outcome: Result<String, (u64, String)>,
}

/// All chains of the vectors, those that hold first.
pub(crate) fn chains() -> Vec<Chain> {
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

/// An event with its id among its members, on one line: outside strings a line break means no more than a space.
pub(crate) fn line(body: &str, id: &str) -> String {
    let (head, last) = body.rsplit_once('}').expect("an object");
    format!("{head},\"eventId\":\"{id}\"}}{last}").replace(['\n', '\r'], " ")
}

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} should be a text"))
}
