//! Tests the plans of appends, and every reason to refuse an append.

use serde_json::Value;

use super::*;
use crate::ledger::append::KeyHash;

const NOW: u64 = 1_800_000_000_000_000;

fn at(micros: u64) -> EventTime {
    EventTime::from_micros(micros).expect("in range")
}

/// Returns an event with this name and additional members.
fn event(name: &str, more: &str) -> Event {
    Event::from_json(format!(r#"{{"event":"{name}","entities":{{}}{more}}}"#).as_bytes())
        .expect("an event")
}

fn with_time(name: &str, micros: u64) -> Event {
    event(name, &format!(r#","timestamp":"{}""#, at(micros)))
}

fn mark(key: u128) -> RequestMark {
    RequestMark {
        key: KeyHash(key),
        digest: [7; 32],
    }
}

fn create(genesis: Event) -> LedgerRequest {
    LedgerRequest::Create {
        genesis,
        mark: Some(mark(1)),
        import: None,
    }
}

fn append(
    ledger: LedgerId,
    events: Vec<Event>,
    expected_previous: Option<EventId>,
) -> LedgerRequest {
    LedgerRequest::Append {
        ledger,
        events,
        expected_previous,
        mark: mark(2),
        import: None,
    }
}

fn plan(request: &LedgerRequest, head: Option<Head>, now: u64) -> AppendPlan {
    AppendPlan::make(request, head, at(now)).expect("nothing speaks against it")
}

fn refuse(request: &LedgerRequest, head: Option<Head>, now: u64) -> AppendRefusal {
    AppendPlan::make(request, head, at(now)).expect_err("something speaks against it")
}

/// Returns the head of a ledger with a single event, which was recorded at `micros` microseconds.
fn head_at(micros: u64) -> Head {
    plan(&create(with_time("genesis", micros)), None, micros).head()
}

/// Returns the reason why the event at `index` of the request is refused.
fn place_error(request: &LedgerRequest, head: Head, index: usize) -> PlaceError {
    match refuse(request, Some(head), NOW) {
        AppendRefusal::Event {
            index: found,
            error,
        } if found == index => error,
        other => panic!("{other:?}"),
    }
}

fn times(plan: &AppendPlan) -> Vec<u64> {
    plan.links()
        .map(|link| link.id.timestamp().micros())
        .collect()
}

#[test]
fn a_ledger_begins_once() {
    let request = create(with_time("genesis", NOW - 5));
    let plan = plan(&request, None, NOW);
    assert_eq!(
        (plan.before, plan.first_place(), plan.recorded),
        (None, 1, at(NOW))
    );
    assert_eq!((plan.mark, times(&plan)), (Some(mark(1)), vec![NOW - 5]));
    assert_eq!(
        plan.previous(),
        EventId::before_genesis(at(NOW - 5), plan.ledger())
    );
    assert_eq!(request.ledger_at(at(NOW)), plan.ledger());

    let head = plan.head();
    assert_eq!(
        head,
        Head {
            id: plan.entries[0].id,
            place: 1,
            recorded: at(NOW),
            is_importing: false
        }
    );
    assert_eq!(
        refuse(&request, Some(head), NOW),
        AppendRefusal::LedgerExists(head)
    );
}

#[test]
fn a_genesis_without_a_time_begins_now() {
    let request = create(event("genesis", ""));
    assert!(
        request.ledger_depends_on_time()
            && !create(with_time("genesis", 5)).ledger_depends_on_time()
    );
    let [one, other] = [NOW, NOW + 1].map(|now| plan(&request, None, now));
    assert_eq!((times(&one), times(&other)), (vec![NOW], vec![NOW + 1]));
    assert_ne!(one.ledger(), other.ledger());
    assert_eq!(request.ledger_at(at(NOW + 1)), other.ledger());
}

#[test]
fn a_ledger_that_is_not_there_takes_nothing() {
    let ledger = head_at(5).id.ledger();
    let request = append(ledger, vec![event("a", "")], None);
    assert_eq!(
        refuse(&request, None, NOW),
        AppendRefusal::UnknownLedger(ledger)
    );
}

#[test]
fn a_head_that_was_not_expected_is_named() {
    let (head, other) = (head_at(5), head_at(6));
    let request = append(head.id.ledger(), vec![event("a", "")], Some(other.id));
    assert_eq!(
        refuse(&request, Some(head), NOW),
        AppendRefusal::HeadMoved {
            expected: other.id,
            head
        }
    );
    let request = append(head.id.ledger(), vec![event("a", "")], Some(head.id));
    assert_eq!(plan(&request, Some(head), NOW).before, Some(head));
}

#[test]
fn between_the_parts_of_an_import_nothing_else_is_appended() {
    let part = |import, micros| LedgerRequest::Create {
        genesis: with_time("genesis", micros),
        mark: None,
        import,
    };
    let head = plan(&part(Some(ImportPart::More), 5), None, NOW).head();
    assert!(head.is_importing);
    let ledger = head.id.ledger();
    let request = |import| LedgerRequest::Append {
        ledger,
        events: vec![event("a", "")],
        expected_previous: None,
        mark: mark(2),
        import,
    };
    assert_eq!(
        refuse(&request(None), Some(head), NOW),
        AppendRefusal::LedgerImporting(head)
    );
    assert!(
        plan(&request(Some(ImportPart::More)), Some(head), NOW)
            .head()
            .is_importing
    );
    let whole = plan(&request(Some(ImportPart::Last)), Some(head), NOW).head();
    assert!(!whole.is_importing && !plan(&request(None), Some(whole), NOW).head().is_importing);
    assert!(
        !plan(&part(Some(ImportPart::Last), 5), None, NOW)
            .head()
            .is_importing
    );
    let further = request(Some(ImportPart::Further));
    assert!(
        plan(&further, Some(head), NOW).head().is_importing,
        "it goes on with an import"
    );
    assert_eq!(
        refuse(&further, Some(whole), NOW),
        AppendRefusal::ImportNotBegun(whole),
        "and begins none"
    );
    assert!(
        plan(&request(Some(ImportPart::More)), Some(whole), NOW)
            .head()
            .is_importing
    );
}

#[test]
fn a_time_must_be_above_the_one_before() {
    let head = head_at(NOW - 100);
    let request = |times: &[u64]| {
        append(
            head.id.ledger(),
            times.iter().map(|micros| with_time("a", *micros)).collect(),
            None,
        )
    };
    for (times, index, last) in [
        (&[NOW - 100][..], 0, NOW - 100),
        (&[NOW - 101], 0, NOW - 100),
        (&[NOW - 9, NOW - 8, NOW - 8], 2, NOW - 8),
    ] {
        let timestamp = at(times[index]);
        let error = place_error(&request(times), head, index);
        assert_eq!(
            error,
            PlaceError::NotMonotonic {
                timestamp,
                last: at(last)
            }
        );
        assert_eq!(error.code(), "not_monotonic");
    }
    assert_eq!(
        times(&plan(&request(&[NOW - 99, NOW - 98]), Some(head), NOW)),
        [NOW - 99, NOW - 98]
    );
}

#[test]
fn a_time_is_at_most_five_seconds_ahead_of_the_clock() {
    let (head, most) = (head_at(5), NOW + 5_000_000);
    let request = |micros| {
        append(
            head.id.ledger(),
            vec![event("a", ""), with_time("b", micros)],
            None,
        )
    };
    assert_eq!(times(&plan(&request(most), Some(head), NOW)), [NOW, most]);
    let error = place_error(&request(most + 1), head, 1);
    assert_eq!(
        error,
        PlaceError::Ahead {
            timestamp: at(most + 1),
            most: at(most)
        }
    );
    assert_eq!(error.code(), "out_of_range");
    // Also check the first event of a ledger, whose timestamp must not be too far ahead of the
    // clock either.
    let request = create(with_time("genesis", most + 1));
    assert!(matches!(
        refuse(&request, None, NOW),
        AppendRefusal::Event {
            index: 0,
            error: PlaceError::Ahead { .. }
        }
    ));
}

#[test]
fn nothing_follows_the_last_time_there_is() {
    let last = u64::MAX >> 1;
    let genesis = head_at(5);
    let head = Head {
        id: EventId::before_genesis(at(last), genesis.id.ledger()),
        ..genesis
    };
    let error = place_error(
        &append(head.id.ledger(), vec![event("a", "")], None),
        head,
        0,
    );
    assert_eq!((error, error.code()), (PlaceError::TimeEnded, "overflow"));
    // The last allowed time is five seconds ahead of the clock. Computing it near the last possible
    // time must not overflow.
    let request = append(genesis.id.ledger(), vec![event("a", "")], None);
    assert_eq!(times(&plan(&request, Some(genesis), last)), [last]);
}

#[test]
fn an_event_that_names_an_id_gets_that_one_or_none() {
    let head = head_at(NOW - 100);
    let ledger = head.id.ledger();
    let right = plan(
        &append(ledger, vec![with_time("a", NOW)], None),
        Some(head),
        NOW,
    )
    .head()
    .id;
    let naming = |id: EventId| {
        let named = event(
            "a",
            &format!(r#","timestamp":"{}","eventId":"{id}""#, at(NOW)),
        );
        append(ledger, vec![named], None)
    };
    assert_eq!(plan(&naming(right), Some(head), NOW).head().id, right);

    let other_ledger = LedgerId::from_bits(ledger.bits() ^ 4).expect("version 00");
    for (named, code) in [
        (
            EventId::of_parts(right.timestamp(), right.checksum(), other_ledger),
            "ledger_mismatch",
        ),
        (
            EventId::of_parts(at(NOW - 1), right.checksum(), ledger),
            "timestamp_mismatch",
        ),
        (
            EventId::of_parts(right.timestamp(), right.checksum() ^ 1, ledger),
            "checksum_mismatch",
        ),
    ] {
        let error = place_error(&naming(named), head, 0);
        assert_eq!(
            (error, error.code()),
            (PlaceError::OtherId { named, gets: right }, code)
        );
    }
}

#[test]
fn every_published_time_after_the_last_is_plan() {
    let vectors: Value =
        serde_json::from_str(include_str!("../../../../../tests/vectors/evently.json"))
            .expect("the vectors are JSON");
    let rows = vectors["monotonic"].as_array().expect("rows");
    for row in rows {
        let micros = |name: &str| {
            row[name]
                .as_str()
                .expect("digits")
                .parse::<u64>()
                .expect("a number")
        };
        let (last, now) = (micros("last_us"), micros("now_us"));
        let head = head_at(last);
        let plan = plan(
            &append(head.id.ledger(), vec![event("a", "")], None),
            Some(head),
            now,
        );
        assert_eq!(times(&plan), [micros("issued_us")], "{row}");
        assert_eq!(
            plan.recorded,
            at(last.max(now)),
            "what is recorded never goes back: {row}"
        );
    }
    assert_eq!(rows.len(), 8);
}

#[test]
fn events_with_and_without_a_time_stand_in_one_chain() {
    let head = head_at(NOW - 10);
    let events = vec![
        with_time("a", NOW - 4),
        event("b", ""),
        event("c", ""),
        with_time("d", NOW + 50),
        event("e", ""),
        with_time("f", NOW + 52),
    ];
    let plan = plan(
        &append(head.id.ledger(), events.clone(), Some(head.id)),
        Some(head),
        NOW,
    );
    assert_eq!(
        times(&plan),
        [NOW - 4, NOW, NOW + 1, NOW + 50, NOW + 51, NOW + 52]
    );
    assert_eq!(
        (plan.first_place(), plan.head().place, plan.mark),
        (2, 7, Some(mark(2)))
    );

    // Recompute the id of each event from the event and the previous id, as a checker of the chain
    // does.
    let mut previous = head.id;
    for (link, (place, event)) in plan.links().zip((2..).zip(&events)) {
        let id = event.seal(link.id.timestamp(), head.id.ledger(), previous);
        assert_eq!(
            link,
            Link {
                id,
                previous,
                place
            }
        );
        previous = id;
    }
    assert_eq!(plan.head().id, previous);
}

#[test]
fn the_same_event_at_another_place_has_another_id_and_the_digest_of_its_time() {
    let head = head_at(NOW - 10);
    let plan = plan(
        &append(head.id.ledger(), vec![event("a", ""), event("a", "")], None),
        Some(head),
        NOW,
    );
    assert_ne!(plan.entries[0].id.checksum(), plan.entries[1].id.checksum());
    for (entry, micros) in plan.entries.iter().zip([NOW, NOW + 1]) {
        let message = format!("a{{}}nullnull{micros:016x}");
        assert_eq!(entry.digest[..], Sha256::digest(message)[..]);
    }
}

#[test]
fn a_key_belongs_to_its_ledger() {
    let [one, other] = [5, 6].map(|micros| head_at(micros).id.ledger());
    let keys = [Some(one), Some(other), None].map(|ledger| KeyHash::of(ledger, "key"));
    assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
    assert_ne!(keys[0], KeyHash::of(Some(one), "key "));
    assert_eq!(keys[0], KeyHash::of(Some(one), "key"));
}

#[test]
#[should_panic(expected = "a request has at least one event")]
fn a_request_without_events_is_a_bug_and_panics() {
    let head = head_at(5);
    let _ = AppendPlan::make(
        &append(head.id.ledger(), Vec::new(), None),
        Some(head),
        at(NOW),
    );
}
