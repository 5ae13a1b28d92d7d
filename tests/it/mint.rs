//! Checks the responses of `POST /ids/{format}`.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::service::{ALL_ON, NEW_YEAR, Service, ids_of, in_path};
use crate::support::{LONG, get_request, post_request, within};
use idmint_testing::http1::Answer;

/// A format whose ids count up from 0. Its epoch is the start of the service, and all ids fit into
/// one tick, which holds millions.
const FROM_ZERO: &str = r#"
[formats.counter]
summary   = "A counter that starts at zero"
rule      = "sequenced"
tick      = "1s"
epoch     = "2040-01-01T00:00:00Z"
fields    = [{ name = "time", kind = "time", bits = 33 }, { name = "sequence", kind = "sequence", bits = 24 }]
encodings = ["decimal", "hex", "hex_padded", "base36", "crockford", "hashids", "sqids"]
"#;

/// A setting that gives each format one lane (worker number), so that the tests can predict the
/// ids.
const ONE_LANE: &str = "worker.lanes = 1";

fn request_accepting(path: &str, media: &str) -> String {
    post_request(path, &format!("accept: {media}\r\n"), "")
}

fn assert_exact_length(answer: &Answer) {
    assert_eq!(answer.status, 200, "{}", answer.head);
    assert_eq!(
        answer.header("content-length"),
        Some(answer.body.len().to_string().as_str()),
        "{}",
        answer.head
    );
    assert_eq!(answer.header("transfer-encoding"), None);
}

/// Parses a decimal id.
fn number(id: &str) -> u128 {
    id.parse()
        .unwrap_or_else(|_| panic!("{id:?} is not decimal"))
}

fn assert_increasing(ids: &[u128]) {
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
}

#[tokio::test]
async fn an_answer_has_the_form_that_was_asked_for() {
    let service = Service::start(FROM_ZERO).await;
    let ask = async |media: &str| {
        service
            .exchange(&request_accepting("/ids/counter?count=3", media))
            .await
    };

    let json = ask("application/json").await;
    assert_eq!(
        json.text(),
        "{\"format\":\"counter\",\"count\":3,\"ids\":[\"0\",\"1\",\"2\"]}\n"
    );
    assert_eq!(json.header("content-type"), Some("application/json"));
    let text = ask("text/plain").await;
    assert_eq!(
        (text.text().as_str(), text.header("content-type")),
        ("3\n4\n5\n", Some("text/plain; charset=utf-8"))
    );
    let lines = ask("application/x-ndjson").await;
    assert_eq!(
        (lines.text().as_str(), lines.header("content-type")),
        ("\"6\"\n\"7\"\n\"8\"\n", Some("application/x-ndjson"))
    );
    let bytes = ask("application/octet-stream").await;
    let big_endian = [9_u64, 10, 11].map(u64::to_be_bytes).concat();
    assert_eq!(
        (&bytes.body, bytes.header("idmint-width")),
        (&big_endian, Some("8"))
    );
    assert_eq!(
        bytes.header("content-type"),
        Some("application/octet-stream")
    );
    for answer in [json, text, lines, bytes] {
        assert_exact_length(&answer);
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("idmint-count"), Some("3"));
        assert!(
            answer
                .header("x-request-id")
                .is_some_and(|id| !id.is_empty())
        );
    }
}

#[tokio::test]
async fn the_words_of_the_paper_are_other_names_of_types() {
    let words = [
        ("event", &["task"][..]),
        ("premium", &["product", "subscription"]),
        ("group", &["membership", "role"]),
        ("collection", &["feed"]),
        ("tag", &["category"]),
        ("thread", &["page"]),
        ("message", &["post", "revision"]),
    ];
    let service = Service::start("siq.type = 'post'").await;
    for (name, aliases) in words {
        for alias in aliases {
            let id = service
                .mint(&format!("/ids/siq?type={alias}"))
                .await
                .remove(0);
            let told = service
                .get(&format!("/decode/{id}?format=siq&encoding=hex_padded"))
                .await
                .json();
            assert_eq!(
                told["matches"][0]["fields"][4]["label"], name,
                "{alias}: {told}"
            );
        }
    }
    assert_eq!(
        service.mint("/ids/siq").await.len(),
        1,
        "the default type may be named so, too"
    );
}

#[tokio::test]
async fn bytes_with_an_encoding_are_refused_and_say_how_many_there_are() {
    let service = Service::start("").await;
    let asked = "/ids/siq?type=tag&encoding=bytes16_hex";
    let answer = service
        .exchange(&request_accepting(asked, "application/octet-stream"))
        .await;
    assert_eq!(
        (answer.status, &answer.json()["reason"]),
        (422, &json!("encoding"))
    );
    assert!(
        answer.text().contains("a number of 14 bytes"),
        "{}",
        answer.text()
    );
    assert_eq!(
        service
            .exchange(&request_accepting(asked, "text/plain"))
            .await
            .text()
            .trim_end()
            .len(),
        32
    );
}

#[tokio::test]
async fn bytes_are_as_many_as_the_greatest_id_needs() {
    let service = Service::start("").await;
    for (format, width) in [
        ("payment", 6),
        ("snowflake", 8),
        ("conjunction-v1", 8),
        ("flax", 12),
        ("siq?type=tag", 14),
    ] {
        let answer = service
            .exchange(&request_accepting(
                &format!("/ids/{format}"),
                "application/octet-stream",
            ))
            .await;
        assert_eq!(
            answer.header("idmint-width"),
            Some(width.to_string().as_str()),
            "{format}"
        );
        assert_eq!(answer.body.len(), width, "{format}");
    }
}

#[tokio::test]
async fn the_length_is_known_before_and_exact_where_the_ids_grow_longer() {
    let service = Service::start(FROM_ZERO).await;
    let mut client = service.connect().await;
    let mut next = 0;
    for media in ["application/json", "text/plain", "application/x-ndjson"] {
        // The ids count up from 0 to more than 100 000, so they become longer within a response,
        // such as from 9 to 10.
        for count in [1, 2, 255, 256, 257, 258, 5_000, 100_000] {
            let answer = client
                .exchange(&request_accepting(
                    &format!("/ids/counter?count={count}"),
                    media,
                ))
                .await;
            assert_exact_length(&answer);
            let text = answer.text();
            let numbers = text
                .split(|c: char| !c.is_ascii_digit())
                .filter_map(|digits| digits.parse::<u64>().ok());
            // Skip the first number of a JSON response, which is the count.
            let ids = numbers.skip(usize::from(media == "application/json"));
            assert!(ids.eq(next..next + count), "{count} as {media}");
            next += count;
        }
    }
}

#[tokio::test]
async fn the_length_is_exact_in_every_spelling_whose_length_varies() {
    let service = Service::start(FROM_ZERO).await;
    let mut client = service.connect().await;
    for count in [1, 2, 255, 256, 257, 258, 5_000, 20_000] {
        for encoding in ["hex", "crockford", "hashids", "sqids"] {
            let answer = client
                .exchange(&post_request(
                    &format!("/ids/counter?count={count}&encoding={encoding}"),
                    "",
                    "",
                ))
                .await;
            assert_exact_length(&answer);
            assert_eq!(ids_of(&answer).len(), count, "{encoding}");
        }
    }
}

#[tokio::test]
async fn random_ids_of_varying_length_are_built_whole_when_short_and_chunked_when_long() {
    let service = Service::start("").await;
    let short = service.post("/ids/flax?encoding=decimal&count=10000").await;
    assert_exact_length(&short);
    let long = service
        .post("/ids/flax?encoding=decimal&count=100000")
        .await;
    assert_eq!(
        (
            long.header("content-length"),
            long.header("transfer-encoding")
        ),
        (None, Some("chunked"))
    );
    for (answer, count) in [(short, 10_000), (long, 100_000)] {
        assert_eq!(
            ids_of(&answer).into_iter().collect::<BTreeSet<_>>().len(),
            count
        );
    }
    assert_exact_length(&service.post("/ids/flax?count=100000").await);
}

#[tokio::test]
async fn every_encoding_of_every_format_is_minted_and_decodes_back() {
    let service = Service::start(ALL_ON).await;
    let mut client = service.connect().await;
    let formats = service.get("/formats").await.json();
    let mut encodings = 0;
    let is_counted = |format: &&Value| {
        ["sequenced", "random"]
            .iter()
            .any(|rule| format["rule"] == *rule)
    };
    for format in formats["formats"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_counted)
    {
        let name = format["name"].as_str().unwrap();
        let of_type = if name == "siq" { "&type=message" } else { "" };
        for encoding in format["encodings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|encoding| encoding["name"].as_str().unwrap())
        {
            let id = service
                .mint(&format!("/ids/{name}?encoding={encoding}{of_type}"))
                .await
                .remove(0);
            let path = format!("/decode/{}?format={name}&encoding={encoding}", in_path(&id));
            let decoded = client.exchange(&get_request(&path)).await;
            assert_eq!(decoded.status, 200, "{id} of {name} in {encoding}");
            let reading = &decoded.json()["matches"][0];
            assert_eq!(reading["encodings"][encoding], id);
            let has_time = !format["tick"].is_null();
            let second = has_time.then_some("2040-01-01T00:00:00");
            assert_eq!(
                reading["time"].as_str().map(|time| &time[..19]),
                second,
                "{reading}"
            );
            assert_eq!(reading["plausible"], true);
            encodings += 1;
        }
    }
    assert_eq!(
        encodings,
        5 + 2 + 3 + 9 + 8 + 2 + 4 + 2 + 2 + 2 + 2 + 3 + 2 + 3
    );
}

#[tokio::test]
async fn ids_of_one_worker_only_increase() {
    let service = Service::start(ONE_LANE).await;
    let mut last = 0;
    for millis in 0..20 {
        for count in [1, 7, 4_096] {
            let ids = service.mint(&format!("/ids/snowflake?count={count}")).await;
            let ids: Vec<_> = ids.iter().map(|id| number(id)).collect();
            assert!(ids[0] > last, "after {last}: {}", ids[0]);
            assert_increasing(&ids);
            last = *ids.last().unwrap();
        }
        service.clock.advance(Duration::from_millis(millis));
    }
}

#[tokio::test]
async fn random_ids_of_one_answer_ascend_and_those_of_a_process_where_the_format_says_so() {
    let service =
        Service::start("formats.firebase.monotonic = 'process'\nformats.flax.monotonic = 'batch'")
            .await;
    for (name, follows) in [
        ("uuid7", true),
        ("firebase", true),
        ("ulid", false),
        ("flax", false),
        ("uuid4", false),
    ] {
        let monotonic = service.get(&format!("/formats/{name}")).await.json()["monotonic"].clone();
        let mut last = String::new();
        // The clock stands still. Only the order of the requests decides which id is greater.
        for count in [1, 1, 2, 1_000, 1, 100_000, 1] {
            let ids = service
                .mint(&format!("/ids/{name}?encoding=hex_padded&count={count}"))
                .await;
            let ascends = ids.is_sorted_by(|one, next| one < next);
            assert!(ascends || monotonic == "off", "{count} ids of {name}");
            assert!(
                last < ids[0] || !follows,
                "{name}: {} came after {last}",
                ids[0]
            );
            last.clone_from(&ids[ids.len() - 1]);
        }
    }
    assert_eq!(
        service.get("/formats/snowflake").await.json()["monotonic"],
        Value::Null
    );
    assert_eq!(
        service.get("/formats/snowflake").await.json()["sequence_spread"],
        64
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_at_the_same_time_never_get_the_same_id() {
    // The clock stands still, so each lane (worker number) can mint only for the current tick and
    // for the few ticks that ids may be ahead of it. The callers request 20 000 ids, which is
    // fewer.
    let service = Service::start("").await;
    let mut callers = Vec::new();
    for _ in 0..8 {
        let mut client = service.connect().await;
        callers.push(tokio::spawn(async move {
            let mut ids = Vec::new();
            for _ in 0..25 {
                ids.extend(ids_of(
                    &client
                        .exchange(&post_request("/ids/snowflake?count=100", "", ""))
                        .await,
                ));
            }
            ids
        }));
    }
    let mut all = BTreeSet::new();
    for client in callers {
        all.extend(within(LONG, client).await.unwrap());
    }
    assert_eq!(all.len(), 8 * 25 * 100);
    assert_eq!(service.minted().await, 20_000.0);
}

#[tokio::test]
async fn a_siq_has_the_type_and_the_domain_that_were_asked_for() {
    let service = Service::start("siq = { domains = ['example.com', 'a'], type = 'tag' }").await;
    let types = service.get("/formats/siq").await.json()["types"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect::<Vec<_>>();
    assert_eq!(types.len(), 15);
    let asked = types.iter().map(|of_type| {
        (
            format!("type={of_type}"),
            of_type.as_str(),
            "2261653831",
            "example.com",
        )
    });
    let domains = [
        ("domain=a".to_owned(), "tag", "2951628987", "a"),
        (
            "type=user&domain=example.com".to_owned(),
            "user",
            "2261653831",
            "example.com",
        ),
        (String::new(), "tag", "2261653831", "example.com"),
    ];
    for (query, of_type, hash, domain) in asked.chain(domains) {
        let answer = service.post(&format!("/ids/siq?{query}")).await;
        assert!(answer.json()["label"].is_null(), "{}", answer.text());
        let decoded = service
            .get(&format!(
                "/decode/{}?format=siq&encoding=hex_padded",
                ids_of(&answer)[0]
            ))
            .await
            .json();
        let fields = decoded["matches"][0]["fields"].as_array().unwrap();
        assert_eq!(
            (&fields[2]["value"], &fields[2]["label"]),
            (&json!(hash), &json!(domain)),
            "{query}"
        );
        assert_eq!(fields[4]["label"], of_type, "{query}");
    }
}

#[tokio::test]
async fn siqs_of_no_domain_are_labelled_for_development() {
    let service = Service::start("").await;
    let answer = service.post("/ids/siq?type=message").await.json();
    assert_eq!(answer["label"], "development");
    let id = answer["ids"][0].as_str().unwrap();
    assert!(
        id[16..].starts_with("00000000"),
        "the hash of no domain is zero: {id}"
    );
    assert!(service.post("/ids/snowflake").await.json()["label"].is_null());
}

#[tokio::test]
async fn each_type_of_a_siq_has_a_sequence_of_its_own() {
    let service = Service::start(ONE_LANE).await;
    let serial = async |of_type: &str| {
        let id = service
            .mint(&format!("/ids/siq?type={of_type}"))
            .await
            .remove(0);
        let decoded = service
            .get(&format!("/decode/{id}?format=siq"))
            .await
            .json();
        decoded["matches"][0]["fields"][3]["value"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let serials = [
        serial("user").await,
        serial("message").await,
        serial("user").await,
        serial("content").await,
    ];
    assert_eq!(serials, ["0", "0", "1", "0"]);
}

#[tokio::test]
async fn the_body_can_say_how_many() {
    let service = Service::start("").await;
    let body = post_request(
        "/ids/payment",
        "content-type: application/json\r\n",
        r#"{"count": 5}"#,
    );
    let answer = service.exchange(&body).await.json();
    assert_eq!(
        (&answer["count"], answer["ids"].as_array().unwrap().len()),
        (&json!(5), 5)
    );
    let empty = post_request("/ids/payment", "content-type: application/json\r\n", "{}");
    assert_eq!(service.exchange(&empty).await.json()["count"], 1);
}

#[tokio::test]
async fn the_callers_request_id_comes_back() {
    let service = Service::start("").await;
    let answer = service
        .exchange(&post_request(
            "/ids/payment",
            "x-request-id: order-4711\r\n",
            "",
        ))
        .await;
    assert_eq!(answer.header("x-request-id"), Some("order-4711"));
}

#[tokio::test]
async fn an_id_of_the_next_second_is_held_until_that_begins() {
    let service = Service::start(ONE_LANE).await;
    let first = service
        .mint("/ids/payment?count=1296&encoding=decimal")
        .await;
    service.clock.advance(Duration::from_millis(800));
    let mut client = service.connect().await;
    let held = tokio::spawn(async move {
        client
            .exchange(&post_request("/ids/payment?encoding=decimal", "", ""))
            .await
    });

    service
        .until_metric(r#"idmint_mint_waits_total{format="payment"}"#, 1.0)
        .await;
    service.clock.advance(Duration::from_millis(199));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!held.is_finished(), "its second has not begun");
    service.clock.advance(Duration::from_millis(1));

    let answer = within(LONG, held).await.unwrap();
    assert_eq!(
        number(&ids_of(&answer)[0]),
        number(&first[0]) + 36_u128.pow(3)
    );
    assert_eq!(
        service
            .metric(r#"idmint_sequence_exhausted_total{format="payment",worker="0"}"#)
            .await,
        1.0
    );
    assert_eq!(service.metric("idmint_mint_wait_seconds_count").await, 1.0);
}

#[tokio::test]
async fn one_id_waits_behind_one_long_request_and_not_behind_all_of_them() {
    let service = Service::start("").await;
    let ask = async |path: &str| {
        let mut client = service.connect().await;
        client.send(post_request(path, "", "")).await;
        client
    };
    let mut long = Vec::new();
    // Two of these requests use up all ids that the eight lanes (worker numbers) have for the
    // current tick and for the few ticks that ids may be ahead of it.
    for _ in 0..10 {
        long.push(ask("/ids/snowflake?count=100000").await);
    }
    let waits = r#"idmint_mint_waits_total{format="snowflake"}"#;
    service.until_metric(waits, 1.0).await;
    let mut single = ask("/ids/snowflake").await;
    service.until_metric(waits, 2.0).await;
    service.clock.advance(Duration::from_millis(4));
    assert_eq!(within(LONG, single.receive()).await.status, 200);
}

#[tokio::test]
async fn an_id_that_is_too_far_away_is_refused_with_its_time() {
    let service = Service::start(ONE_LANE).await;
    service.mint("/ids/payment?count=1296").await;
    // The service holds a response for at most 250 ms. In all of these cases, the next id is due
    // later.
    for (advanced_ms, retry_after_ms) in [(1, 999), (99, 900), (200, 700), (449, 251)] {
        service.clock.advance(Duration::from_millis(advanced_ms));
        let refused = service.post("/ids/payment").await;
        assert_eq!(refused.status, 503, "{refused:?}");
        let problem = refused.json();
        assert_eq!(problem["type"], "/problems/sequence-exhausted");
        assert_eq!(problem["retry_after_ms"], retry_after_ms);
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    assert_eq!(
        service
            .metric(r#"idmint_sequence_exhausted_total{format="payment",worker="0"}"#)
            .await,
        4.0
    );
    assert_eq!(
        service
            .metric(r#"idmint_mint_requests_total{format="payment",outcome="refused"}"#)
            .await,
        4.0
    );
    assert_eq!(
        service
            .metric(r#"idmint_mint_waits_total{format="payment"}"#)
            .await,
        0.0
    );
    assert_eq!(
        service
            .metric(r#"idmint_ids_minted_total{format="payment"}"#)
            .await,
        1296.0
    );
    service.clock.advance(Duration::from_millis(251));
    assert_eq!(service.post("/ids/payment").await.status, 200);
}

#[tokio::test]
async fn nothing_is_held_where_exhaustion_is_refused() {
    let service = Service::start(&format!("{ONE_LANE}\nmint.on_exhausted = 'refuse'")).await;
    service.mint("/ids/payment?count=1296").await;
    service.clock.advance(Duration::from_millis(999));
    let refused = service.post("/ids/payment").await;
    assert_eq!(
        (refused.status, &refused.json()["retry_after_ms"]),
        (503, &json!(1))
    );
    assert_eq!(
        service
            .metric(r#"idmint_mint_waits_total{format="payment"}"#)
            .await,
        0.0
    );
}

#[tokio::test]
async fn a_count_that_can_never_be_had_is_refused_with_the_one_that_can() {
    let service = Service::start(ONE_LANE).await;
    let refused = service.post("/ids/payment?count=1297").await;
    assert_eq!(refused.status, 422, "{refused:?}");
    let problem = refused.json();
    assert_eq!(
        (&problem["type"], &problem["limit"]),
        (&json!("/problems/invalid-parameter"), &json!("1296"))
    );
    assert!(
        problem["detail"].as_str().unwrap().contains("1297"),
        "{problem}"
    );
    assert_eq!(problem["example"], "POST /ids/payment?count=1296");
    assert_eq!(service.minted().await, 0.0);
    assert_eq!(service.mint("/ids/payment?count=1296").await.len(), 1296);
}

#[tokio::test]
async fn a_batch_beyond_one_lane_comes_as_increasing_runs_over_several() {
    let service = Service::start("").await;
    let ids = service
        .mint("/ids/payment?count=10368&encoding=decimal")
        .await;
    let ids: Vec<_> = ids.iter().map(|id| number(id)).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 10_368);
    let runs: Vec<_> = ids.chunk_by(|a, b| a / 1296 == b / 1296).collect();
    runs.iter().for_each(|run| assert_increasing(run));
    let workers: Vec<_> = runs
        .iter()
        .map(|run| (run[0] / 1296 % 36, run.len()))
        .collect();
    assert_eq!(
        workers,
        (0..8).map(|worker| (worker, 1296)).collect::<Vec<_>>()
    );
    assert_eq!(
        service.post("/ids/payment").await.status,
        503,
        "the second is used up on all lanes"
    );
}

#[tokio::test]
async fn a_wall_clock_set_back_is_counted_and_ids_go_on_upwards() {
    let service = Service::start(ONE_LANE).await;
    let before = number(&service.mint("/ids/snowflake").await[0]);
    service
        .clock
        .set_wall(NEW_YEAR.before(Duration::from_secs(3600)));
    service
        .until_metric("idmint_clock_regressions_total", 1.0)
        .await;
    assert_eq!(
        service.metric("idmint_clock_regression_seconds_sum").await,
        3600.0
    );
    assert_eq!(service.metric("idmint_clock_skew_seconds").await, -3600.0);
    let mut last = before;
    for _ in 0..10 {
        service.clock.advance(Duration::from_millis(1));
        let id = number(&service.mint("/ids/snowflake").await[0]);
        assert!(id > last, "{id} after {last}");
        last = id;
    }
    assert_eq!(service.get("/health/ready").await.status, 200);
}

#[tokio::test]
async fn a_wall_clock_far_ahead_is_shown_and_not_followed() {
    let service = Service::start(ONE_LANE).await;
    service
        .clock
        .set_wall(NEW_YEAR.after(Duration::from_secs(3600)));
    service
        .until_metric("idmint_clock_skew_seconds", 3600.0)
        .await;
    service.clock.advance(Duration::from_secs(10));
    let id = service.mint("/ids/snowflake").await.remove(0);
    let decoded = service
        .get(&format!("/decode/{id}?format=snowflake&encoding=decimal"))
        .await
        .json();
    assert_eq!(decoded["matches"][0]["time"], "2040-01-01T00:00:10.000Z");
    assert_eq!(service.get("/health/ready").await.status, 200);
    assert_eq!(service.metric("idmint_clock_regressions_total").await, 0.0);
}
