//! Orders of events and reports, for the tests of this folder.

use std::sync::Arc;

use crate::conjunction::{GroupRequest, GroupedMinter, PairOrder, Report, Sighting, Tca};
use crate::id::{FormatDefinition, PRESETS};
use crate::ledger::{
    AppendPlan, Event, EventId, EventTime, Head, KeyHash, LedgerId, LedgerRequest, RequestMark, digest_of,
};
use crate::time::UnixTime;

/// When most of it happens, in microseconds since 1970.
pub(super) const NOW: u64 = 1_800_000_000_000_000;

/// That many microseconds since 1970.
pub(super) fn at(micros: u64) -> EventTime {
    EventTime::from_micros(micros).expect("in range")
}

/// An event that says `name`.
pub(super) fn event(name: &str) -> Event {
    Event::from_json(format!(r#"{{"event":"{name}","entities":{{}}}}"#).as_bytes()).expect("an event")
}

fn mark(key: u128, events: &[Event]) -> RequestMark {
    RequestMark { key: KeyHash(key), digest: digest_of(events) }
}

/// A ledger that begins with the event `name`, under a key.
pub(super) fn create(name: &str, key: u128) -> LedgerRequest {
    let genesis = event(name);
    LedgerRequest::Create { mark: Some(mark(key, std::slice::from_ref(&genesis))), genesis }
}

/// Events at the end of a ledger, under a key.
pub(super) fn append(ledger: LedgerId, names: &[&str], key: u128) -> LedgerRequest {
    let events: Vec<Event> = names.iter().map(|name| event(name)).collect();
    LedgerRequest::Append { ledger, mark: mark(key, &events), events, expected_previous: None }
}

/// What becomes of an order at that time.
pub(super) fn plan(order: &LedgerRequest, head: Option<Head>, micros: u64) -> AppendPlan {
    AppendPlan::make(order, head, at(micros)).expect("nothing speaks against it")
}

/// An id that no test mints.
pub(super) fn absent(ledger: LedgerId) -> EventId {
    EventId::before_genesis(at(NOW + 77), ledger)
}

/// Reports of two objects, at these microseconds from a fixed instant.
pub(super) fn reports(deltas: &[i64], primary: u64, secondary: u64) -> GroupRequest {
    let preset = PRESETS.iter().find(|preset| preset.name == "conjunction").expect("a built-in format");
    let format = FormatDefinition::from_toml(preset.name, preset.toml).expect("parses").compile(preset.name);
    let minter = GroupedMinter::new(Arc::new(format.expect("is sound")), PairOrder::Reported);
    let sighting = |delta: &i64| {
        let tca = UnixTime::from(Tca(1_706_745_600_000_000 + delta));
        Sighting { report: Report::new(tca, primary, secondary).expect("two objects"), expected: None }
    };
    let sightings: Vec<Sighting> = deltas.iter().map(sighting).collect();
    GroupRequest::new(Arc::new(minter), &sightings).expect("each can have an id")
}
