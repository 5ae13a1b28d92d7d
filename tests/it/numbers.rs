//! Checks numbers without gaps. Each idempotency key gets its numbers only once. Numbers are
//! formatted as configured, voided, listed, decoded, and hidden from tokens of other series.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::ledgers::{assert_example_works, assert_problem, text};
use crate::service::Service;
use idmint_testing::http1::{Answer, request};

const RULES: &str = r#"
[numbers.invoice]
pattern = "acme-*"
text = "INV-{series}-{n:05}"
check = "luhn"

[numbers.ticket]
pattern = "ticket"
text = "T{n:03}"
check = "mod97"
start = 998
max = 1001
"#;

async fn give(service: &Service, series: &str, key: &str) -> Answer {
    service
        .exchange(&request(
            &format!("POST /numbers/{series}"),
            &format!("idempotency-key: {key}\r\n"),
            "",
        ))
        .await
}

async fn make_void(service: &Service, number: &str, reason: &str) -> Answer {
    let body = json!({ "reason": reason }).to_string();
    service
        .exchange(&request(&format!("POST /numbers/{number}/void"), "", &body))
        .await
}

/// Reads the listing of a series page by page, and returns all of its entries.
async fn listed(service: &Service, series: &str, limit: usize) -> Vec<Value> {
    let (mut numbers, mut after) = (Vec::new(), String::new());
    loop {
        let page = service
            .get(&format!("/numbers/{series}?limit={limit}{after}"))
            .await
            .json();
        assert_eq!(page["series"], series);
        assert!(page["numbers"].as_array().unwrap().len() <= limit);
        numbers.extend_from_slice(page["numbers"].as_array().unwrap());
        match &page["next"] {
            Value::Null => return numbers,
            next => after = format!("&after={}", text(next)),
        }
    }
}

#[tokio::test]
async fn a_key_is_given_one_number_and_always_the_same() {
    let service = Service::start(RULES).await;
    let first = give(&service, "acme-2026", "order-1").await;
    assert_eq!(
        (first.status, first.header("idmint-count")),
        (201, Some("1"))
    );
    let expected = json!({ "series": "acme-2026", "number": "1", "text": "INV-acme-2026-000012" });
    assert_eq!(first.json(), expected);
    let second = give(&service, "acme-2026", "order-2").await;
    assert_eq!(
        (second.status, second.json()["number"].clone()),
        (201, json!("2"))
    );
    // Another series has its own numbers, and its own idempotency keys.
    let beside = give(&service, "acme-2027", "order-1").await;
    assert_eq!(
        (beside.status, beside.json()["number"].clone()),
        (201, json!("1"))
    );
    // The idempotency key of a number stays valid forever, while the key of an append expires after
    // days.
    for days in [0, 1, 10, 400] {
        service.clock.advance(Duration::from_secs(days * 86_400));
        let again = give(&service, "acme-2026", "order-1").await;
        assert_eq!(
            (again.status, again.header("idempotency-replayed")),
            (200, Some("true")),
            "after {days} days"
        );
        assert_eq!(again.json(), expected);
        let new = give(&service, "acme-2026", &format!("day-{days}")).await;
        assert_eq!(new.status, 201);
    }
    assert_eq!(service.metric("idmint_numbers_total").await, 7.0);
    assert_eq!(
        service
            .metric("idmint_number_requests_total{outcome=\"replayed\"}")
            .await,
        4.0
    );
    assert_eq!(
        service
            .metric("idmint_number_requests_total{outcome=\"given\"}")
            .await,
        7.0
    );
}

#[tokio::test]
async fn several_numbers_stand_one_after_the_other_and_a_key_is_of_one_count() {
    let service = Service::start(RULES).await;
    give(&service, "acme-1", "a").await;
    let three = give(&service, "acme-1?count=3", "b").await;
    assert_eq!(
        (three.status, three.header("idmint-count")),
        (201, Some("3"))
    );
    let told = three.json();
    assert_eq!(
        (&told["number"], &told["count"], &told["text"]),
        (&json!("2"), &json!(3), &told["texts"][0])
    );
    assert_eq!(
        told["texts"],
        json!([
            "INV-acme-1-000023",
            "INV-acme-1-000031",
            "INV-acme-1-000049"
        ])
    );
    assert_eq!(give(&service, "acme-1?count=3", "b").await.json(), told);
    for count in ["", "?count=2"] {
        let other = give(&service, &format!("acme-1{count}"), "b").await;
        assert_problem(&other, 422, "idempotency-conflict", "idempotency_key");
    }
    let most = give(&service, "plain?count=1000", "a").await.json();
    assert_eq!(
        (&most["text"], &most["texts"][999]),
        (&json!("1"), &json!("1000"))
    );
    assert_eq!(give(&service, "plain", "b").await.json()["number"], "1001");
    assert_eq!(
        service
            .metric("idmint_number_requests_total{outcome=\"conflict\"}")
            .await,
        2.0
    );
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said_and_nothing_is_given() {
    let service = Service::start(RULES).await;
    let missing = service.post("/numbers/acme-1").await;
    assert_problem(&missing, 400, "idempotency-key-required", "idempotency_key");
    for (target, reason) in [
        ("acme-1?count=0", "count"),
        ("acme-1?count=1001", "count"),
        ("acme-1?count=-1", "count"),
        ("acme-1?n=1", "unknown_parameter"),
        ("a%20b", "series"),
        ("%2E%2E", "series"),
        (&"x".repeat(65), "series"),
    ] {
        let problem = assert_problem(
            &give(&service, target, "a").await,
            422,
            "invalid-parameter",
            reason,
        );
        let (line, key) = text(&problem["example"])
            .split_once(" Idempotency-Key: ")
            .unwrap();
        let works = service
            .exchange(&request(line, &format!("idempotency-key: {key}\r\n"), ""))
            .await;
        assert!([200, 201].contains(&works.status), "{problem}: {works:?}");
    }
    let headers = "idempotency-key: a\r\n";
    let with_body = service
        .exchange(&request("POST /numbers/acme-1", headers, r#"{"count":3}"#))
        .await;
    assert_problem(&with_body, 400, "malformed-request", "body");
    let other_media = service
        .exchange(&request(
            "POST /numbers/acme-1",
            "accept: text/plain\r\nidempotency-key: a\r\n",
            "",
        ))
        .await;
    assert_eq!(other_media.status, 406);
    assert_eq!(service.post("/numbers").await.status, 405);
    assert_eq!(
        service.get("/numbers").await.json()["series"]
            .as_array()
            .unwrap()
            .len(),
        1,
        "that of the examples"
    );
    assert_problem(&service.get("/numbers/acme-1").await, 404, "not-found", "");
}

#[tokio::test]
async fn a_series_begins_and_ends_where_it_is_configured_to() {
    let service = Service::start(RULES).await;
    let first = give(&service, "ticket", "a").await.json();
    assert_eq!(
        (&first["number"], text(&first["text"]).len()),
        (&json!("998"), 6)
    );
    let refused = give(&service, "ticket?count=4", "b").await;
    let problem = assert_problem(&refused, 422, "series-ended", "count");
    assert!(
        text(&problem["detail"]).contains("has only 3 numbers left, but 4 were requested"),
        "{problem}"
    );
    assert_eq!(problem["limit"], "1001");
    assert_eq!(
        give(&service, "ticket?count=3", "b").await.json()["texts"][2]
            .as_str()
            .map(str::len),
        Some(7)
    );
    assert_problem(
        &give(&service, "ticket", "c").await,
        422,
        "series-ended",
        "count",
    );
    assert_eq!(
        give(&service, "ticket", "a").await.json(),
        first,
        "what was given is still told"
    );
    assert_eq!(
        service
            .metric("idmint_number_requests_total{outcome=\"ended\"}")
            .await,
        2.0
    );
}

#[tokio::test]
async fn a_series_that_was_kept_elsewhere_goes_on_at_a_stated_number_once() {
    let service = Service::start(RULES).await;
    for (first, reason) in [
        ("0", "first"),
        ("x", "first"),
        ("01", "first"),
        ("9223372036854775808", "first"),
    ] {
        assert_problem(
            &give(&service, &format!("acme-1?first={first}"), "a").await,
            422,
            "invalid-parameter",
            reason,
        );
    }
    let before_start = assert_problem(
        &give(&service, "ticket?first=997", "a").await,
        422,
        "invalid-parameter",
        "first",
    );
    assert!(
        text(&before_start["detail"]).contains("must be from 998 to 1001"),
        "{before_start}"
    );
    assert_problem(
        &give(&service, "ticket?first=1002", "a").await,
        422,
        "series-ended",
        "count",
    );
    assert_problem(
        &service.post("/numbers/acme-1?first=7").await,
        400,
        "idempotency-key-required",
        "idempotency_key",
    );
    assert_eq!(
        service.get("/numbers").await.json()["series"],
        json!([]),
        "nothing was given"
    );

    let begun = give(&service, "acme-1?first=4711", "import").await;
    assert_eq!(
        (begun.status, begun.json()["text"].clone()),
        (201, json!("INV-acme-1-047115"))
    );
    let again = give(&service, "acme-1?first=4711", "import").await;
    assert_eq!((again.status, again.json()), (200, begun.json()));
    for other in ["acme-1?first=4712", "acme-1", "acme-1?first=4711&count=2"] {
        assert_problem(
            &give(&service, other, "import").await,
            422,
            "idempotency-conflict",
            "idempotency_key",
        );
    }
    for first in [1, 4_711, 4_712] {
        let refused = give(&service, &format!("acme-1?first={first}"), "b").await;
        let problem = assert_problem(&refused, 409, "series-begun", "first");
        assert!(
            text(&problem["detail"]).contains("its last number is 4711"),
            "{problem}"
        );
    }
    assert_eq!(give(&service, "acme-1", "b").await.json()["number"], "4712");
    assert_eq!(
        give(&service, "acme-2?first=5&count=3", "b").await.json()["texts"][2],
        "INV-acme-2-000071"
    );
    let numbers = |listed: Vec<Value>| {
        listed
            .iter()
            .map(|it| text(&it["number"]).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        numbers(listed(&service, "acme-1", 10).await),
        ["4711", "4712"]
    );

    assert_eq!(
        give(&service, "acme-3?first=47110", "import").await.status,
        201
    );
    let right = give(&service, "acme-3?first=4711&instead_of=47110", "right").await;
    assert_eq!(
        (right.status, right.json()["number"].clone()),
        (201, json!("4711"))
    );
    let again = give(&service, "acme-3?first=4711&instead_of=47110", "right").await;
    assert_eq!((again.status, again.json()), (200, right.json()));
    assert_problem(
        &give(&service, "acme-3?instead_of=4711", "b").await,
        422,
        "invalid-parameter",
        "first",
    );
    assert_eq!(give(&service, "acme-3", "b").await.json()["number"], "4712");
    // A first number cannot be replaced if a later number was given, if it was not requested with
    // `?first=`, or if it is void. The three series are examples of these cases.
    for (series, first) in [("acme-4", ""), ("acme-5", "?first=1")] {
        assert_eq!(
            give(&service, &format!("{series}{first}"), "a")
                .await
                .status,
            201
        );
    }
    assert_eq!(
        make_void(&service, "acme-5/1", "cancelled").await.status,
        201
    );
    for (series, wrong) in [("acme-3", "4711"), ("acme-4", "1"), ("acme-5", "1")] {
        let asked = format!("{series}?first=7&instead_of={wrong}");
        let problem = give(&service, &asked, "other").await;
        let problem = assert_problem(&problem, 409, "series-begun", "first");
        assert!(
            text(&problem["detail"]).contains("become 7 instead of"),
            "{problem}"
        );
    }
    assert_eq!(
        numbers(listed(&service, "acme-3", 10).await),
        ["4711", "4712"]
    );
    assert_eq!(
        service
            .metric("idmint_number_requests_total{outcome=\"conflict\"}")
            .await,
        9.0
    );
}

#[tokio::test]
async fn of_many_that_begin_a_series_at_once_one_does() {
    const CALLERS: u64 = 40;
    let service = Service::start(RULES).await;
    let ask = |first: u64| {
        let address = service.address;
        tokio::spawn(async move {
            let mut client = idmint_testing::http1::AsyncClient::connect(address).await;
            let line = format!("POST /numbers/acme-1?first={first}");
            client
                .exchange(&request(
                    &line,
                    &format!("idempotency-key: {first}\r\n"),
                    "",
                ))
                .await
        })
    };
    let mut begun = Vec::new();
    for caller in (1..=CALLERS)
        .map(|caller| ask(caller * 100))
        .collect::<Vec<_>>()
    {
        let answer = caller.await.unwrap();
        match answer.status {
            201 => begun.push(answer.json()["number"].clone()),
            _ => {
                assert_problem(&answer, 409, "series-begun", "first");
            }
        }
    }
    assert_eq!(begun.len(), 1, "{begun:?}");
    let numbers = listed(&service, "acme-1", 10).await;
    assert_eq!((numbers.len(), &numbers[0]["number"]), (1, &begun[0]));
    println!("1 of {CALLERS} began it");
}

#[tokio::test]
async fn a_closed_series_gives_no_number_and_keeps_its_answers() {
    let service = Service::start(RULES).await;
    let given = give(&service, "acme-1?count=3", "a").await.json();
    let close = async |series: &str| {
        let target = format!("POST /numbers/{series}/close");
        service.exchange(&request(&target, "", "")).await
    };
    let closed = close("acme-1").await;
    assert_eq!(closed.status, 201);
    let closed = closed.json();
    assert_eq!(
        (&closed["series"], &closed["last"]),
        (&json!("acme-1"), &json!("3"))
    );
    service.clock.advance(Duration::from_secs(1));
    let again = close("acme-1").await;
    assert_eq!((again.status, again.json()), (200, closed.clone()));

    let refused = give(&service, "acme-1", "b").await;
    let refused = assert_problem(&refused, 409, "series-closed", "series");
    assert_eq!(
        (&refused["last"], &refused["closed"]),
        (&json!("3"), &closed["closed"]["time"])
    );
    assert!(
        text(&refused["detail"]).contains("use a new series"),
        "{refused}"
    );
    let begin = give(&service, "acme-1?first=4711", "c").await;
    assert_problem(&begin, 409, "series-closed", "series");
    let repeated = give(&service, "acme-1?count=3", "a").await;
    assert_eq!((repeated.status, repeated.json()), (200, given));
    assert_eq!(
        make_void(&service, "acme-1/2", "cancelled").await.status,
        201
    );
    let page = service.get("/numbers/acme-1").await.json();
    assert_eq!(page["closed"], closed["closed"]);
    assert_eq!(page["numbers"].as_array().unwrap().len(), 3);

    assert_eq!(close("acme-9").await.json()["last"], Value::Null);
    let refused = give(&service, "acme-9", "a").await;
    assert_problem(&refused, 409, "series-closed", "series");
    give(&service, "acme-2", "a").await;
    let page = service.get("/numbers/acme-9").await.json();
    assert_eq!(
        (&page["numbers"], page["closed"].is_object()),
        (&json!([]), true)
    );
    let all = service.get("/numbers").await.json();
    let all = all["series"].as_array().unwrap().iter();
    let all: Vec<_> = all
        .map(|it| {
            (
                text(&it["series"]),
                text(&it["last"]),
                it["closed"].is_object(),
            )
        })
        .collect();
    assert_eq!(
        all,
        [
            ("acme-1", "3", true),
            ("acme-2", "1", false),
            ("acme-9", "0", true)
        ]
    );
}

#[tokio::test]
async fn a_number_is_void_for_one_reason_and_stays_used() {
    let service = Service::start(RULES).await;
    give(&service, "acme-1?count=3", "a").await;
    let void = make_void(&service, "acme-1/2", "the order was cancelled").await;
    assert_eq!(void.status, 201);
    let told = void.json();
    assert_eq!(
        (&told["series"], &told["number"]),
        (&json!("acme-1"), &json!("2"))
    );
    assert_eq!(
        (&told["void"]["reason"], &told["void"]["by"]),
        (&json!("the order was cancelled"), &Value::Null)
    );
    service.clock.advance(Duration::from_secs(1));
    let again = make_void(&service, "acme-1/2", "the order was cancelled").await;
    assert_eq!((again.status, again.json()), (200, told));
    let other = assert_problem(
        &make_void(&service, "acme-1/2", "lost").await,
        409,
        "already-void",
        "reason",
    );
    assert!(
        text(&other["detail"]).contains("the order was cancelled"),
        "{other}"
    );
    for number in ["acme-1/4", "acme-1/0", "acme-2/1"] {
        assert_problem(
            &make_void(&service, number, "lost").await,
            404,
            "not-found",
            "",
        );
    }
    for number in [
        "acme-1/02",
        "acme-1/x",
        "acme-1/9223372036854775808",
        "acme-1/-1",
    ] {
        let problem = assert_problem(
            &make_void(&service, number, "lost").await,
            422,
            "invalid-parameter",
            "n",
        );
        assert_example_works(&service, &problem).await;
    }
    for (reason, is_reason) in [
        ("", false),
        (" ", false),
        ("a\nb", false),
        (&*"x".repeat(501), false),
        (&*"é".repeat(250), true),
    ] {
        let answer = make_void(&service, "acme-1/3", reason).await;
        if is_reason {
            assert_eq!(answer.status, 201);
        } else {
            let problem = assert_problem(&answer, 422, "invalid-parameter", "reason");
            assert!(problem["example"].is_string());
        }
    }
    assert_eq!(give(&service, "acme-9", "a").await.status, 201);
    let issued = service.get("/numbers/acme-1").await.json();
    for line in [
        "POST /numbers/acme-9/1/void?x=1",
        "POST /numbers/acme-9/close?x=1",
        "GET /numbers?after=a%20b",
        "GET /numbers/a%20b",
    ] {
        let problem = service.exchange(&request(line, "", "")).await.json();
        assert_example_works(&service, &problem).await;
    }
    let later = service.get("/numbers/acme-1").await.json();
    assert_eq!(later, issued, "no example issues a number");
    for (body, status, slug) in [
        ("", 400, "malformed-request"),
        ("[", 400, "malformed-request"),
        (r#"{"reason":"a","reason":"a"}"#, 400, "malformed-request"),
        ("{}", 422, "invalid-parameter"),
        (r#"{"reason":"a","more":1}"#, 422, "invalid-parameter"),
    ] {
        let answer = service
            .exchange(&request(
                "POST /numbers/acme-1/1/void",
                "content-type: application/json\r\n",
                body,
            ))
            .await;
        let problem = answer.json();
        assert_eq!(
            (answer.status, &problem["type"]),
            (status, &json!(format!("/problems/{slug}"))),
            "{body}"
        );
    }
    assert_eq!(
        give(&service, "acme-1", "b").await.json()["number"],
        "4",
        "a void number is not given again"
    );
    let numbers = listed(&service, "acme-1", 2).await;
    let voids: Vec<bool> = numbers
        .iter()
        .map(|number| !number["void"].is_null())
        .collect();
    assert_eq!(voids, [false, true, true, false]);
    assert_eq!(numbers[1]["void"]["reason"], "the order was cancelled");
    assert_eq!(
        service
            .metric("idmint_number_requests_total{outcome=\"voided\"}")
            .await,
        3.0
    );
}

#[tokio::test]
async fn everything_is_listed_in_order_whatever_a_page_holds() {
    let service = Service::start(RULES).await;
    let mut expected = Vec::new();
    for (at, count) in [1, 7, 1, 250, 3].into_iter().enumerate() {
        service.clock.advance(Duration::from_millis(10));
        let key = format!("key-{at}");
        let given = give(&service, &format!("acme-1?count={count}"), &key)
            .await
            .json();
        let digest = Sha256::new()
            .chain_update([2])
            .chain_update("acme-1")
            .chain_update([0])
            .chain_update(&key)
            .finalize();
        let digest = digest.iter().take(16).fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        });
        let texts = given["texts"]
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![given["text"].clone()]);
        expected.extend(texts.into_iter().map(|text| (text, digest.clone())));
    }
    for limit in [1, 3, 100, 1_000] {
        let numbers = listed(&service, "acme-1", limit).await;
        let told: Vec<_> = numbers
            .iter()
            .map(|it| (it["text"].clone(), text(&it["key"]).to_owned()))
            .collect();
        assert_eq!(told, expected, "{limit} at a time");
        for (number, listed) in (1..).zip(&numbers) {
            assert_eq!(
                (&listed["number"], &listed["by"]),
                (&json!(number.to_string()), &Value::Null)
            );
            assert!(
                text(&listed["time"]).starts_with("2040-01-01T00:00:0"),
                "{listed}"
            );
        }
    }
    for (query, reason) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("after=x", "after"),
        ("after=01", "after"),
    ] {
        let problem = service.get(&format!("/numbers/acme-1?{query}")).await;
        let problem = assert_problem(&problem, 422, "invalid-parameter", reason);
        assert_example_works(&service, &problem).await;
    }
    let beyond = service
        .get("/numbers/acme-1?after=9223372036854775807")
        .await
        .json();
    assert_eq!(
        (&beyond["numbers"], &beyond["next"]),
        (&json!([]), &Value::Null)
    );

    give(&service, "acme-0", "a").await;
    let all = service.get("/numbers").await.json();
    let names: Vec<_> = all["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["series"].clone(), it["last"].clone()))
        .collect();
    assert_eq!(
        names,
        [
            (json!("acme-0"), json!("1")),
            (json!("acme-1"), json!("262"))
        ]
    );
    let behind = service.get("/numbers?after=acme-0").await.json();
    assert_eq!(
        (behind["series"].as_array().unwrap().len(), &behind["next"]),
        (1, &Value::Null)
    );
}

#[tokio::test]
async fn texts_of_configured_series_are_read_back() {
    let service = Service::start(RULES).await;
    for (series, rule, check_len) in [("acme-2026", "invoice", 1), ("ticket", "ticket", 2)] {
        let given = give(&service, series, "a").await.json();
        let read = service
            .get(&format!("/decode/{}", text(&given["text"])))
            .await;
        assert_eq!(read.status, 200, "{}", read.text());
        let reading = &read.json()["numbers"][0];
        assert_eq!(
            (&reading["series"], &reading["number"], &reading["rule"]),
            (&json!(series), &given["number"], &json!(rule))
        );
        assert_eq!(text(&reading["check"]).len(), check_len);
        let body = json!([given["text"]]).to_string();
        let among_others = service
            .exchange(&request(
                "POST /decode?detail=full",
                "content-type: application/json\r\n",
                &body,
            ))
            .await;
        assert_eq!(among_others.json()[0]["numbers"], read.json()["numbers"]);
        let drawn = service
            .exchange(&request(
                &format!("GET /decode/{}", text(&given["text"])),
                "accept: text/plain\r\n",
                "",
            ))
            .await;
        assert!(
            drawn.text().contains(&format!(
                "number {} of the series {series}",
                text(&given["number"])
            )),
            "{}",
            drawn.text()
        );
        // A request that names a format must not find numbers of series.
        let pinned = service
            .get(&format!(
                "/decode/{}?format=snowflake",
                text(&given["text"])
            ))
            .await;
        assert_eq!(pinned.status, 404);
    }
    // With a wrong check digit, the text is not a number of the series.
    let other = service.get("/decode/INV-acme-2026-000018").await.json();
    assert!(other.get("numbers").is_none(), "{other}");
    let id = service.mint("/ids/snowflake").await.remove(0);
    assert!(
        service
            .get(&format!("/decode/{id}"))
            .await
            .json()
            .get("numbers")
            .is_none(),
        "an id is no number of a series"
    );
}

#[tokio::test]
async fn many_callers_at_once_make_one_series_each_key_its_own_number() {
    const CALLERS: usize = 40;
    let service = Service::start(RULES).await;
    let ask = |caller: usize| {
        let address = service.address;
        tokio::spawn(async move {
            let mut client = idmint_testing::http1::AsyncClient::connect(address).await;
            let mut told = Vec::new();
            for at in 0..25 {
                let headers = format!("idempotency-key: {caller}-{at}\r\n");
                let asked = request("POST /numbers/acme-1", &headers, "");
                // Send each request twice, as a caller does after a lost response. Both responses
                // must be the same.
                let [one, other] = [client.exchange(&asked).await, client.exchange(&asked).await]
                    .map(|it| it.json());
                assert_eq!(one, other);
                told.push(text(&one["number"]).parse::<u64>().unwrap());
            }
            told
        })
    };
    let callers: Vec<_> = (0..CALLERS).map(ask).collect();
    let mut numbers = BTreeSet::new();
    for caller in callers {
        numbers.extend(caller.await.unwrap());
    }
    assert!(
        numbers.iter().copied().eq(1..=25 * 40),
        "{} numbers, the last {:?}",
        numbers.len(),
        numbers.last()
    );
    println!(
        "{} numbers for {CALLERS} callers, each asked for twice",
        numbers.len()
    );
}

#[tokio::test]
async fn a_token_gives_the_series_that_it_is_for_and_is_listed_as_who_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.toml");
    let mut entries = String::new();
    for (name, more) in [
        ("till", "scopes = ['number']\nseries = ['acme-*', 'shop']"),
        ("audit", "scopes = ['number', 'decode']"),
        (
            "mint",
            "scopes = ['mint', 'ledger', 'decode', 'metrics', 'import']",
        ),
    ] {
        let digest = Sha256::digest(name)
            .iter()
            .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        writeln!(
            entries,
            "[[token]]\nname = '{name}'\nsha256 = '{digest}'\n{more}"
        )
        .unwrap();
    }
    std::fs::write(&path, entries).unwrap();
    let service = Service::start(&format!("http.tokens = '{}'\n{RULES}", path.display())).await;
    let ask = async |token: &str, line: &str, body: &str| {
        let headers = format!("authorization: Bearer {token}\r\nidempotency-key: a\r\n");
        service.exchange(&request(line, &headers, body)).await
    };
    assert_eq!(
        ask("till", "POST /numbers/acme-1?count=2", "").await.status,
        201
    );
    assert_eq!(ask("audit", "POST /numbers/secret", "").await.status, 201);
    assert_eq!(
        ask(
            "till",
            "POST /numbers/acme-1/2/void",
            r#"{"reason":"cancelled"}"#
        )
        .await
        .status,
        201
    );
    for line in [
        "POST /numbers/secret",
        "GET /numbers/secret",
        "GET /numbers/none",
    ] {
        let problem = assert_problem(&ask("till", line, "").await, 403, "forbidden", "series");
        assert_eq!(problem["limit"], "acme-*, shop");
    }
    assert_problem(
        &ask("till", "POST /numbers/secret/1/void", "{}").await,
        403,
        "forbidden",
        "series",
    );
    for line in [
        "POST /numbers/acme-1",
        "GET /numbers/acme-1",
        "GET /numbers",
        "POST /numbers/acme-1/1/void",
    ] {
        assert_problem(&ask("mint", line, "{}").await, 403, "forbidden", "scope");
        assert_eq!(service.exchange(&request(line, "", "")).await.status, 401);
    }
    let names = async |token: &str| -> Vec<String> {
        let list = ask(token, "GET /numbers", "").await.json();
        list["series"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| text(&it["series"]).to_owned())
            .collect()
    };
    assert_eq!(
        (names("till").await, names("audit").await),
        (
            vec!["acme-1".to_owned()],
            vec!["acme-1".to_owned(), "secret".to_owned()]
        )
    );
    assert_eq!(ask("till", "POST /numbers/shop", "").await.status, 201);
    let page = ask("till", "GET /numbers?limit=1", "").await.json();
    assert_eq!(
        (&page["series"][0]["series"], &page["next"]),
        (&json!("acme-1"), &json!("acme-1"))
    );
    let page = ask("till", "GET /numbers?limit=1&after=acme-1", "")
        .await
        .json();
    assert_eq!(
        (&page["series"][0]["series"], &page["next"]),
        (&json!("shop"), &Value::Null)
    );
    let listed = ask("audit", "GET /numbers/acme-1", "").await.json();
    let [first, second] = [&listed["numbers"][0], &listed["numbers"][1]];
    assert_eq!(
        (&first["by"], &first["void"]),
        (&json!("the token `till`"), &Value::Null)
    );
    assert_eq!(
        (&second["by"], &second["void"]["by"]),
        (&json!("the token `till`"), &json!("the token `till`"))
    );
}

#[tokio::test]
async fn rules_that_do_not_go_together_are_refused_with_their_names() {
    for (settings, key, said) in [
        ("numbers.a.text = '{n}'", "numbers.a", "pattern is missing"),
        (
            "numbers.a.pattern = 'a b'",
            "numbers.a.pattern",
            "the name of a series",
        ),
        (
            "numbers.a = { pattern = 'a', text = 'A' }",
            "numbers.a.text",
            "must have {n} once",
        ),
        (
            "numbers.a = { pattern = 'a*', text = '{series}{n}' }",
            "numbers.a.text",
            "would be number",
        ),
        (
            "numbers.a = { pattern = 'a', check = 'crc' }",
            "numbers.a.check",
            "\"luhn\" or \"mod97\"",
        ),
        (
            "numbers.a = { pattern = 'a', start = 0 }",
            "numbers.a.start",
            "from 1 to",
        ),
        (
            "numbers.a = { pattern = 'a', start = 5, max = 4 }",
            "numbers.a.max",
            "the series would be empty",
        ),
        (
            "numbers.a.pattern = 'x-*'\nnumbers.b.pattern = 'x-*'",
            "numbers.b.pattern",
            "also the pattern of numbers.a",
        ),
        (
            "numbers.a = { pattern = 'a', step = 2 }",
            "numbers.a.step",
            "unknown field",
        ),
    ] {
        let error = crate::service::config(settings)
            .expect_err(settings)
            .to_string();
        assert!(
            error.contains(&format!("{key}: ")) && error.contains(said),
            "{settings}: {error}"
        );
    }
}
