//! Checks series of the kind `blocks`. Their numbers need no idempotency key, and are given one
//! after another from a reserved range.

use std::collections::BTreeSet;

use serde_json::json;

use crate::ledgers::{assert_example_works, assert_problem, text};
use crate::service::Service;
use idmint_testing::http1::{Answer, request};

const RULES: &str = r#"
[numbers.rows]
pattern = "rows-*"
kind = "blocks"
reserve = 10

[numbers.few]
pattern = "few"
kind = "blocks"
start = 100
max = 124
reserve = 10
"#;

async fn give(service: &Service, series: &str, count: u32) -> Answer {
    service
        .post(&format!("/numbers/{series}?count={count}"))
        .await
}

/// Returns the range of numbers that a response contains.
fn given(answer: &Answer) -> std::ops::Range<u64> {
    assert_eq!(answer.status, 201, "{}", answer.text());
    let block = answer.json();
    let first: u64 = text(&block["first"]).parse().unwrap();
    first..first + block["count"].as_u64().unwrap()
}

async fn last_reserved(service: &Service, series: &str) -> String {
    let list = service.get("/numbers").await.json();
    let of_series = list["series"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["series"] == series)
        .unwrap();
    text(&of_series["last"]).to_owned()
}

#[tokio::test]
async fn blocks_stand_one_after_the_other_and_ten_numbers_are_reserved_at_once() {
    let service = Service::start(RULES).await;
    let first = give(&service, "rows-1", 3).await;
    assert_eq!(
        first.json(),
        json!({ "series": "rows-1", "first": "1", "count": 3 })
    );
    assert_eq!(first.header("idmint-count"), Some("3"));
    assert_eq!(last_reserved(&service, "rows-1").await, "10");
    for (count, numbers, reserved) in [
        (1, 4..5, "10"),
        (6, 5..11, "10"),
        (1, 11..12, "20"),
        (10, 12..22, "21"),
        (1_000, 22..1_022, "1021"),
    ] {
        assert_eq!(given(&give(&service, "rows-1", count).await), numbers);
        assert_eq!(
            last_reserved(&service, "rows-1").await,
            reserved,
            "after {count}"
        );
    }
    assert_eq!(
        given(&service.post("/numbers/rows-2").await),
        1..2,
        "each series by itself"
    );
    assert!(
        service
            .metric(r#"idmint_number_requests_total{outcome="given"}"#)
            .await
            >= 7.0
    );
    assert!(
        (service.metric("idmint_numbers_total").await - 1_022.0).abs() < 0.5,
        "those that were given"
    );
}

#[tokio::test]
async fn a_reserved_range_is_one_entry_of_the_list() {
    let service = Service::start(RULES).await;
    for count in [3, 10] {
        give(&service, "rows-1", count).await;
    }
    let list = async |query: &str| {
        let list = service.get(&format!("/numbers/rows-1{query}")).await.json();
        let ranges: Vec<(String, String)> = list["numbers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|range| {
                (
                    text(&range["number"]).to_owned(),
                    text(&range["last"]).to_owned(),
                )
            })
            .collect();
        (ranges, list["next"].clone())
    };
    let range = |first: &str, last: &str| (first.to_owned(), last.to_owned());
    let (one, other) = (range("1", "10"), range("11", "13"));
    assert_eq!(
        list("").await,
        (vec![one.clone(), other.clone()], json!(null))
    );
    assert_eq!(list("?limit=1").await, (vec![one], json!("10")));
    assert_eq!(list("?after=10").await, (vec![other.clone()], json!(null)));
    assert_eq!(
        list("?after=4").await,
        (vec![range("5", "10"), other], json!(null)),
        "a range is listed from the first number after 4"
    );
    service
        .exchange(&request(
            "POST /numbers/gapless",
            "idempotency-key: a\r\n",
            "",
        ))
        .await;
    let gapless = service.get("/numbers/gapless").await.json();
    assert_eq!(gapless["numbers"][0].get("last"), None);
}

#[tokio::test]
async fn a_series_of_blocks_ends_with_its_last_number_and_not_before() {
    let service = Service::start(RULES).await;
    for (count, numbers) in [(8, 100..108), (8, 108..116), (8, 116..124), (1, 124..125)] {
        assert_eq!(given(&give(&service, "few", count).await), numbers);
    }
    let problem = assert_problem(
        &give(&service, "few", 1).await,
        422,
        "series-ended",
        "count",
    );
    assert_eq!(problem["limit"], "124");
    let other = Service::start(RULES).await;
    assert_eq!(given(&give(&other, "few", 20).await), 100..120);
    let problem = assert_problem(&give(&other, "few", 6).await, 422, "series-ended", "count");
    assert!(
        text(&problem["detail"]).contains("has only 5 numbers left, but 6 were requested"),
        "{problem}"
    );
    assert_eq!(
        given(&give(&other, "few", 5).await),
        120..125,
        "nothing was given by half"
    );
}

#[tokio::test]
async fn a_series_of_blocks_that_was_kept_elsewhere_goes_on_at_a_stated_number() {
    let service = Service::start(RULES).await;
    assert_problem(
        &service.post("/numbers/rows-1?first=70000").await,
        400,
        "idempotency-key-required",
        "idempotency_key",
    );
    let begin = async |first: u64| {
        service
            .exchange(&request(
                &format!("POST /numbers/rows-1?first={first}"),
                "idempotency-key: import\r\n",
                "",
            ))
            .await
    };
    for status in [201, 200] {
        let begun = begin(70_000).await;
        assert_eq!(
            (begun.status, &begun.json()["number"]),
            (status, &json!("70000"))
        );
    }
    assert_eq!(given(&give(&service, "rows-1", 4).await), 70_001..70_005);
    assert_eq!(begin(70_001).await.status, 422);
    let used = service
        .exchange(&request(
            "POST /numbers/rows-1?first=9",
            "idempotency-key: b\r\n",
            "",
        ))
        .await;
    assert_problem(&used, 409, "series-begun", "first");
    assert_eq!(given(&give(&service, "rows-1", 1).await), 70_005..70_006);
}

#[tokio::test]
async fn what_blocks_have_not_is_refused() {
    let service = Service::start(RULES).await;
    assert_eq!(given(&give(&service, "rows-1", 3).await), 1..4);
    let keyed = service
        .exchange(&request(
            "POST /numbers/rows-1",
            "idempotency-key: a\r\n",
            "",
        ))
        .await;
    let problem = assert_problem(&keyed, 422, "invalid-parameter", "idempotency-key");
    assert_example_works(&service, &problem).await;
    let void = service
        .exchange(&request(
            "POST /numbers/rows-1/2/void",
            "",
            r#"{"reason":"x"}"#,
        ))
        .await;
    assert_problem(&void, 422, "invalid-parameter", "series");
    for count in ["0", "1001", "x"] {
        let refused = service
            .post(&format!("/numbers/rows-1?count={count}"))
            .await;
        assert_eq!(refused.status, 422, "{count}");
    }
}

#[tokio::test]
async fn many_callers_at_once_take_all_numbers_and_none_twice() {
    const CALLERS: u32 = 40;
    let service = Service::start(RULES).await;
    let ask = |caller: u32| {
        let address = service.address;
        tokio::spawn(async move {
            let mut client = idmint_testing::http1::AsyncClient::connect(address).await;
            let mut told = Vec::new();
            for at in 0..50 {
                let line = format!("POST /numbers/rows-1?count={}", 1 + (caller + at) % 7);
                told.extend(given(&client.exchange(&request(&line, "", "")).await));
            }
            told
        })
    };
    let (mut numbers, mut told) = (BTreeSet::new(), 0);
    for caller in (0..CALLERS).map(ask).collect::<Vec<_>>() {
        let of_caller = caller.await.unwrap();
        told += of_caller.len();
        numbers.extend(of_caller);
    }
    println!("{told} numbers for {CALLERS} callers");
    assert_eq!(
        (
            numbers.len(),
            numbers.last().map(|last| usize::try_from(*last).unwrap())
        ),
        (told, Some(told))
    );
}

#[tokio::test]
async fn settings_of_blocks_that_do_not_go_together_are_refused() {
    for (settings, key) in [
        (
            "[numbers.a]\npattern = 'a'\nreserve = 10",
            "numbers.a.reserve",
        ),
        (
            "[numbers.a]\npattern = 'a'\nkind = 'blocks'\ntext = 'A{n}'",
            "numbers.a.kind",
        ),
        (
            "[numbers.a]\npattern = 'a'\nkind = 'blocks'\ncheck = 'luhn'",
            "numbers.a.kind",
        ),
        (
            "[numbers.a]\npattern = 'a'\nkind = 'blocks'\nreserve = 0",
            "numbers.a.reserve",
        ),
        (
            "[numbers.a]\npattern = 'a'\nkind = 'dense'",
            "numbers.a.kind",
        ),
    ] {
        let error = crate::service::config(settings)
            .expect_err(settings)
            .to_string();
        assert!(error.contains(key), "{error}");
    }
}
