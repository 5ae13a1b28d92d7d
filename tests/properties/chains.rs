//! Every vector of Evently beyond the spelling of ids: checksums, numbers, canonical JSON, times and chains.

use std::collections::BTreeMap;

use idmint::minting::{ChainChecker, Event, EventId, EventTime, LedgerId, canonical_json};
use serde_json::{Value, json};

use crate::cases::{file, rows};

const SOME_ID: &str = "0005cd7556b05092aecc815daa77f99c";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} should be a text"))
}

fn time(micros: &Value) -> EventTime {
    EventTime::from_micros(text(micros).parse().unwrap()).unwrap()
}

/// An event with its id among its members, on one line: outside strings a line break means no more than a space.
pub(crate) fn line(body: &str, id: &str) -> String {
    let (head, last) = body.rsplit_once('}').unwrap();
    format!("{head},\"eventId\":\"{id}\"}}{last}").replace(['\n', '\r'], " ")
}

/// The lines of a chain of the vectors, valid or not.
fn lines<'a>(bodies: impl Iterator<Item = &'a Value>, ids: impl Iterator<Item = &'a Value>) -> Vec<String> {
    bodies.zip(ids).map(|(body, id)| line(text(body), text(id))).collect()
}

fn lines_of(chain: &Value) -> Vec<String> {
    let events = rows(&chain["events"]);
    lines(events.iter().map(|event| &event["event_json"]), events.iter().map(|event| &event["event_id"]))
}

#[test]
fn every_checksum_comes_out() {
    let vectors = file("evently");
    for row in rows(&vectors["crc32c"]) {
        let bytes = data_encoding::HEXLOWER.decode(text(&row["input_hex"]).as_bytes()).unwrap();
        assert_eq!(format!("{:08x}", crc32c::crc32c(&bytes)), text(&row["crc32c"]), "{row}");
    }
    assert_eq!(rows(&vectors["crc32c"]).len(), 12);
}

#[test]
fn every_number_is_printed_as_published() {
    let vectors = file("evently");
    for row in rows(&vectors["numbers"]) {
        assert_eq!(canonical_json(text(&row["token"]).as_bytes()).as_deref(), Ok(text(&row["canonical"])), "{row}");
    }
    assert_eq!(rows(&vectors["numbers"]).len(), 40);
}

#[test]
fn every_text_becomes_its_canonical_form_and_keeps_it() {
    let vectors = file("evently");
    for row in rows(&vectors["canonical_json"]) {
        let canonical = text(&row["canonical"]);
        assert_eq!(canonical_json(text(&row["json"]).as_bytes()).as_deref(), Ok(canonical), "{row}");
        assert_eq!(canonical_json(canonical.as_bytes()).as_deref(), Ok(canonical), "{row}");
    }
    assert_eq!(rows(&vectors["canonical_json"]).len(), 10);
}

#[test]
fn every_event_gets_a_time_after_the_last() {
    let vectors = file("evently");
    for row in rows(&vectors["monotonic"]) {
        let minted = EventTime::after(Some(time(&row["last_us"])), time(&row["now_us"]));
        assert_eq!(minted, Some(time(&row["issued_us"])), "{row}");
    }
    assert_eq!(rows(&vectors["monotonic"]).len(), 8);
}

#[test]
fn every_chain_comes_out_with_every_value_on_the_way() {
    let vectors = file("evently");
    let mut events = 0;
    for chain in rows(&vectors["chains"]) {
        let ledger = LedgerId::from_text(text(&chain["ledger_id"])).unwrap();
        let first = &chain["events"][0];
        let genesis = Event::from_json(text(&first["event_json"]).as_bytes()).unwrap();
        let first_time = time(&first["timestamp_us"]);
        assert_eq!(LedgerId::of_genesis(&genesis, first_time), ledger);
        let mut previous = EventId::before_genesis(first_time, ledger);
        assert_eq!(previous.to_string(), text(&chain["genesis_previous_event_id"]));

        for row in rows(&chain["events"]) {
            let event = Event::from_json(text(&row["event_json"]).as_bytes()).unwrap();
            let canonical = &row["canonical"];
            let content = ["name", "entities", "meta", "data"].map(|part| text(&canonical[part])).concat();
            assert_eq!(std::str::from_utf8(event.content()), Ok(content.as_str()), "{row}");
            let event_time = event.timestamp().unwrap();
            assert_eq!(event_time, time(&row["timestamp_us"]), "{row}");
            assert_eq!(format!("{:016x}", event_time.micros()), text(&canonical["timestamp_hex"]), "{row}");
            assert_eq!(previous.to_string(), text(&row["previous_event_id"]), "{row}");
            let id = event.seal(event_time, ledger, previous);
            assert_eq!(format!("{:08x}", id.checksum()), text(&row["checksum"]), "{row}");
            assert_eq!(id.to_string(), text(&row["event_id"]), "{row}");
            assert_eq!((id.timestamp(), id.ledger()), (event_time, ledger), "{row}");
            previous = id;
            events += 1;
        }
    }
    assert_eq!((rows(&vectors["chains"]).len(), events), (4, 33));
}

#[test]
fn no_rejected_reading_comes_out() {
    let vectors = file("evently");
    let rejected = &vectors["chains"][0]["rejected_readings"];
    let first = &vectors["chains"][0]["events"][0];
    let genesis = Event::from_json(text(&first["event_json"]).as_bytes()).unwrap();
    let ledger = LedgerId::of_genesis(&genesis, time(&first["timestamp_us"]));
    for reading in ["ledger_id_from_steps_1_to_4_without_timestamp", "ledger_id_without_version_mask"] {
        assert_ne!(ledger.to_string(), text(&rejected[reading]), "{reading}");
    }
    let without_time = format!("{:08x}", crc32c::crc32c(genesis.content()) & !3);
    assert_eq!(without_time, text(&rejected["ledger_id_from_steps_1_to_4_without_timestamp"]));
    assert_eq!(rejected.as_object().unwrap().len(), 2);
}

#[test]
fn every_chain_holds_from_its_first_event_and_from_any_other() {
    let vectors = file("evently");
    for chain in rows(&vectors["chains"]) {
        let ledger = LedgerId::from_text(text(&chain["ledger_id"])).unwrap();
        let (lines, ids) = (lines_of(chain), rows(&chain["events"]));
        for trusted in 0..=lines.len() {
            let after = trusted.checked_sub(1).map(|last| EventId::from_text(text(&ids[last]["event_id"])).unwrap());
            let mut checker = ChainChecker::new(ledger, after);
            for (line, row) in lines.iter().zip(ids).skip(trusted) {
                assert_eq!(checker.check(line.as_bytes()).unwrap().to_string(), text(&row["event_id"]));
            }
            assert_eq!(checker.events(), u64::try_from(lines.len() - trusted).unwrap());
            let last = ids.last().map(|row| text(&row["event_id"]).to_owned());
            assert_eq!(checker.head().map(|id| id.to_string()), last);
        }
    }
}

/// The place and the reason at which a chain breaks.
fn broken_at(mut checker: ChainChecker, lines: &[String]) -> Option<(u64, &'static str)> {
    let error = lines.iter().find_map(|line| checker.check(line.as_bytes()).err())?;
    assert_eq!(error.index, checker.events());
    Some((error.index, error.reason.code()))
}

#[test]
fn everything_invalid_is_refused_with_its_reason() {
    let vectors = file("evently");
    let mut counts = BTreeMap::<_, usize>::new();
    for row in rows(&vectors["invalid"]) {
        let (operation, reason) = (text(&row["operation"]), text(&row["reason"]));
        *counts.entry(operation).or_default() += 1;
        let input = &row["input"];
        match operation {
            "parse_id" => {
                let refusal = EventId::from_text(text(input)).map_err(|rejection| rejection.code());
                assert_eq!(refusal, Err(reason), "{row}");
                let in_a_line = line(r#"{"event":"x","entities":{}}"#, text(input));
                assert_eq!(Event::from_json(in_a_line.as_bytes()).unwrap_err().reason(), reason, "{row}");
            }
            "canonicalize" => {
                let event = Event::from_json(text(input).as_bytes());
                // An event without a time is an event all the same, only not one whose id can be checked.
                let refusal = match &event {
                    Ok(event) => event.timestamp().map_or("missing_field", |_| "none"),
                    Err(error) => error.reason(),
                };
                assert_eq!(refusal, reason, "{row}");
                let is_object = text(input).starts_with('{');
                let line = if is_object { line(text(input), SOME_ID) } else { text(input).to_owned() };
                assert_eq!(broken_at(ChainChecker::from_genesis(), &[line]), Some((0, reason)), "{row}");
            }
            "verify_chain" => {
                let lines = lines(rows(&input["events"]).iter(), rows(&input["event_ids"]).iter());
                let expected = Some((row["index"].as_u64().unwrap(), reason));
                assert_eq!(broken_at(ChainChecker::from_genesis(), &lines), expected, "{row}");
                let ledger = LedgerId::from_text(&text(&input["event_ids"][0])[24..]).unwrap();
                assert_eq!(broken_at(ChainChecker::new(ledger, None), &lines), expected, "{row}");
            }
            _ => panic!("{row}"),
        }
    }
    assert_eq!(counts, BTreeMap::from([("canonicalize", 35), ("parse_id", 16), ("verify_chain", 10)]));
}

#[test]
fn an_unreadable_id_is_said_before_an_unreadable_event() {
    let refused = |line: Value| {
        let error = ChainChecker::from_genesis().check(line.to_string().as_bytes()).unwrap_err();
        (error.reason.code(), error.detail)
    };
    let (reason, detail) = refused(json!({ "event": 1, "entities": {}, "eventId": "AA" }));
    assert_eq!(
        (reason, detail.as_str()),
        ("wrong_length", "`eventId` is \"AA\", it must be 32 lower-case hexadecimal digits")
    );
    assert_eq!(refused(json!({ "event": 1, "entities": {}, "eventId": 7 })).0, "wrong_type");
    let (reason, detail) = refused(json!({ "event": "a", "entities": {}, "timestamp": "1970-01-01T00:00:00Z" }));
    assert_eq!((reason, detail.as_str()), ("missing_field", "`eventId` is missing from the event"));
    let id = "00000000000000000000000000000000";
    let (reason, detail) = refused(json!({ "event": "a", "entities": {}, "eventId": id }));
    assert_eq!((reason, detail.as_str()), ("missing_field", "`timestamp` is missing from the event"));
}
