//! Checks the responses of `POST /inspect`, which determines the format of a column of ids.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::service::Service;
use crate::support::post_request;
use idmint_testing::cases::FORMATS;

async fn inspect(service: &Service, query: &str, lines: &[String]) -> Value {
    let body = lines.iter().fold(String::new(), |mut body, line| {
        writeln!(body, "{line}").unwrap();
        body
    });
    let answer = service
        .exchange(&post_request(
            &format!("/inspect{query}"),
            "content-type: text/plain\r\n",
            &body,
        ))
        .await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("application/json")),
        "{answer:?}"
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    answer.json()
}

#[tokio::test]
async fn what_was_minted_here_is_told_with_what_its_lines_have_in_common() {
    let service = Service::start("").await;
    for (format, count) in [
        ("snowflake", 1000),
        ("payment", 20),
        ("uuid7", 1000),
        ("flax", 1000),
        ("siq", 300),
        ("typeid", 50),
    ] {
        let typed = match format {
            "siq" => "&type=message",
            "typeid" => "&type=user",
            _ => "",
        };
        let minted = service
            .exchange(&post_request(
                &format!("/ids/{format}?count={count}{typed}"),
                "",
                "",
            ))
            .await
            .json();
        let ids: Vec<String> = serde_json::from_value(minted["ids"].clone()).unwrap();
        let mut lines = vec!["id".to_owned(), String::new()];
        lines.extend(ids.iter().cloned());
        lines.extend([format!(" {} ", ids[0]), "no id".to_owned()]);
        let verdict = inspect(&service, "", &lines).await;
        assert_eq!(verdict["format"], format, "{verdict}");
        let expected = json!([count + 3, 1, count + 1, 2, [1, count + 4], 1]);
        let told: Vec<&Value> = ["lines", "blank", "ids", "none", "none_lines", "duplicates"]
            .map(|name| &verdict[name])
            .into();
        assert_eq!(json!(told), expected, "{verdict}");
        assert!(
            verdict["from"].is_string() && verdict["candidates"] == json!([]),
            "{verdict}"
        );
    }
    assert_eq!(
        service
            .metric(r#"idmint_decode_requests_total{outcome="matched"}"#)
            .await,
        6.0
    );
}

#[tokio::test]
async fn what_cannot_be_told_says_why_and_a_format_that_is_named_is_taken() {
    // This configuration has a second format that is like `payment`. No column can show which of
    // the two its ids belong to.
    let service = Service::start(FORMATS).await;
    let numbers: Vec<String> = (1..=1000).map(|number: u32| number.to_string()).collect();
    let verdict = inspect(&service, "", &numbers).await;
    let members = [
        "format",
        "certainty",
        "ids",
        "none",
        "from",
        "workers",
        "evidence_bits",
    ]
    .map(|name| &verdict[name]);
    assert_eq!(
        json!(members),
        json!([null, "cannot_be_told", null, null, null, null, null]),
        "{verdict}"
    );
    assert_eq!(
        (&verdict["lines"], &verdict["duplicates"]),
        (&json!(1000), &json!(0))
    );
    let verdict = inspect(&service, "", &[]).await;
    assert_eq!(
        (&verdict["why"], &verdict["lines"]),
        (&json!("no_format"), &json!(0)),
        "{verdict}"
    );
    let payments: Vec<String> = (100..400).map(|at: u32| format!("1I9ZC1{at}")).collect();
    let verdict = inspect(&service, "", &payments).await;
    assert_eq!(verdict["certainty"], "cannot_be_told", "{verdict}");
    let old: Vec<String> = (0..100)
        .map(|at: u64| (175_928_847_299_117_063 + (at << 22)).to_string())
        .collect();
    let verdict = inspect(&service, "", &old).await;
    assert_eq!(verdict["certainty"], "cannot_be_told", "{verdict}");
    let verdict = inspect(&service, "?format=snowflake", &old).await;
    let members =
        ["format", "certainty", "ids", "backwards", "from", "to"].map(|name| &verdict[name]);
    let (from, to) = ("2016-04-30T11:18:25.796Z", "2016-04-30T11:18:25.895Z");
    assert_eq!(
        json!(members),
        json!(["snowflake", "named", 100, 0, from, to]),
        "{verdict}"
    );
    assert_eq!(
        verdict["workers"],
        json!({"count": 1, "more": false, "numbers": ["1"]})
    );
}

#[tokio::test]
async fn a_long_column_is_long_work_that_lets_others_in_between() {
    let service = Service::start("").await;
    let lines: Vec<String> = (0..20_000)
        .map(|at: u64| (1_500_000_000_000_000_000 + ((at * 7919) << 12)).to_string())
        .collect();
    let (verdict, ready) = tokio::join!(inspect(&service, "", &lines), service.get("/health/live"));
    assert_eq!(
        (&verdict["lines"], ready.status),
        (&json!(20_000), 200),
        "{verdict}"
    );
}
