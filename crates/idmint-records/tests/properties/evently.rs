//! Checks idmint against all of Evently's vectors except those for the encoding of ids. The vectors
//! cover checksums, numbers, canonical JSON, times and chains.

use std::collections::BTreeMap;

use idmint_records::ledger::{
    ChainChecker, ChainLines, Event, EventId, EventTime, LedgerId, canonical_json,
};
use serde_json::{Value, json};

use idmint_testing::cases::{file, rows};
use idmint_testing::chain_with_keys::WITH_KEYS;
use idmint_testing::chains::{chains, line};

const SOME_ID: &str = "0005cd7556b05092aecc815daa77f99c";

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} should be a text"))
}

fn time(micros: &Value) -> EventTime {
    EventTime::from_micros(text(micros).parse().unwrap()).unwrap()
}

#[test]
fn every_checksum_comes_out() {
    let vectors = file("evently");
    for row in rows(&vectors["crc32c"]) {
        let bytes = data_encoding::HEXLOWER
            .decode(text(&row["input_hex"]).as_bytes())
            .unwrap();
        assert_eq!(
            format!("{:08x}", crc32c::crc32c(&bytes)),
            text(&row["crc32c"]),
            "{row}"
        );
    }
    assert_eq!(rows(&vectors["crc32c"]).len(), 12);
}

#[test]
fn every_number_is_printed_as_published() {
    let vectors = file("evently");
    for row in rows(&vectors["numbers"]) {
        assert_eq!(
            canonical_json(text(&row["token"]).as_bytes()).as_deref(),
            Ok(text(&row["canonical"])),
            "{row}"
        );
    }
    assert_eq!(rows(&vectors["numbers"]).len(), 40);
}

#[test]
fn every_text_becomes_its_canonical_form_and_keeps_it() {
    let vectors = file("evently");
    for row in rows(&vectors["canonical_json"]) {
        let canonical = text(&row["canonical"]);
        assert_eq!(
            canonical_json(text(&row["json"]).as_bytes()).as_deref(),
            Ok(canonical),
            "{row}"
        );
        assert_eq!(
            canonical_json(canonical.as_bytes()).as_deref(),
            Ok(canonical),
            "{row}"
        );
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
        assert_eq!(
            previous.to_string(),
            text(&chain["genesis_previous_event_id"])
        );

        for row in rows(&chain["events"]) {
            let event = Event::from_json(text(&row["event_json"]).as_bytes()).unwrap();
            let canonical = &row["canonical"];
            let content = ["name", "entities", "meta", "data"]
                .map(|part| text(&canonical[part]))
                .concat();
            assert_eq!(
                std::str::from_utf8(event.content()),
                Ok(content.as_str()),
                "{row}"
            );
            let event_time = event.timestamp().unwrap();
            assert_eq!(event_time, time(&row["timestamp_us"]), "{row}");
            assert_eq!(
                format!("{:016x}", event_time.micros()),
                text(&canonical["timestamp_hex"]),
                "{row}"
            );
            assert_eq!(
                previous.to_string(),
                text(&row["previous_event_id"]),
                "{row}"
            );
            let id = event.seal(event_time, ledger, previous);
            assert_eq!(
                format!("{:08x}", id.checksum()),
                text(&row["checksum"]),
                "{row}"
            );
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
    for reading in [
        "ledger_id_from_steps_1_to_4_without_timestamp",
        "ledger_id_without_version_mask",
    ] {
        assert_ne!(ledger.to_string(), text(&rejected[reading]), "{reading}");
    }
    let without_time = format!("{:08x}", crc32c::crc32c(genesis.content()) & !3);
    assert_eq!(
        without_time,
        text(&rejected["ledger_id_from_steps_1_to_4_without_timestamp"])
    );
    assert_eq!(rejected.as_object().unwrap().len(), 2);
}

#[test]
fn every_chain_holds_from_its_first_event_and_from_any_other() {
    for chain in chains().into_iter().filter(|chain| chain.outcome.is_ok()) {
        let ids: Vec<_> = chain
            .lines
            .iter()
            .map(|line| Event::from_json(line.as_bytes()).unwrap().id().unwrap())
            .collect();
        for trusted in 0..=ids.len() {
            let after = trusted.checked_sub(1).map(|last| ids[last]);
            let mut checker = ChainChecker::new(ids[0].ledger(), after);
            for (line, id) in chain.lines.iter().zip(&ids).skip(trusted) {
                assert_eq!(checker.check(line.as_bytes()), Ok(*id));
            }
            assert_eq!(
                checker.events(),
                u64::try_from(ids.len() - trusted).unwrap()
            );
            assert_eq!(checker.head(), ids.last().copied());
        }
    }
}

#[test]
fn events_with_an_entity_and_a_key_are_checked_by_the_rules_of_their_time() {
    let ledger = LedgerId::from_text("e95bff80").unwrap();
    for mut checker in [
        ChainChecker::from_genesis(),
        ChainChecker::new(ledger, None),
    ] {
        for line in WITH_KEYS {
            checker.check(line.as_bytes()).unwrap();
        }
        assert_eq!(checker.ledger(), Some(ledger));
    }
    // This event of 2021 is from the middle of a ledger. Only the id of its previous event is
    // known.
    let measured = r#"{"event":"temperature-recorded","entity":"thermostat","key":"thermostat1","meta":{"causation":"1"},
        "data":{"celsius":18.5},"timestamp":"2021-11-16T03:30:47.430415Z","eventId":"0005d0df8d1e990f13658533a0f8f294"}"#;
    let before = EventId::from_text("0005d037167030998488b808a0f8f294").unwrap();
    ChainChecker::new(before.ledger(), Some(before))
        .check(measured.as_bytes())
        .unwrap();

    for (from, to, reason) in [
        ("first-event-key", "first-event-kez", "ledger_mismatch"),
        (
            "0005d5813bf9c4498e2a8b74",
            "0005d5813bf9c4498e2a8b75",
            "checksum_mismatch",
        ),
        ("17.275209Z", "17.275208Z", "timestamp_mismatch"),
        (r#""entity":"test","#, "", "missing_field"),
        (r#""key":"first-event-key","#, "", "missing_field"),
        (r#""entity":"test""#, r#""entity":["test"]"#, "wrong_type"),
        (
            r#""entity":"test""#,
            r#""entity":"test","entities":{}"#,
            "unknown_field",
        ),
        (
            r#""entity":"test""#,
            r#""entity":"test","entity":"test""#,
            "duplicate_key",
        ),
    ] {
        let changed = WITH_KEYS[0].replacen(from, to, 1);
        assert_ne!(changed, WITH_KEYS[0], "{from}");
        let error = ChainChecker::new(ledger, None)
            .check(changed.as_bytes())
            .expect_err(to);
        assert_eq!(error.reason.code(), reason, "{error}");
    }
    // Events with an entity and a key can be checked, but not appended.
    let refused = Event::from_json(WITH_KEYS[0].as_bytes()).expect_err("another form");
    assert_eq!(refused.rejection().code(), "unknown_field");
}

#[test]
fn every_chain_comes_out_as_published_whatever_its_pieces() {
    for chain in chains() {
        let text = chain.lines.join("\n");
        for piece_len in [1, 7, 100, text.len()] {
            let mut lines = ChainLines::new(ChainChecker::from_genesis());
            text.as_bytes()
                .chunks(piece_len)
                .for_each(|piece| lines.read(piece).unwrap());
            let verdict = lines.end();
            assert_eq!(verdict.events, u64::try_from(chain.lines.len()).unwrap());
            let outcome = match verdict.error {
                None => Ok(verdict.head.unwrap().to_string()),
                Some(error) => Err((error.index, error.reason.code().to_owned())),
            };
            assert_eq!(outcome, chain.outcome, "{}", chain.name);
        }
    }
}

/// Checks a chain. Returns the index and the reason of the first invalid event.
fn find_break(mut checker: ChainChecker, lines: &[String]) -> Option<(u64, &'static str)> {
    let error = lines
        .iter()
        .find_map(|line| checker.check(line.as_bytes()).err())?;
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
                assert_eq!(
                    Event::from_json(in_a_line.as_bytes()).unwrap_err().reason(),
                    reason,
                    "{row}"
                );
            }
            "canonicalize" => {
                let event = Event::from_json(text(input).as_bytes());
                // An event without a time is valid on its own, but its id cannot be checked.
                let refusal = match &event {
                    Ok(event) => event.timestamp().map_or("missing_field", |_| "none"),
                    Err(error) => error.reason(),
                };
                assert_eq!(refusal, reason, "{row}");
                let is_object = text(input).starts_with('{');
                let line = if is_object {
                    line(text(input), SOME_ID)
                } else {
                    text(input).to_owned()
                };
                assert_eq!(
                    find_break(ChainChecker::from_genesis(), &[line]),
                    Some((0, reason)),
                    "{row}"
                );
            }
            "verify_chain" => {}
            _ => panic!("{row}"),
        }
    }
    for chain in chains() {
        let ledger = LedgerId::from_text(&chain.ledger).unwrap();
        let expected = chain
            .outcome
            .as_ref()
            .err()
            .map(|(index, reason)| (*index, reason.as_str()));
        assert_eq!(
            find_break(ChainChecker::from_genesis(), &chain.lines),
            expected,
            "{}",
            chain.name
        );
        assert_eq!(
            find_break(ChainChecker::new(ledger, None), &chain.lines),
            expected,
            "{}",
            chain.name
        );
    }
    assert_eq!(
        counts,
        BTreeMap::from([("canonicalize", 35), ("parse_id", 16), ("verify_chain", 10)])
    );
}

#[test]
fn an_unreadable_id_is_said_before_an_unreadable_event() {
    let refused = |line: Value| {
        let error = ChainChecker::from_genesis()
            .check(line.to_string().as_bytes())
            .unwrap_err();
        (error.reason.code(), error.detail)
    };
    let (reason, detail) = refused(json!({ "event": 1, "entities": {}, "eventId": "AA" }));
    assert_eq!(
        (reason, detail.as_str()),
        (
            "wrong_length",
            "`eventId` is \"AA\", but must be 32 lower-case hexadecimal digits"
        )
    );
    assert_eq!(
        refused(json!({ "event": 1, "entities": {}, "eventId": 7 })).0,
        "wrong_type"
    );
    let (reason, detail) =
        refused(json!({ "event": "a", "entities": {}, "timestamp": "1970-01-01T00:00:00Z" }));
    assert_eq!(
        (reason, detail.as_str()),
        ("missing_field", "`eventId` is missing from the event")
    );
    let id = "00000000000000000000000000000000";
    let (reason, detail) = refused(json!({ "event": "a", "entities": {}, "eventId": id }));
    assert_eq!(
        (reason, detail.as_str()),
        ("missing_field", "`timestamp` is missing from the event")
    );
}
