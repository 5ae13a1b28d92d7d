//! Checks the descriptions of `GET /formats`, and the range of ids for a time span.

use serde_json::{Value, json};

use crate::service::{ALL_ON, Service};
use crate::support::post_request;

/// Returns every number in a JSON document.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Number(number) => number.as_f64().into_iter().collect(),
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        Value::Object(members) => members.values().flat_map(numbers).collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => Vec::new(),
    }
}

#[tokio::test]
async fn the_example_of_every_format_decodes_as_that_format_in_every_spelling() {
    let service = Service::start(ALL_ON).await;
    for format in service.get("/formats").await.json()["formats"]
        .as_array()
        .unwrap()
    {
        let (name, example) = (format["name"].as_str().unwrap(), &format["example"]);
        for (encoding, text) in example["encodings"].as_object().unwrap() {
            let path = format!(
                "/decode/{}?format={name}&encoding={encoding}",
                text.as_str().unwrap()
            );
            let decoded = service.get(&path).await.json();
            let found = &decoded["matches"][0];
            // The other encodings do not contain the type, so decoding them gives a canonical text
            // without it.
            let mut expected = example["encodings"].clone();
            if !format["types_minted"].is_null() && *encoding != format["encodings"][0]["name"] {
                let untyped = &mut expected[format["encodings"][0]["name"].as_str().unwrap()];
                *untyped = untyped
                    .as_str()
                    .unwrap()
                    .strip_prefix("user_")
                    .unwrap()
                    .into();
            }
            assert_eq!(found["encodings"], expected, "{path}: {decoded}");
            assert_eq!(found["value"], example["value"], "{path}");
        }
    }
}

#[tokio::test]
async fn a_description_holds_no_number_that_a_parser_would_round() {
    let service = Service::start("").await;
    let formats = service.get("/formats").await.json();
    let greatest = numbers(&formats).into_iter().fold(0.0, f64::max);
    assert!(greatest < 9_007_199_254_740_992.0, "{greatest}");
}

#[tokio::test]
async fn a_custom_format_is_described_like_a_built_in_one() {
    let service = Service::start(
        r#"
        [formats.token]
        summary   = "Nothing but random bits"
        rule      = "random"
        fields    = [{ name = "random", kind = "random", bits = 122 }]
        encodings = [{ kind = "uuid8" }, "hashids"]
        "#,
    )
    .await;
    let token = service.get("/formats/token").await.json();
    assert_eq!(token["order"], "None.");
    assert_eq!(
        token["collision_odds"],
        json!({ "within": null, "random_bits": "122", "one_in_a_million": "3260000000000000", "even": "2710000000000000000" })
    );
    assert_eq!(token["example"]["time"], Value::Null);
    assert_eq!(token["encodings"][0]["length"], 36);
    assert!(
        token["encodings"][1]["length_min"].as_u64().unwrap()
            < token["encodings"][1]["length_max"].as_u64().unwrap()
    );
    let postgresql = &token["storage"][0];
    assert_eq!(
        (&postgresql["column"], &postgresql["bind"]),
        (&"uuid".into(), &"the encoding uuid8".into())
    );
    assert_eq!(
        postgresql["sql"]["select_range"],
        Value::Null,
        "ids of this format carry no time"
    );
}

#[tokio::test]
async fn batch_max_is_the_most_ids_of_any_type() {
    let service = Service::start(
        r#"
        [formats.coded]
        summary   = "A sequence that is shorter in types with longer suffixes"
        rule      = "sequenced"
        tick      = "1ms"
        epoch     = "2025-01-01T00:00:00Z"
        encodings = ["decimal"]
        fields    = [
            { name = "time", kind = "time", bits = 42 },
            { name = "kind", kind = "qualifier", bits = 5, codes = [
                { suffix = "0", name = "a" },
                { suffix = "01", name = "b" },
                { suffix = "011", name = "c" },
                { suffix = "111", name = "d" },
            ] },
        ]
        "#,
    )
    .await;
    let coded = service.get("/formats/coded").await.json();
    let most: u64 = coded["batch_max"].as_str().unwrap().parse().unwrap();
    // Minting `batch_max` ids would take seconds, so the test sends only requests that are refused.
    for (of_type, has_shortest) in [("a", false), ("b", false), ("c", true), ("d", true)] {
        let path = format!("/ids/coded?count=100000&type={of_type}");
        let refused = service.post(&path).await;
        let is_most = refused.text().contains(&format!("at most {most} ids"));
        assert_eq!(
            (refused.status, is_most),
            (422, has_shortest),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn minted_ids_lie_in_the_range_of_their_time() {
    let service = Service::start("").await;
    let range = service
        .get("/formats/snowflake/range?from=2040-01-01T00:00:00Z&to=2040-01-01T00:01:00Z")
        .await
        .json();
    assert_eq!(
        (&range["from"], &range["to"]),
        (
            &"2040-01-01T00:00:00Z".into(),
            &"2040-01-01T00:01:00Z".into()
        )
    );
    for from in [
        "2040-01-01T00:00:00%2B00:00",
        "2040-01-01T01:00:00+01:00",
        "2040-01-01T01:00:00%2001:00",
        "2039-12-31T18:30:00-05:30",
    ] {
        let path = format!("/formats/snowflake/range?from={from}&to=2040-01-01T00:01:00Z");
        assert_eq!(service.get(&path).await.json(), range, "{from}");
    }
    let [least, greatest] = ["least", "greatest"].map(|end| {
        range[end]["encodings"]["hex_padded"]
            .as_str()
            .unwrap()
            .to_owned()
    });
    let ids = service
        .mint("/ids/snowflake?count=100&encoding=hex_padded")
        .await;
    assert!(
        ids.iter().all(|id| least <= *id && *id <= greatest),
        "{ids:?} in {least} to {greatest}"
    );
    let next = service
        .get("/formats/snowflake/range?from=2040-01-01T00:01:00Z&to=2040-01-01T00:02:00Z")
        .await
        .json();
    let value = |range: &Value, end: &str| {
        range[end]["value"]
            .as_str()
            .unwrap()
            .parse::<u128>()
            .unwrap()
    };
    assert_eq!(
        value(&range, "greatest") + 1,
        value(&next, "least"),
        "no id is in neither span"
    );
}

#[tokio::test]
async fn a_span_that_reaches_beyond_the_format_is_cut() {
    let service = Service::start("").await;
    let range = service
        .get("/formats/payment/range?from=0001-01-01T00:00:00Z&to=9999-01-01T00:00:00Z")
        .await
        .json();
    assert_eq!(
        (&range["from"], &range["to"]),
        (
            &"2024-01-01T00:00:00Z".into(),
            &"2092-12-23T05:45:36Z".into()
        )
    );
    assert_eq!(
        range["least"]["encodings"],
        json!({ "base36": "000000000" })
    );
    assert_eq!(
        range["greatest"]["encodings"],
        json!({ "base36": "ZZZZZZZZZ" })
    );
}

#[tokio::test]
async fn a_format_that_is_no_longer_minted_is_read_and_listed_and_every_mint_is_refused() {
    let names = ["payment", "uuid7", "evently", "conjunction"];
    let settings = names.map(|name| format!("[formats.{name}]\nmint = false\n"));
    let service = Service::start(&settings.concat()).await;
    let key = "content-type: application/json\r\nidempotency-key: k\r\n";
    let json = "content-type: application/json\r\n";
    let text = "accept: text/plain\r\n";
    let event = r#"{"event":"Counted","entities":{},"data":1}"#;
    let report = r#"{"tca":"2024-02-01T00:00:00Z","primary":25544,"secondary":48274}"#;
    for (name, request) in [
        ("payment", post_request("/ids/payment", "", "")),
        (
            "payment",
            post_request("/ids/payment?count=100000", text, ""),
        ),
        ("uuid7", post_request("/ids/uuid7", json, r#"{"count":20}"#)),
        ("evently", post_request("/ids/evently", key, event)),
        ("evently", post_request("/ledgers", key, event)),
        (
            "conjunction",
            post_request("/ids/conjunction", json, report),
        ),
        ("conjunction", post_request("/conjunctions", json, report)),
    ] {
        let answer = service.exchange(&request).await;
        let (problem, setting) = (answer.json(), format!("formats.{name}.mint = false"));
        assert_eq!(
            (answer.status, &problem["reason"]),
            (422, &json!("format")),
            "{problem}"
        );
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(&setting), "{request}: {problem}");
    }
    assert_eq!(service.minted().await, 0.0);
    for (name, id) in [
        ("payment", "1I9ZC1002"),
        ("conjunction", "zwwqlzz-pjjmxmd-lkpvwq"),
    ] {
        let path = format!("/decode/{id}");
        let decoded = service.get(&path).await.json();
        assert_eq!(decoded["matches"][0]["format"], name, "{decoded}");
        let info = service.get(&format!("/formats/{name}")).await.json();
        assert_eq!(
            [&info["minted"], &info["batch_max"]],
            [&json!(false), &json!(null)]
        );
    }
    let listed = service.get("/formats").await.json();
    let listed = listed["formats"].as_array().unwrap();
    assert!(
        names
            .iter()
            .all(|name| listed.iter().any(|info| info["name"] == *name))
    );
    service.mint("/ids/snowflake").await;
}

#[tokio::test]
async fn a_copy_of_a_format_that_is_no_longer_minted_is_minted() {
    let service = Service::start(
        "[formats.payment]\nmint = false\n[formats.invoice]\nlike = 'payment'\nepoch = '2030-01-01T00:00:00Z'",
    )
    .await;
    service.mint("/ids/invoice").await;
    assert_eq!(service.post("/ids/payment").await.status, 422);
}

#[tokio::test]
async fn a_former_name_mints_and_reads_the_encoding_for_which_it_stands() {
    for settings in [
        "",
        "[formats.conjunction-v1-label]\nenabled = true",
        "formats.enabled = ['conjunction-v1-label', 'payment']",
    ] {
        let service = Service::start(settings).await;
        let mut labels = Vec::new();
        for path in [
            "/ids/conjunction-v1-label",
            "/ids/conjunction%2Dv1-label?encoding=hashids",
            "/ids/conjunction-v1?encoding=label",
        ] {
            labels.extend(service.mint(path).await);
        }
        for label in &labels {
            assert_eq!(
                label.split('-').map(str::len).collect::<Vec<_>>(),
                [6, 6, 5]
            );
            let mut readings = Vec::new();
            for query in [
                "",
                "?format=conjunction-v1-label",
                "?format=conjunction-v1-label&encoding=hashids",
                "?format=conjunction-v1&encoding=label",
            ] {
                let decoded = service.get(&format!("/decode/{label}{query}")).await.json();
                let [only] = decoded["matches"].as_array().unwrap().as_slice() else {
                    panic!("{settings} {query}: {decoded}")
                };
                assert_eq!(
                    [&only["format"], &only["encoding"]],
                    ["conjunction-v1", "label"]
                );
                readings.push(only["value"].clone());
            }
            assert!(readings.iter().all(|value| *value == readings[0]));
        }
        let numbers = service
            .mint("/ids/conjunction-v1-label?encoding=decimal")
            .await;
        assert!(numbers[0].parse::<u64>().is_ok(), "{numbers:?}");
        let info = service.get("/formats/conjunction-v1-label").await.json();
        assert_eq!(info["name"], "conjunction-v1");
        let listed = service.get("/formats").await.text();
        assert!(!listed.contains("conjunction-v1-label"), "{settings}");
    }
}
