//! Checks the responses of `POST /decode`, which decodes many texts.

use std::time::Duration;

use idmint_core::time::{ManualClock, UnixNanos};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::service::{Service, in_path};
use crate::support::{LONG, get_request, post_request, within};
use idmint_testing::cases::{self, FORMATS};
use idmint_testing::http1::Answer;

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";
const TEXT: &str = "text/plain";

fn request(query: &str, from: &str, to: &str, body: &str) -> String {
    post_request(
        &format!("/decode{query}"),
        &format!("content-type: {from}\r\naccept: {to}\r\n"),
        body,
    )
}

/// Sends the texts as a JSON array, and returns the array of results.
async fn decode_array(service: &Service, query: &str, texts: &[&str]) -> Vec<Value> {
    let answer = service
        .exchange(&request(query, JSON, JSON, &json!(texts).to_string()))
        .await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some(JSON)),
        "{answer:?}"
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let Value::Array(told) = answer.json() else {
        panic!("{answer:?}")
    };
    assert_eq!(told.len(), texts.len());
    told
}

#[tokio::test]
async fn every_published_id_is_told_of_in_order_as_its_own_answer_tells_of_the_best_reading() {
    let service = Service::start(FORMATS).await;
    let mut client = service.connect().await;
    let cases = cases::valid();
    let texts: Vec<_> = cases
        .iter()
        .flat_map(|case| case.encodings.iter().map(|(_, text)| text.as_str()))
        .collect();
    let brief = decode_array(&service, "", &texts).await;
    let full = decode_array(&service, "?detail=full", &texts).await;
    for ((text, brief), full) in texts.iter().zip(brief).zip(full) {
        let alone = client
            .exchange(&get_request(&format!("/decode/{}", in_path(text))))
            .await
            .json();
        if full["matches"] == json!([]) {
            let told =
                ["rejected", "did_you_mean", "unlikely"].map(|name| full[name] == alone[name]);
            assert_eq!(told, [true; 3], "{full} {alone}");
        } else {
            assert_eq!(full, alone, "{text}");
        }
        let best = &alone["matches"][0];
        let none = json!([]);
        let or_none = |value: &Value, name| {
            if value.is_null() && name == "fields" {
                none.clone()
            } else {
                value.clone()
            }
        };
        let members = ["format", "encoding", "time", "fields"]
            .map(|name| (name.to_owned(), or_none(&best[name], name)));
        let of_all = [
            ("id", Value::from(*text)),
            ("ambiguous", Value::from(alone["ambiguous"] == true)),
        ];
        let of_all = of_all.map(|(name, value)| (name.to_owned(), value));
        let mut expected: serde_json::Map<_, _> = of_all.into_iter().chain(members).collect();
        if full["did_you_mean"] != json!([]) {
            expected.insert("did_you_mean".to_owned(), full["did_you_mean"].clone());
        }
        if full["notes"] != json!([]) {
            expected.insert("notes".to_owned(), full["notes"].clone());
        }
        assert_eq!(brief, Value::Object(expected));
    }
    assert_eq!(service.minted().await, 0.0);
}

#[tokio::test]
async fn a_text_of_no_format_between_ids_is_told_of_and_stops_nothing() {
    let service = Service::start("").await;
    let texts = [
        "1I9ZC1002",
        "not an id",
        "'1i9zc1002'",
        "1I9ZC1002",
        "\u{1F980}\n\"\\",
        "1I9ZC1002",
    ];
    let brief = decode_array(&service, "", &texts).await;
    let none = |id: &str| json!({ "id": id, "format": null, "encoding": null, "time": null, "fields": [], "ambiguous": false });
    for at in [0, 3, 5] {
        assert_eq!(
            (&brief[at]["id"], &brief[at]["format"]),
            (&"1I9ZC1002".into(), &"payment".into())
        );
        assert_eq!(brief[at], brief[0]);
    }
    assert_eq!([&brief[1], &brief[4]], [&none(texts[1]), &none(texts[4])]);
    let mut near = none(texts[2]);
    near["did_you_mean"] = json!(["1I9ZC1002"]);
    assert_eq!(brief[2], near);

    let full = decode_array(&service, "?detail=full", &texts).await;
    let alone = service.get(&format!("/decode/{}", in_path(texts[2]))).await;
    assert_eq!(alone.status, 404);
    let problem = alone.json();
    assert_eq!(full[2]["matches"], json!([]));
    assert_eq!(
        (&full[2]["rejected"], &full[2]["did_you_mean"]),
        (&problem["rejected"], &problem["did_you_mean"])
    );
    assert_eq!(full[2]["did_you_mean"], json!(["1I9ZC1002"]));
    assert_eq!(
        service
            .metric(r#"idmint_decode_requests_total{outcome="matched"}"#)
            .await,
        2.0
    );
}

#[tokio::test]
async fn every_form_of_body_has_the_same_answer_in_every_form_of_answer() {
    let service = Service::start("").await;
    let bodies = [
        (JSON, "[\"1I9ZC1002\", \"?\",\"1I9Z\\u0043100Z\"]"),
        (NDJSON, "\"1I9ZC1002\"\n \"?\"\r\n\"1I9Z\\u0043100Z\""),
        (TEXT, "1I9ZC1002\n?\r\n1I9ZC100Z\n"),
    ];
    let first = r#"{"id":"1I9ZC1002","format":"payment","encoding":"base36","time":"2026-11-21T03:36:01Z","fields":[{"name":"time","kind":"time","value":"91164961","width":{"digits":6,"radix":36},"label":null},{"name":"worker","kind":"worker","value":"0","width":{"digits":1,"radix":36},"label":null},{"name":"sequence","kind":"sequence","value":"2","width":{"digits":2,"radix":36},"label":null}],"ambiguous":false}"#;
    let second =
        r#"{"id":"?","format":null,"encoding":null,"time":null,"fields":[],"ambiguous":false}"#;
    let third = first
        .replace("1002", "100Z")
        .replace(r#""value":"2""#, r#""value":"35""#);
    let columns = "payment\tbase36\t2026-11-21T03:36:01Z\ttime=91164961\tworker=0\tsequence";
    for (from, body) in bodies {
        for (to, expected) in [
            (JSON, format!("[{first},{second},{third}]\n")),
            (NDJSON, format!("{first}\n{second}\n{third}\n")),
            (
                TEXT,
                format!("1I9ZC1002\t{columns}=2\n?\t-\t-\t-\n1I9ZC100Z\t{columns}=35\n"),
            ),
        ] {
            let answer = service.exchange(&request("", from, to, body)).await;
            assert_eq!(
                (answer.status, answer.text().as_str()),
                (200, expected.as_str()),
                "{from} to {to}"
            );
            let content_type = if to == TEXT {
                "text/plain; charset=utf-8"
            } else {
                to
            };
            assert_eq!(answer.header("content-type"), Some(content_type));
        }
    }
    let drawn = service
        .exchange(&request("?detail=full", TEXT, TEXT, "1I9ZC1002\n?\n"))
        .await
        .text();
    let alone =
        get_request("/decode/1I9ZC1002").replace("\r\n\r\n", "\r\naccept: text/plain\r\n\r\n");
    let alone = service.exchange(&alone).await.text();
    assert!(
        drawn.starts_with(&format!("{alone}\n?\nno format reads this text\n")),
        "{drawn}"
    );
}

#[tokio::test]
async fn no_texts_have_no_answers() {
    let service = Service::start("").await;
    for query in ["", "?detail=full"] {
        for (from, body) in [(JSON, "[ ]"), (NDJSON, ""), (TEXT, "")] {
            for (to, expected) in [(JSON, "[]\n"), (NDJSON, ""), (TEXT, "")] {
                let answer = service.exchange(&request(query, from, to, body)).await;
                assert_eq!(
                    (answer.status, answer.text().as_str()),
                    (200, expected),
                    "{from} to {to}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_line_of_text_stays_one_line() {
    let service = Service::start("").await;
    let answer = service
        .exchange(&request("", JSON, TEXT, r#"["a\tb\nc\\d\u0000é"]"#))
        .await;
    assert_eq!(answer.text(), "a\\tb\\nc\\\\d\\u{0}é\t-\t-\t-\n");
}

#[tokio::test]
async fn formats_and_spellings_can_be_pinned() {
    let service = Service::start("").await;
    let id = "175928847299117063";
    for format in ["snowflake", "twitter", "conjunction"] {
        let brief = decode_array(&service, &format!("?format={format}"), &[id, "1I9ZC1002"]).await;
        assert_eq!(
            [&brief[0]["format"], &brief[1]["format"]],
            [&Value::from(format), &Value::Null]
        );
    }
    let brief = decode_array(&service, "?format=siq&encoding=crockford", &[id]).await;
    assert_eq!(
        (&brief[0]["format"], &brief[0]["encoding"]),
        (&"siq".into(), &"crockford".into())
    );
}

#[tokio::test]
async fn a_long_answer_comes_whole_and_in_order() {
    let service = Service::start("").await;
    let texts: Vec<_> = (0..5_000)
        .map(|at| format!("1I9ZC1{}{at:04}", if at % 7 == 0 { "x" } else { "" }))
        .collect();
    let body = texts.join("\n");
    for (to, separator) in [(JSON, "},{\"id\""), (NDJSON, "\n")] {
        let answer: Answer = service.exchange(&request("", TEXT, to, &body)).await;
        assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
        let told: Vec<Value> = match to {
            JSON => serde_json::from_str(&answer.text()).unwrap(),
            _ => answer
                .text()
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
        };
        assert!(answer.text().contains(separator));
        assert!(told.iter().map(|one| &one["id"]).eq(&texts), "{to}");
    }
}

#[tokio::test]
async fn an_answer_that_would_be_longer_than_64_mib_is_refused_unless_it_comes_a_line_at_a_time() {
    let service = Service::start("").await;
    let texts = |count: usize| "175928847299117063\n".repeat(count);
    let refused = service
        .exchange(&request("?detail=full", TEXT, JSON, &texts(30_000)))
        .await;
    let problem = refused.json();
    assert_eq!(
        (refused.status, &problem["reason"], &problem["limit"]),
        (422, &"answer_len".into(), &"67108864 bytes".into())
    );
    assert!(
        problem["detail"].as_str().unwrap().contains(NDJSON),
        "{problem}"
    );
    for to in [NDJSON, TEXT] {
        let mut client = service.connect().await;
        client
            .send(&request("?detail=full", TEXT, to, &texts(30_000)))
            .await;
        let mut head = [0; 15];
        within(LONG, client.stream.read_exact(&mut head))
            .await
            .unwrap();
        assert_eq!(head, *b"HTTP/1.1 200 OK", "{to}");
    }
    // This response is so long that the service computes its length first, but short enough to be
    // accepted. Retry, because the requests above count as long work until the service notices that
    // their callers have left.
    let told = within(LONG, async {
        loop {
            let told = service
                .exchange(&request("?detail=full", TEXT, JSON, &texts(4_000)))
                .await;
            if told.status != 503 {
                break told;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let Value::Array(answers) = told.json() else {
        panic!("{told:?}")
    };
    println!(
        "{} answers of {} bytes together",
        answers.len(),
        told.text().len()
    );
    assert_eq!((told.status, answers.len()), (200, 4_000));
}

#[tokio::test]
async fn many_are_decoded_while_none_can_be_minted() {
    // The clock was never set, and shows a time long before this program was built.
    let service =
        Service::start_on(ManualClock::at(UnixNanos::from_seconds(1_000_000_000)), "").await;
    let brief = decode_array(&service, "?format=snowflake", &["175928847299117063"]).await;
    assert_eq!(brief[0]["time"], "2016-04-30T11:18:25.796Z");
}

#[tokio::test]
async fn every_payment_id_is_ambiguous_while_payment_wide_is_read_too() {
    for mint in [true, false] {
        let settings = format!("[formats.payment-wide]\nenabled = true\nmint = {mint}");
        let service = Service::start(&settings).await;
        let ids = service.mint("/ids/payment?count=1000").await;
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let decoded = decode_array(&service, "", &ids).await;
        let is_ambiguous = |decoded: &&Value| decoded["ambiguous"] == true;
        assert_eq!(decoded.iter().filter(is_ambiguous).count(), 1000, "{mint}");
        let alone = service.get(&format!("/decode/{}", ids[999])).await.json();
        let formats = [0, 1].map(|at| alone["matches"][at]["format"].as_str().unwrap());
        assert!(
            ["payment", "payment-wide"]
                .iter()
                .all(|name| formats.contains(name)),
            "{alone}"
        );
        assert_eq!(alone["ambiguous"], true, "{alone}");
    }
}
