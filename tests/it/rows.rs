//! Checks responses as rows (`Accept: application/vnd.idmint.rows+json`), which describe ids by a
//! first id, a step and a count.

use std::collections::BTreeSet;

use idmint_core::id::PRESETS;
use idmint_wire::{IdRow, MintRows};

use crate::service::Service;
use crate::support::post_request;
use idmint_testing::http1::Answer;

const ROWS: &str = "application/vnd.idmint.rows+json";

/// Formats whose rows are easy to compute. In `fine`, each tick has two ids, and the epoch is the
/// start of the service. An id is therefore equal to the number of ids before it. In `split`, the
/// worker number comes after the sequence, so that neighbouring ids are 8 apart.
const CUSTOM: &str = r#"
[formats.payment-wide]
enabled = true
[formats.fine]
summary   = "Two ids in a tick of 100 nanoseconds"
rule      = "sequenced"
tick      = "100ns"
epoch     = "2040-01-01T00:00:00Z"
fields    = [{ name = "time", kind = "time", bits = 50 }, { name = "sequence", kind = "sequence", bits = 1 }]
encodings = ["decimal"]
[formats.split]
summary   = "Seven ids in a tick of 100 microseconds, the worker last"
rule      = "sequenced"
tick      = "100us"
epoch     = "2020-01-01T00:00:00Z"
fields    = [{ name = "time", kind = "time", bits = 50 }, { name = "sequence", kind = "sequence", cardinality = 7 },
             { name = "worker", kind = "worker", bits = 3 }]
encodings = ["decimal"]
"#;

fn accepting(path: &str, media: &str) -> String {
    post_request(path, &format!("accept: {media}\r\n"), "")
}

async fn rows_of(service: &Service, path: &str) -> (Answer, MintRows) {
    let answer = service.exchange(&accepting(path, ROWS)).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some(ROWS)),
        "{path}: {answer:?}"
    );
    assert_eq!(
        answer.header("content-length"),
        Some(answer.body.len().to_string().as_str()),
        "{path}"
    );
    let rows: MintRows = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        answer.header("idmint-count"),
        Some(rows.count.to_string().as_str()),
        "{path}"
    );
    (answer, rows)
}

fn ids_in(rows: &[IdRow]) -> Vec<u128> {
    rows.iter()
        .flat_map(|row| row.progression().unwrap().values().collect::<Vec<_>>())
        .collect()
}

#[tokio::test]
async fn rows_are_numbers_at_equal_distances() {
    let service = Service::start(CUSTOM).await;
    let (answer, _) = rows_of(&service, "/ids/fine?count=3").await;
    let expected = r#"{"format":"fine","count":3,"rows":[{"first":"0","step":"1","count":2},{"first":"2","step":"1","count":1}]}"#;
    assert_eq!(answer.text(), format!("{expected}\n"));
    for (name, value) in [
        ("cache-control", "no-store"),
        ("idmint-count", "3"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(answer.header(name), Some(value));
    }
    let (_, split) = rows_of(&service, "/ids/split?count=3").await;
    assert_eq!(
        (
            split.rows.len(),
            split.rows[0].step.as_str(),
            split.rows[0].count
        ),
        (1, "8", 3)
    );
    let (_, siq) = rows_of(&service, "/ids/siq?type=message").await;
    assert_eq!(
        (siq.label.as_deref(), siq.rows.len()),
        (Some("development"), 1)
    );
}

/// Two services that start at the same instant mint the same ids. One service returns them as texts
/// and the other one as rows, and the test compares both.
#[tokio::test]
async fn of_every_sequenced_format_the_rows_are_the_ids_that_texts_would_be() {
    let (in_texts, in_rows) = (Service::start(CUSTOM).await, Service::start(CUSTOM).await);
    let formats = in_texts.get("/formats").await.json();
    let sequenced = formats["formats"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|format| format["rule"] == "sequenced");
    let names: Vec<_> = sequenced
        .map(|format| format["name"].as_str().unwrap())
        .collect();
    let built_in = PRESETS
        .iter()
        .filter(|preset| preset.toml.contains("rule      = \"sequenced\""))
        .count();
    assert!(names.len() >= built_in + 2 && names.len() >= 9, "{names:?}");
    let mut seen = 0;
    for name in names {
        let of_type = if name == "siq" { "&type=message" } else { "" };
        let mut all = BTreeSet::new();
        for count in [1, 2, 33, 300] {
            let texts = in_texts
                .mint(&format!(
                    "/ids/{name}?encoding=decimal&count={count}{of_type}"
                ))
                .await;
            let texts: Vec<u128> = texts.iter().map(|id| id.parse().unwrap()).collect();
            let (_, rows) = rows_of(&in_rows, &format!("/ids/{name}?count={count}{of_type}")).await;
            assert_eq!(
                (rows.format.as_str(), ids_in(&rows.rows)),
                (name, texts.clone()),
                "{count} of {name}"
            );
            all.extend(texts);
            seen += count;
        }
        assert_eq!(all.len(), 336, "an id of {name} came twice");
    }
    assert_eq!(
        in_rows.minted().await,
        f64::from(seen),
        "rows are counted by their ids"
    );
}

#[tokio::test]
async fn a_hundred_thousand_snowflakes_take_less_than_three_kibibytes() {
    let service = Service::start("").await;
    let (answer, rows) = rows_of(&service, "/ids/snowflake?count=100000").await;
    assert!(
        answer.body.len() < 3 * 1024,
        "{} bytes in {} rows",
        answer.body.len(),
        rows.rows.len()
    );
    let ids = ids_in(&rows.rows);
    assert_eq!(ids.len(), 100_000);
    assert!(
        ids.is_sorted_by(|one, next| one < next),
        "they are not in order, or one came twice"
    );
}

#[tokio::test]
async fn the_length_of_many_rows_is_known_before_and_exact() {
    let service = Service::start(CUSTOM).await;
    let (answer, rows) = rows_of(&service, "/ids/fine?count=100000").await;
    assert!(
        answer.body.len() > 1024 * 1024,
        "{} bytes are one piece",
        answer.body.len()
    );
    assert_eq!(rows.rows.len(), 50_000);
    assert!(ids_in(&rows.rows).into_iter().eq(0..100_000));
}

#[tokio::test]
async fn formats_without_rows_say_why_and_answer_what_else_is_accepted() {
    let service = Service::start("").await;
    for (name, why) in [
        ("uuid7", "drawn at random"),
        ("typeid?type=user", "drawn at random"),
        ("conjunction", "minted from reports"),
        ("evently", "minted from events"),
        ("uuid1", "not minted here"),
    ] {
        let refused = service
            .exchange(&accepting(&format!("/ids/{name}"), ROWS))
            .await;
        let problem = refused.json();
        assert_eq!(
            (refused.status, &problem["reason"]),
            (406, &"rows".into()),
            "{problem}"
        );
        let format = name.split('?').next().unwrap();
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains(&format!("`{format}`")) && detail.contains(why),
            "{detail}"
        );
        assert_eq!(problem["accepts"].as_array().unwrap().len(), 4, "{problem}");
    }
    let instead = service
        .exchange(&accepting(
            "/ids/uuid7",
            &format!("{ROWS}, application/json;q=0.5"),
        ))
        .await;
    assert_eq!(
        (instead.status, instead.header("content-type")),
        (200, Some("application/json"))
    );
    for media in ["application/*", &format!("{ROWS}, application/json")] {
        let first = service.exchange(&accepting("/ids/snowflake", media)).await;
        assert_eq!(
            first.header("content-type"),
            Some("application/json"),
            "{media}"
        );
    }
    let image = service
        .exchange(&accepting("/ids/uuid7", "image/png"))
        .await
        .json();
    assert_eq!(
        (&image["status"], &image["reason"]),
        (&406.into(), &serde_json::Value::Null)
    );
}

#[tokio::test]
async fn what_is_wrong_with_a_request_for_texts_is_wrong_with_one_for_rows() {
    let service = Service::start("formats.payment.prefixes = ['pi_']").await;
    for (path, reason) in [
        ("/ids/snowflake?count=0", "count"),
        ("/ids/snowflake?count=100001", "count"),
        ("/ids/payment?count=100000", "count"),
        ("/ids/snowflake?encoding=morse", "encoding"),
        ("/ids/payment?prefix=pi_", "prefix"),
        ("/ids/siq", "type"),
    ] {
        let refused = service.exchange(&accepting(path, ROWS)).await;
        assert_eq!(
            (refused.status, &refused.json()["reason"]),
            (422, &reason.into()),
            "{path}: {refused:?}"
        );
    }
    assert_eq!(service.minted().await, 0.0);
}

/// Only two requests may be in progress, and long work may use only one of these places. A response
/// that nobody reads takes that place, so more long work must be refused.
#[tokio::test]
async fn rows_of_many_ids_are_turned_away_as_their_texts_are() {
    let service = Service::start("http.idle_timeout = '1h'\nhttp.in_flight_max = 2").await;
    let mut unread = service.connect().await;
    let ids = format!(
        "[\"175928847299117063\"{}]",
        ",\"175928847299117063\"".repeat(50_000)
    );
    unread.send(post_request("/decode", "", &ids)).await;
    unread.stream.readable().await.unwrap();
    for media in ["application/json", ROWS] {
        let status = async |count: u32| {
            let path = format!("/ids/snowflake?count={count}");
            service.exchange(&accepting(&path, media)).await.status
        };
        assert_eq!(
            (status(1_000).await, status(60_000).await),
            (200, 503),
            "{media}"
        );
    }
    assert_eq!(
        service
            .metric(r#"idmint_requests_shed_total{reason="bulk"}"#)
            .await,
        2.0
    );
}
