//! Checks ledgers. The service must reproduce every published chain, and a repeated request must
//! take effect only once.

use std::time::Duration;

use serde_json::{Value, json};

use crate::service::{NEW_YEAR, Service, ids_of, in_path};
use crate::support::{get_request, post_request};
use idmint_testing::cases::{file, rows};
use idmint_testing::http1::Answer;

pub(crate) const JSON: &str = "content-type: application/json\r\n";
const DAY: Duration = Duration::from_secs(24 * 3600);
const MICRO: Duration = Duration::from_micros(1);

/// Returns an event whose only data is this number.
pub(crate) fn event(number: usize) -> String {
    json!({ "event": "Counted", "entities": {}, "data": number }).to_string()
}

fn event_at(time: &str) -> String {
    json!({ "event": "Timed", "entities": {}, "timestamp": time }).to_string()
}

pub(crate) fn order<E: AsRef<str>>(ledger: &str, events: &[E]) -> String {
    let events: Vec<&str> = events.iter().map(AsRef::as_ref).collect();
    format!(r#"{{"ledger":"{ledger}","events":[{}]}}"#, events.join(","))
}

pub(crate) fn create_request(headers: &str, genesis: &str) -> String {
    post_request("/ledgers", &format!("{JSON}{headers}"), genesis)
}

pub(crate) fn append_request(key: &str, order: &str) -> String {
    post_request(
        "/ids/evently",
        &format!("{JSON}idempotency-key: {key}\r\n"),
        order,
    )
}

pub(crate) async fn append(service: &Service, key: &str, order: &str) -> Answer {
    service.exchange(&append_request(key, order)).await
}

/// Creates a ledger with [`event`] `number` as its first event. Returns the id of the ledger.
pub(crate) async fn ledger(service: &Service, number: usize) -> String {
    let answer = service
        .exchange(&create_request(
            &format!("idempotency-key: ledger-{number}\r\n"),
            &event(number),
        ))
        .await;
    assert_eq!(answer.status, 201, "{answer:?}");
    text(&answer.json()["ledger"]).to_owned()
}

pub(crate) fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} should be a text"))
}

/// Asserts that a response has this status, problem type and reason. Returns the problem document.
#[track_caller]
pub(crate) fn assert_problem(answer: &Answer, status: u16, slug: &str, reason: &str) -> Value {
    let problem = answer.json();
    let told = (
        answer.status,
        text(&problem["type"]),
        problem["reason"].as_str().unwrap_or_default(),
    );
    assert_eq!(
        told,
        (status, format!("/problems/{slug}").as_str(), reason),
        "{problem}"
    );
    problem
}

/// Asserts that the example in a refusal works.
pub(crate) async fn assert_example_works(service: &Service, problem: &Value) {
    let (request, body) = match text(&problem["example"]).split_once(" {") {
        Some((request, rest)) => (request, format!("{{{rest}")),
        None => (text(&problem["example"]), String::new()),
    };
    let (request, header) = request
        .split_once(" Idempotency-Key: ")
        .unwrap_or((request, ""));
    let (method, path) = request.split_once(' ').unwrap();
    let request = match method {
        "POST" => post_request(path, &format!("{JSON}idempotency-key: {header}\r\n"), &body),
        _ => get_request(path),
    };
    let request = if header.is_empty() {
        request.replace("idempotency-key: \r\n", "")
    } else {
        request
    };
    let answer = service.exchange(&request).await;
    assert!([200, 201].contains(&answer.status), "{problem}: {answer:?}");
}

/// Reads the chain of a ledger page by page, and returns all of its events.
pub(crate) async fn chain(service: &Service, ledger: &str) -> Vec<Value> {
    let (mut links, mut after) = (Vec::new(), String::new());
    loop {
        let page = service
            .get(&format!("/ledgers/{ledger}/ids{after}"))
            .await
            .json();
        assert_eq!(page["ledger"], ledger);
        links.extend_from_slice(page["ids"].as_array().unwrap());
        match &page["next"] {
            Value::Null => return links,
            next => after = format!("?after={}", text(next)),
        }
    }
}

#[tokio::test]
async fn every_published_chain_gets_its_published_ids() {
    for chain_vector in rows(&file("evently")["chains"]) {
        let published = rows(&chain_vector["events"]);
        let ledger = text(&chain_vector["ledger_id"]);
        let bodies: Vec<&str> = published
            .iter()
            .map(|row| text(&row["event_json"]))
            .collect();
        // Append the events of the chain one by one, and then all of them in one request.
        for at_once in [1, bodies.len()] {
            let service = Service::start("").await;
            let created = service.exchange(&create_request("", bodies[0])).await;
            assert_eq!(created.status, 201, "{created:?}");
            assert_eq!(
                created.header("location"),
                Some(format!("/ledgers/{ledger}").as_str())
            );
            assert_eq!(created.json()["genesis"], published[0]["event_id"]);
            for (number, events) in bodies[1..].chunks(at_once).enumerate() {
                let answer = append(
                    &service,
                    &format!("import-{number}"),
                    &order(ledger, events),
                )
                .await;
                assert_eq!(answer.status, 201, "{answer:?}");
                for (index, detail) in rows(&answer.json()["details"]).iter().enumerate() {
                    let row = &published[1 + number * at_once + index];
                    assert_eq!(
                        (&detail["id"], &detail["previous"]),
                        (&row["event_id"], &row["previous_event_id"])
                    );
                }
            }
            let links = chain(&service, ledger).await;
            assert_eq!(links.len(), published.len());
            for (place, (link, row)) in (1..).zip(links.iter().zip(published)) {
                let told = (
                    &link["id"],
                    &link["previous"],
                    link["place"].as_u64().unwrap(),
                );
                assert_eq!(told, (&row["event_id"], &row["previous_event_id"], place));
                let id = text(&link["id"]);
                assert_eq!(
                    service
                        .get(&format!("/ledgers/{ledger}/ids/{id}"))
                        .await
                        .json(),
                    *link
                );
            }
            let told = service.get(&format!("/ledgers/{ledger}")).await.json();
            let last = &published[published.len() - 1]["event_id"];
            assert_eq!(
                (&told["head"], &told["events"]),
                (last, &json!(published.len()))
            );
        }
    }
}

#[tokio::test]
async fn the_documented_first_event_begins_the_documented_ledger() {
    let service = Service::start("").await;
    let genesis = text(&file("evently")["chains"][0]["events"][0]["event_json"]).to_owned();
    let answer = service.exchange(&create_request("", &genesis)).await;
    assert_eq!(answer.status, 201);
    let id = "0005cd7556b05092aecc815daa77f99c";
    let time = "2021-10-03T16:32:12.816530Z";
    let ledger = json!({ "ledger": "aa77f99c", "events": 1, "genesis": id, "created": time, "head": id, "updated": time });
    assert_eq!(answer.json(), ledger);
    assert_eq!(service.get("/ledgers/aa77f99c").await.json(), ledger);
    assert_eq!(
        service.get("/ledgers").await.json(),
        json!({ "ledgers": [ledger], "next": null })
    );
    let again = service.exchange(&create_request("", &genesis)).await;
    let problem = assert_problem(&again, 409, "ledger-exists", "");
    assert_eq!(
        (&problem["ledger"], &problem["head"]),
        (&json!("aa77f99c"), &json!(id))
    );
}

#[tokio::test]
async fn everything_invalid_is_refused_with_its_published_reason() {
    let service = Service::start("").await;
    let ledger = ledger(&service, 0).await;
    for row in rows(&file("evently")["invalid"])
        .iter()
        .filter(|row| row["operation"] == "canonicalize")
    {
        let (body, reason) = (text(&row["input"]), text(&row["reason"]));
        let as_genesis = service.exchange(&create_request("", body)).await;
        let as_event = append(&service, "invalid", &order(&ledger, &[&event(1), body])).await;
        if body == r#"{"event":"x","entities":{}}"# {
            // This event lacks only a time. An append assigns the time, but creating a ledger needs
            // a time or an idempotency key.
            assert_problem(
                &as_genesis,
                400,
                "idempotency-key-required",
                "idempotency_key",
            );
            assert_eq!(
                append(&service, "no-time", &order(&ledger, &[body]))
                    .await
                    .status,
                201
            );
            continue;
        }
        let (status, slug) = if reason == "invalid_json" {
            (400, "malformed-request")
        } else {
            (422, "invalid-event")
        };
        let problem = assert_problem(&as_genesis, status, slug, reason);
        if status == 422 {
            assert_example_works(&service, &problem).await;
            let problem = assert_problem(&as_event, status, slug, reason);
            assert!(
                text(&problem["detail"]).starts_with("events[1]: "),
                "{problem}"
            );
            assert_example_works(&service, &problem).await;
        } else {
            // A text that is not JSON is refused before it is read as an event.
            let reason = text(&as_event.json()["reason"]).to_owned();
            assert!(
                ["invalid_json", "json_syntax"].contains(&reason.as_str()),
                "{as_event:?}"
            );
            assert_problem(&as_event, status, slug, &reason);
        }
        service.clock.advance(MICRO);
    }
    for row in rows(&file("evently")["invalid"])
        .iter()
        .filter(|row| row["operation"] == "parse_id")
    {
        let (id, reason) = (text(&row["input"]), text(&row["reason"]));
        let named = json!({ "event": "x", "entities": {}, "eventId": id }).to_string();
        let as_genesis = service
            .exchange(&create_request("idempotency-key: id\r\n", &named))
            .await;
        let expecting = json!({ "ledger": ledger, "events": [{ "event": "x", "entities": {} }], "expected_previous": id });
        for answer in [
            as_genesis,
            append(&service, "id", &order(&ledger, &[&named])).await,
        ] {
            assert_problem(&answer, 422, "invalid-event", reason);
        }
        for answer in [
            append(&service, "id", &expecting.to_string()).await,
            service
                .get(&format!("/ledgers/{ledger}/ids?after={}", in_path(id)))
                .await,
        ] {
            let problem = assert_problem(&answer, 422, "invalid-parameter", reason);
            assert_example_works(&service, &problem).await;
        }
    }
}

#[tokio::test]
async fn an_import_breaks_where_the_check_of_the_chain_does() {
    for chain in idmint_testing::chains::chains()
        .into_iter()
        .filter(|chain| chain.outcome.is_err())
    {
        let (index, reason) = chain.outcome.unwrap_err();
        let service = Service::start("").await;
        let genesis = service.exchange(&create_request("", &chain.lines[0])).await;
        if index == 0 {
            assert_problem(&genesis, 422, "invalid-event", &reason);
            continue;
        }
        assert_eq!(genesis.status, 201, "{}: {genesis:?}", chain.name);
        let ledger = text(&genesis.json()["ledger"]).to_owned();
        let answer = append(&service, "import", &order(&ledger, &chain.lines[1..])).await;
        let problem = assert_problem(&answer, 422, "invalid-event", &reason);
        assert!(
            text(&problem["detail"]).starts_with(&format!("events[{}]: ", index - 1)),
            "{}",
            chain.name
        );
        assert_eq!(
            service.get(&format!("/ledgers/{ledger}")).await.json()["events"],
            1,
            "all or none"
        );
    }
}

#[tokio::test]
async fn a_key_of_one_part_of_an_import_is_refused_for_another_part() {
    let service = Service::start("").await;
    let create = async |import: &str| {
        let headers = format!("{JSON}idempotency-key: genesis\r\n");
        let request = post_request(&format!("/ledgers{import}"), &headers, &event(0));
        service.exchange(&request).await
    };
    let created = create("?import=more").await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(create("?import=more").await.status, 200);
    for other in ["?import=last", ""] {
        assert_problem(
            &create(other).await,
            422,
            "idempotency-conflict",
            "idempotency_key",
        );
    }
    let ledger = text(&created.json()["ledger"]).to_owned();
    let append = async |import: &str| {
        let headers = format!("{JSON}idempotency-key: 1\r\n");
        let order = order(&ledger, &[event(1)]);
        let request = post_request(&format!("/ids/evently{import}"), &headers, &order);
        service.exchange(&request).await
    };
    assert_eq!(append("?import=more").await.status, 201);
    assert_eq!(append("?import=more").await.status, 200);
    for other in ["?import=last", ""] {
        assert_problem(
            &append(other).await,
            422,
            "idempotency-conflict",
            "idempotency_key",
        );
    }
}

#[tokio::test]
async fn two_spellings_of_one_event_are_one_request() {
    let service = Service::start("").await;
    let ledger = ledger(&service, 0).await;
    let vectors = file("evently");
    let pairs = |list: &str, encoding: &str| {
        let pair = |row: &Value| {
            (
                text(&row[encoding]).to_owned(),
                text(&row["canonical"]).to_owned(),
            )
        };
        rows(&vectors[list]).iter().map(pair).collect::<Vec<_>>()
    };
    let all = [pairs("numbers", "token"), pairs("canonical_json", "json")].concat();
    for (number, (one, other)) in all.iter().enumerate() {
        let one = format!(r#"{{"event":"x","entities":{{}},"data":{one}}}"#);
        let other =
            format!(r#"{{ "data" : {other}, "entities":{{}},"meta":null, "event":"\u0078" }}"#);
        let key = format!("encoding-{number}");
        let first = append(&service, &key, &order(&ledger, &[one])).await;
        let second = append(&service, &key, &order(&ledger, &[other])).await;
        assert_eq!(
            (first.status, second.status),
            (201, 200),
            "{first:?} {second:?}"
        );
        assert_eq!(first.json(), second.json());
    }
    assert_eq!(chain(&service, &ledger).await.len(), 1 + all.len());
}

#[tokio::test]
async fn an_event_gets_the_published_time_after_the_last() {
    let service = Service::start("").await;
    let mut done = 0;
    for row in rows(&file("evently")["monotonic"]) {
        let micros = |name: &str| text(&row[name]).parse::<i128>().unwrap();
        let ahead_us = micros("last_us") - micros("now_us");
        // Skip a row whose last event is more than 5 s ahead of the clock, because the service
        // refuses such an event.
        if ahead_us > 5_000_000 {
            continue;
        }
        // Shift the published times to the time of this service. The distances between them stay
        // the same.
        let at = |since_now_us: i128| {
            idmint_core::time::UnixTime::from_nanos(
                (i128::from(NEW_YEAR.get()) / 1_000 + since_now_us) * 1_000,
            )
            .to_text(6)
        };
        let genesis =
            json!({ "event": "Begun", "entities": {}, "timestamp": at(ahead_us), "data": done })
                .to_string();
        let ledger = text(&service.exchange(&create_request("", &genesis)).await.json()["ledger"])
            .to_owned();
        let answer = append(&service, "next", &order(&ledger, &[event(1)])).await;
        let expected = at(micros("issued_us") - micros("now_us"));
        assert_eq!(
            answer.json()["details"][0]["timestamp"].as_str(),
            expected.as_deref(),
            "{row}"
        );
        done += 1;
    }
    assert_eq!(done, 7);
}

#[tokio::test]
async fn what_is_asked_twice_is_done_once() {
    let service = Service::start("").await;
    let (one, other) = (ledger(&service, 1).await, ledger(&service, 2).await);
    let (single, several) = (vec![event(1)], vec![event(1), event(2), event(3)]);
    for (key, events) in [("single", &single), ("several", &several)] {
        let first = append(&service, key, &order(&one, events)).await;
        assert_eq!(
            (first.status, first.header("idempotency-replayed")),
            (201, None),
            "{first:?}"
        );
        for _ in 0..2 {
            let again = append(&service, key, &order(&one, events)).await;
            assert_eq!(
                (again.status, again.header("idempotency-replayed")),
                (200, Some("true")),
                "{again:?}"
            );
            assert_eq!(again.json(), first.json());
        }
        for wrong in [vec![event(9)], [events.as_slice(), &[event(9)]].concat()] {
            let conflict = append(&service, key, &order(&one, &wrong)).await;
            let problem = assert_problem(&conflict, 422, "idempotency-conflict", "idempotency_key");
            assert_example_works(&service, &problem).await;
        }
        // An idempotency key belongs to one ledger, so another ledger can use the same key.
        assert_eq!(
            append(&service, key, &order(&other, &[event(9)]))
                .await
                .status,
            201
        );
    }
    assert_eq!(
        service
            .metric(r#"idmint_ids_minted_total{format="evently"}"#)
            .await,
        2.0 + 4.0 + 2.0 + 1.0,
        "two ledgers begin with an event, and the example is one"
    );
}

#[tokio::test]
async fn a_ledger_is_created_once_with_a_key() {
    let service = Service::start("").await;
    let create = async |genesis: &str| {
        service
            .exchange(&create_request("idempotency-key: begin\r\n", genesis))
            .await
    };
    let first = create(&event(1)).await;
    assert_eq!(
        (first.status, first.header("idempotency-replayed")),
        (201, None)
    );
    service.clock.advance(DAY);
    let again = create(&event(1)).await;
    assert_eq!(
        (again.status, again.header("idempotency-replayed")),
        (200, Some("true"))
    );
    assert_eq!(
        (again.json(), again.header("location")),
        (first.json(), first.header("location"))
    );
    assert_problem(
        &create(&event(2)).await,
        422,
        "idempotency-conflict",
        "idempotency_key",
    );
    service.clock.advance(MICRO);
    assert_eq!(
        create(&event(1)).await.json(),
        first.json(),
        "known as long as it is kept"
    );
    let later = service
        .exchange(&create_request("idempotency-key: later\r\n", &event(1)))
        .await;
    assert_eq!(later.status, 201);
    assert_ne!(later.json()["ledger"], first.json()["ledger"]);

    // Create two ledgers with the same first event in the same microsecond. They must be different
    // ledgers, because their keys differ.
    let twin = service
        .exchange(&create_request("idempotency-key: twin\r\n", &event(1)))
        .await;
    assert_eq!(twin.status, 201, "{twin:?}");
    assert_ne!(twin.json()["ledger"], later.json()["ledger"]);
}

#[tokio::test]
async fn a_key_is_known_as_long_as_it_is_kept_whatever_the_clock_shows() {
    let service = Service::start("").await;
    let ledger = ledger(&service, 0).await;
    let order = order(&ledger, &[event(1)]);
    let first = ids_of(&append(&service, "daily", &order).await);
    for passed in [DAY, MICRO, DAY * 400] {
        service.clock.advance(passed);
        let again = append(&service, "daily", &order).await;
        assert_eq!(
            (again.status, ids_of(&again)),
            (200, first.clone()),
            "{passed:?} later"
        );
    }
}

#[tokio::test]
async fn a_key_has_1_to_255_visible_characters() {
    let service = Service::start("").await;
    let order = order(&ledger(&service, 0).await, &[event(1)]);
    let missing = service
        .exchange(&post_request("/ids/evently", JSON, &order))
        .await;
    assert_problem(&missing, 400, "idempotency-key-required", "idempotency_key");
    assert_problem(
        &service.exchange(&create_request("", &event(0))).await,
        400,
        "idempotency-key-required",
        "idempotency_key",
    );
    assert_eq!(append(&service, &"k".repeat(255), &order).await.status, 201);
    for key in ["k".repeat(256), String::new(), "two words".to_owned()] {
        assert_problem(
            &append(&service, &key, &order).await,
            400,
            "malformed-request",
            "idempotency_key",
        );
    }
    let twice = post_request(
        "/ids/evently",
        &format!("{JSON}idempotency-key: a\r\nidempotency-key: b\r\n"),
        &order,
    );
    assert_problem(
        &service.exchange(&twice).await,
        400,
        "malformed-request",
        "idempotency_key",
    );
}

#[tokio::test]
async fn an_append_that_expects_another_head_is_refused_and_told_the_head() {
    let service = Service::start("").await;
    let ledger = ledger(&service, 0).await;
    let expecting = |head: &str, number: usize| {
        format!(
            r#"{{"ledger":"{ledger}","expected_previous":"{head}","events":[{}]}}"#,
            event(number)
        )
    };
    let genesis = text(&chain(&service, &ledger).await[0]["id"]).to_owned();
    let first = append(&service, "1", &expecting(&genesis, 1)).await;
    assert_eq!(first.status, 201);
    let head = ids_of(&first).remove(0);
    let refused = append(&service, "2", &expecting(&genesis, 2)).await;
    assert_eq!(
        assert_problem(&refused, 409, "head-moved", "")["head"],
        json!(head)
    );
    // A repeated request is not a new append, so it succeeds even though the head (the last event)
    // has moved. The key of a refused request can be used again.
    assert_eq!(
        append(&service, "1", &expecting(&genesis, 1)).await.status,
        200
    );
    assert_eq!(
        append(&service, "2", &expecting(&head, 2)).await.status,
        201
    );
    let null = format!(
        r#"{{"ledger":"{ledger}","expected_previous":null,"events":[{}]}}"#,
        event(3)
    );
    assert_eq!(append(&service, "3", &null).await.status, 201);
}

#[tokio::test]
async fn a_time_is_above_the_last_and_at_most_5_s_ahead() {
    let service = Service::start("").await;
    let most = "2040-01-01T00:00:05.000000Z";
    let problem_of = async |answer: Answer, reason: &str, limit: &str| {
        let problem = assert_problem(&answer, 422, "invalid-event", reason);
        assert_eq!(problem["limit"], limit);
        assert_example_works(&service, &problem).await;
    };
    let ahead = event_at("2040-01-01T00:00:05.000001Z");
    problem_of(
        service.exchange(&create_request("", &ahead)).await,
        "out_of_range",
        most,
    )
    .await;
    let ledger = ledger(&service, 0).await;
    let append = async |key: &str, time: &str| {
        append(&service, key, &order(&ledger, &[event_at(time)])).await
    };
    problem_of(
        append("a", "2040-01-01T00:00:00Z").await,
        "not_monotonic",
        "above 2040-01-01T00:00:00.000000Z",
    )
    .await;
    problem_of(
        append("b", "2040-01-01T00:00:05.000001Z").await,
        "out_of_range",
        most,
    )
    .await;
    assert_eq!(append("c", "2040-01-01T00:00:05Z").await.status, 201);
    problem_of(
        append("d", "2040-01-01T00:00:05Z").await,
        "not_monotonic",
        &format!("above {most}"),
    )
    .await;
    let next = crate::ledgers::append(&service, "e", &order(&ledger, &[event(1)])).await;
    assert_eq!(
        next.json()["details"][0]["timestamp"],
        "2040-01-01T00:00:05.000001Z",
        "one after the last"
    );
    assert_eq!(
        service
            .exchange(&create_request("", &event_at(most)))
            .await
            .status,
        201
    );
}

#[tokio::test]
async fn an_id_that_an_event_names_must_be_the_one_it_gets() {
    let vectors = file("evently");
    let rows = rows(&vectors["chains"][1]["events"]);
    let named =
        |at: usize, id: &str| idmint_testing::chains::line(text(&rows[at]["event_json"]), id);
    let (first, second) = (text(&rows[0]["event_id"]), text(&rows[1]["event_id"]));
    let service = Service::start("").await;
    let refused = service
        .exchange(&create_request("", &named(0, second)))
        .await;
    assert_problem(&refused, 422, "invalid-event", "timestamp_mismatch");
    assert_eq!(
        service
            .exchange(&create_request("", &named(0, first)))
            .await
            .status,
        201
    );
    let changed = format!("{}0000000{}", &second[..16], &second[23..]);
    let foreign = format!("{}00000000", &second[..24]);
    for (id, reason) in [
        (first, "timestamp_mismatch"),
        (&changed, "checksum_mismatch"),
        (&foreign, "ledger_mismatch"),
    ] {
        let problem = assert_problem(
            &append(&service, "second", &order("aa77f99c", &[named(1, id)])).await,
            422,
            "invalid-event",
            reason,
        );
        let detail = text(&problem["detail"]);
        assert!(detail.contains(id) && detail.contains(second), "{detail}");
    }
    let answer = append(&service, "second", &order("aa77f99c", &[named(1, second)])).await;
    assert_eq!(ids_of(&answer), [second]);
}

#[tokio::test]
async fn an_event_has_256_kib_and_a_body_one_mib() {
    let service = Service::start("").await;
    let of_len = |len: usize| {
        let empty = r#"{"event":"","entities":{}}"#;
        format!(
            r#"{{"event":"{}","entities":{{}}}}"#,
            "e".repeat(len - empty.len())
        )
    };
    const EVENT_MAX: usize = 256 * 1024;
    let key = "idempotency-key: long\r\n";
    let too_long = service
        .exchange(&create_request(key, &of_len(EVENT_MAX + 1)))
        .await;
    assert_eq!(
        assert_problem(&too_long, 413, "payload-too-large", "")["limit"],
        "262144 bytes"
    );
    let created = service
        .exchange(&create_request(key, &of_len(EVENT_MAX)))
        .await;
    assert_eq!(created.status, 201, "{created:?}");
    let ledger = text(&created.json()["ledger"]).to_owned();
    let too_long = append(
        &service,
        "a",
        &order(&ledger, &[event(1), of_len(EVENT_MAX + 1)]),
    )
    .await;
    let problem = assert_problem(&too_long, 413, "payload-too-large", "");
    assert!(
        text(&problem["detail"]).starts_with("events[1]: "),
        "{problem}"
    );

    let three = order(&ledger, &vec![of_len(EVENT_MAX); 3]);
    let fill = |len: usize| format!("{three}{}", " ".repeat(len - three.len()));
    assert_eq!(append(&service, "b", &fill(1024 * 1024)).await.status, 201);
    let too_long = append(&service, "c", &fill(1024 * 1024 + 1)).await;
    assert_eq!(
        assert_problem(&too_long, 413, "payload-too-large", "")["limit"],
        "1048576 bytes"
    );
    assert_eq!(chain(&service, &ledger).await.len(), 4);
}

#[tokio::test]
async fn a_request_holds_at_most_ten_thousand_events() {
    let service = Service::start("").await;
    let ledger = ledger(&service, 0).await;
    let events = |count: usize| order(&ledger, &vec![r#"{"event":"a","entities":{}}"#; count]);
    let refused = append(&service, "key", &events(10_001)).await;
    let problem = assert_problem(&refused, 422, "invalid-event", "count");
    assert_eq!(problem["limit"], "10000");
    let answer = append(&service, "key", &events(10_000)).await;
    assert_eq!((answer.status, ids_of(&answer).len()), (201, 10_000));
    append(&service, "another key", &events(1)).await;
    let again = append(&service, "key", &events(10_000)).await;
    assert_eq!(
        (again.status, ids_of(&again)),
        (200, ids_of(&answer)),
        "the same ids, all of them"
    );
}

#[tokio::test]
async fn events_come_to_the_address_of_their_ledger_as_to_that_of_their_format() {
    let service = Service::start("").await;
    let ledger = ledger(&service, 1).await;
    let post = |ledger: &str, key: &str, body: &str| {
        post_request(
            &format!("/ledgers/{ledger}/events"),
            &format!("{JSON}idempotency-key: {key}\r\n"),
            body,
        )
    };
    let events = format!(r#"{{"events":[{}]}}"#, event(2));
    let first = service.exchange(&post(&ledger, "a", &events)).await;
    assert_eq!(first.status, 201, "{first:?}");
    // The idempotency key belongs to the ledger. The request can be repeated at another path of the
    // same ledger.
    let again = append(&service, "a", &order(&ledger, &[event(2)])).await;
    assert_eq!(
        (again.status, again.json()["ids"].take()),
        (200, first.json()["ids"].take()),
        "{again:?}"
    );
    let named = service
        .exchange(&post(&ledger, "b", &order(&ledger, &[event(3)])))
        .await;
    assert_eq!(named.status, 201, "{named:?}");
    let other = service
        .exchange(&post(&ledger, "c", &order("aa77f99c", &[event(4)])))
        .await;
    let problem = assert_problem(&other, 422, "invalid-event", "ledger");
    assert!(
        text(&problem["detail"]).contains("aa77f99c") && text(&problem["detail"]).contains(&ledger),
        "{problem}"
    );
    let unknown = service.exchange(&post("aa77f99c", "d", &events)).await;
    assert_eq!(unknown.status, 404, "{unknown:?}");
    let missing = append(&service, "e", &events).await;
    assert_problem(&missing, 422, "invalid-event", "ledger");
    let ids = service
        .exchange(&get_request(&format!("/ledgers/{ledger}/ids")))
        .await
        .json();
    assert_eq!(
        ids["ids"].as_array().map(Vec::len),
        Some(3),
        "nothing else was appended"
    );
}
