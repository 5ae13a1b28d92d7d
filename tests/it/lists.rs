//! Checks the parameters `limit` and `after`, which every list has, and the short list of formats.

use serde_json::{Value, json};

use crate::ledgers::{
    append, assert_example_works, assert_problem, create_request, event, ledger, order, text,
};
use crate::service::{ALL_ON, Service};
use crate::support::post_request;
use idmint_testing::http1::request;

/// A service with four entries in each list, and the path of each list with the name of its items.
async fn filled() -> (Service, Vec<(String, &'static str)>) {
    let service = Service::start(ALL_ON).await;
    let first = ledger(&service, 0).await;
    let events: Vec<_> = (1..4).map(event).collect();
    append(&service, "events", &order(&first, &events)).await;
    for number in 1..4 {
        let genesis = create_request(&format!("idempotency-key: {number}\r\n"), &event(number));
        service.exchange(&genesis).await;
        let report = json!({ "tca": format!("2024-02-0{number}T00:00:00Z"), "primary": number, "secondary": 9 });
        let json = "content-type: application/json\r\n";
        let report = post_request("/conjunctions", json, &report.to_string());
        assert_eq!(service.exchange(&report).await.status, 200);
    }
    for (series, key) in [("a", 1), ("b", 1), ("c", 1), ("c", 2), ("c", 3)] {
        let line = format!("POST /numbers/{series}");
        let given = request(&line, &format!("idempotency-key: {key}\r\n"), "");
        assert_eq!(service.exchange(&given).await.status, 201);
    }
    let lists = vec![
        ("/ledgers".to_owned(), "ledgers"),
        (format!("/ledgers/{first}/ids"), "ids"),
        ("/numbers".to_owned(), "series"),
        ("/numbers/c".to_owned(), "numbers"),
        ("/conjunctions".to_owned(), "conjunctions"),
        ("/formats".to_owned(), "formats"),
        ("/formats?detail=brief".to_owned(), "formats"),
    ];
    (service, lists)
}

fn with(path: &str, query: &str) -> String {
    let mark = if path.contains('?') { '&' } else { '?' };
    format!("{path}{mark}{query}")
}

fn items(page: &Value, name: &str) -> Vec<Value> {
    page[name]
        .as_array()
        .unwrap_or_else(|| panic!("{page} has a list {name}"))
        .clone()
}

#[tokio::test]
async fn pages_of_every_list_hold_its_limit_and_together_the_whole_list() {
    let (service, lists) = filled().await;
    for (path, name) in lists {
        let whole = items(&service.get(&path).await.json(), name);
        assert!(whole.len() >= 3, "{path}: {whole:?}");
        for limit in [1, 2, whole.len(), 1_000] {
            let (mut found, mut query) = (Vec::new(), format!("limit={limit}"));
            loop {
                let page = service.get(&with(&path, &query)).await.json();
                let listed = items(&page, name);
                assert!(listed.len() <= limit, "{path}?{query}: {page}");
                found.extend(listed);
                let next = page.get("next").expect("a page says how to continue");
                match next.as_str() {
                    None => break,
                    Some(next) => query = format!("limit={limit}&after={next}"),
                }
                assert!(found.len() < whole.len(), "{path}: a page follows the last");
            }
            assert_eq!(found, whole, "{path}, {limit} at a time");
        }
    }
}

#[tokio::test]
async fn a_limit_out_of_bounds_is_refused_on_every_list() {
    let (service, lists) = filled().await;
    for (path, _) in lists {
        for limit in ["0", "1001", "-1", "x", ""] {
            let answer = service.get(&with(&path, &format!("limit={limit}"))).await;
            let problem = assert_problem(&answer, 422, "invalid-parameter", "limit");
            assert_eq!(
                problem["detail"],
                format!("limit is {limit:?}, but must be a whole number from 1 to 1000")
            );
            assert_eq!(problem["limit"], "1000");
            assert_example_works(&service, &problem).await;
        }
    }
}

#[tokio::test]
async fn formats_are_listed_briefly_and_by_default_completely() {
    let service = Service::start(ALL_ON).await;
    let (long, brief) = (
        service.get("/formats").await,
        service.get("/formats?detail=brief").await,
    );
    let (all, listed) = (long.json(), brief.json());
    assert_eq!(all.get("next"), None);
    for (format, short) in items(&all, "formats").iter().zip(items(&listed, "formats")) {
        let canonical = text(&format["encodings"][0]["name"]);
        assert_eq!(
            format["minted"],
            format["rule"] != "decode-only",
            "{format}"
        );
        let expected = json!({ "name": format["name"], "summary": format["summary"], "rule": format["rule"],
            "minted": format["minted"], "bits": format["bits"], "example": format["example"]["encodings"][canonical] });
        assert_eq!(short, expected);
    }
    let [long, brief] = [long, brief].map(|answer| answer.body.len());
    println!("{long} bytes, and {brief} in brief");
    assert!(20 * brief < long, "{brief} of {long} bytes");
    for (query, reason) in [
        ("detail=long", "detail"),
        ("after=nothing", "after"),
        ("after=", "after"),
        ("name=siq", "unknown_parameter"),
    ] {
        let answer = service.get(&format!("/formats?{query}")).await;
        let problem = assert_problem(&answer, 422, "invalid-parameter", reason);
        assert_example_works(&service, &problem).await;
    }
    let unknown = service.get("/formats/nothing").await;
    let problem = assert_problem(&unknown, 404, "unknown-format", "");
    assert_eq!(problem["example"], "GET /formats?detail=brief");
}

#[tokio::test]
async fn a_date_alone_is_no_time_of_a_range() {
    let service = Service::start("").await;
    let answer = service
        .get("/formats/snowflake/range?from=2026-01-01&to=2026-01-02")
        .await;
    let problem = assert_problem(&answer, 422, "invalid-parameter", "from");
    let detail = text(&problem["detail"]);
    assert!(
        detail.contains("`2026-01-01`") && detail.contains("such as"),
        "{detail}"
    );
    assert_example_works(&service, &problem).await;
}
