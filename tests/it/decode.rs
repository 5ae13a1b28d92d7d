//! Checks the responses of `GET /decode/{id}` for every published id, and for texts that are not
//! ids.

use std::collections::BTreeSet;

use idmint_core::id::{Format, PRESETS};
use idmint_core::time::{ManualClock, UnixNanos};
use serde_json::Value;

use crate::service::{Service, ids_of, in_path};
use crate::support::{get_request, post_request};
use idmint_testing::cases::{self, FORMATS, Unreadable, Valid};
use idmint_testing::http1::{Answer, AsyncClient};

async fn decode(client: &mut AsyncClient, text: &str, query: &str) -> Answer {
    client
        .exchange(&get_request(&format!("/decode/{}{query}", in_path(text))))
        .await
}

/// Returns `true` if the text looks like a word or an everyday number. Such a text is decoded only
/// if the request names the encoding.
fn is_short(text: &str) -> bool {
    text.len() < 15 || text.len() < 20 && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

fn assert_reading(reading: &Value, case: &Valid) {
    let fields = reading["fields"].as_array().unwrap();
    let named = fields.iter().map(|field| {
        (
            field["name"].as_str().unwrap(),
            field["value"].as_str().unwrap().parse(),
        )
    });
    assert!(
        named.eq(case.fields.iter().map(|(name, value)| (*name, Ok(*value)))),
        "{reading}: {case:?}"
    );
    if let Some(qualifier) = fields.iter().find(|field| field["kind"] == "qualifier") {
        assert_eq!(
            qualifier["label"],
            case.of_type.as_deref().unwrap_or("unassigned"),
            "{case:?}"
        );
    }
    for (encoding, text) in &case.encodings {
        assert_eq!(
            reading["encodings"][encoding], *text,
            "{encoding} of {reading}: {case:?}"
        );
    }
    let seconds = case.unix_nanos.div_euclid(1_000_000_000).to_string();
    assert_eq!(reading["time_unix_seconds"], seconds, "{case:?}");
    // A SIQ id has a tick shorter than a millisecond. The response shows all digits of its time,
    // while the vectors have only milliseconds.
    let utc = case
        .utc
        .as_ref()
        .map(|utc| utc.trim_end_matches('Z').to_owned());
    let time = reading["time"].as_str();
    assert_eq!(time.is_some(), utc.is_some(), "{reading}: {case:?}");
    assert!(
        time.is_none_or(|time| time.starts_with(&utc.unwrap()) && time.ends_with('Z')),
        "{reading}: {case:?}"
    );
}

#[tokio::test]
async fn every_published_id_decodes_in_each_of_its_spellings() {
    let service = Service::start(FORMATS).await;
    let mut client = service.connect().await;
    for case in &cases::valid() {
        // Skip the empty text, which is never decoded, although one encoding writes zero as the
        // empty text.
        for (encoding, text) in case.encodings.iter().filter(|(_, text)| !text.is_empty()) {
            let pin = format!("?format={}&encoding={encoding}", case.format);
            let answer = decode(&mut client, text, &pin).await;
            assert_eq!(answer.status, 200, "{}: {answer:?}", case.name);
            let json = answer.json();
            assert_eq!(json["id"], *text);
            assert_eq!(json["matches"].as_array().unwrap().len(), 1, "{json}");
            let reading = &json["matches"][0];
            assert_eq!(
                (&reading["format"], &reading["encoding"]),
                (&case.format.as_str().into(), &encoding.as_str().into())
            );
            assert_reading(reading, case);
        }
    }
    assert_eq!(service.minted().await, 0.0);
}

#[tokio::test]
async fn an_id_that_nobody_pins_is_found_among_all_its_readings() {
    let service = Service::start(FORMATS).await;
    let formats = service.get("/formats").await.json()["formats"]
        .as_array()
        .unwrap()
        .len();
    let mut client = service.connect().await;
    for case in &cases::valid() {
        let (encoding, text) = &case.encodings[0];
        if text.is_empty() {
            continue;
        }
        let pin = if is_short(text) {
            format!("?encoding={encoding}")
        } else {
            String::new()
        };
        let json = decode(&mut client, text, &pin).await.json();
        let readings = json["matches"]
            .as_array()
            .unwrap_or_else(|| panic!("{json}: {case:?}"));
        let is_it =
            |reading: &&Value| reading["format"] == case.format && reading["encoding"] == *encoding;
        assert_reading(
            readings
                .iter()
                .find(is_it)
                .unwrap_or_else(|| panic!("{json}: {case:?}")),
            case,
        );

        if !pin.is_empty() {
            continue;
        }
        let read: BTreeSet<_> = readings
            .iter()
            .map(|reading| reading["format"].as_str().unwrap())
            .collect();
        let rejected = json["rejected"].as_array().unwrap();
        assert!(
            rejected
                .iter()
                .all(|format| !read.contains(format["format"].as_str().unwrap())),
            "{json}"
        );
        assert_eq!(
            read.len() + rejected.len(),
            formats,
            "every format reads it or says why not: {json}"
        );
    }
}

#[tokio::test]
async fn the_ids_of_the_documentations_have_their_published_values() {
    let service = Service::start("").await;
    let json = service.get("/decode/175928847299117063").await.json();
    let snowflake = json["matches"]
        .as_array()
        .unwrap()
        .iter()
        .find(|found| found["format"] == "snowflake")
        .unwrap();
    assert_eq!(snowflake["time"], "2016-04-30T11:18:25.796Z");
    assert_eq!(snowflake["encodings"]["hex"], "271065ac1020007");
    let fields = snowflake["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field["value"].as_str().unwrap());
    assert_eq!(fields.collect::<Vec<_>>(), ["41944705796", "1", "0", "7"]);

    let json = service.get("/decode/0RdKJcxqVBiAiQr0").await.json();
    let flax = json["matches"]
        .as_array()
        .unwrap()
        .iter()
        .find(|found| found["format"] == "flax")
        .unwrap();
    assert_eq!(
        (&flax["time"], &flax["encoding"]),
        (&"2015-10-15T20:10:25.807Z".into(), &"base64_lex".into())
    );
    assert_eq!(flax["encodings"]["hex_padded"], "05ca55528f7680cb8bb9bdc1");
}

#[tokio::test]
async fn a_text_that_is_no_id_is_answered_404_with_the_reason() {
    let service = Service::start(FORMATS).await;
    let mut client = service.connect().await;
    for Unreadable {
        name,
        format,
        encoding,
        text,
        reason,
    } in &cases::unreadable()
    {
        let answer = decode(
            &mut client,
            text,
            &format!("?format={format}&encoding={encoding}"),
        )
        .await;
        assert_eq!(answer.status, 404, "{name}: {answer:?}");
        let problem = answer.json();
        assert_eq!(problem["type"], "/problems/no-format-matches");
        assert_eq!(
            problem["reason"], *reason,
            "{name}: {text:?} as {format} in {encoding}"
        );
        assert_eq!(
            problem["rejected"],
            serde_json::json!([{ "format": format, "reason": reason }]),
            "{name}"
        );
    }
    assert_eq!(service.minted().await, 0.0);
    assert_eq!(
        service
            .metric(r#"idmint_decode_requests_total{outcome="no_match"}"#)
            .await,
        200.0
    );
}

#[tokio::test]
async fn a_word_or_an_everyday_number_is_an_id_only_of_a_format_that_is_named() {
    let service = Service::start("").await;
    for (text, format, encoding) in [
        ("hello", "snowflake", "b32l"),
        ("beef", "snowflake", "hex"),
        ("2026", "twitter", "decimal"),
    ] {
        let answer = service.get(&format!("/decode/{text}")).await;
        assert_eq!(answer.status, 404, "{answer:?}");
        let problem = answer.json();
        let unlikely = problem["unlikely"].as_array().unwrap();
        let it = unlikely
            .iter()
            .find(|found| found["format"] == format && found["encoding"] == encoding)
            .unwrap();
        assert!(
            it["evidence_bits"].as_f64().unwrap() < -16.0 && it["evidence"] == "hardly any",
            "{problem}"
        );
        assert!(
            problem["detail"]
                .as_str()
                .unwrap()
                .contains("bits of evidence, but needs -"),
            "{problem}"
        );
        for pin in [format!("format={format}"), format!("encoding={encoding}")] {
            let read = service.get(&format!("/decode/{text}?{pin}")).await.json();
            assert!(
                read["matches"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|found| found["format"] == format),
                "{read}"
            );
            assert_eq!(read["matches"][0]["evidence"], "hardly any");
        }
    }
    let empty = service.get("/decode/?format=snowflake").await;
    assert_eq!(
        (empty.status, &empty.json()["reason"]),
        (404, &"wrong_length".into())
    );
}

#[tokio::test]
async fn a_text_of_no_format_is_rejected_by_every_format() {
    let service = Service::start("").await;
    let answer = service.get("/decode/%3F").await;
    assert_eq!(answer.status, 404);
    let problem = answer.json();
    let rejected = problem["rejected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|format| format["format"].as_str().unwrap());
    let on = PRESETS
        .iter()
        .map(|preset| preset.name)
        .filter(|name| Format::built_in(name).unwrap().enabled);
    assert_eq!(rejected.collect::<Vec<_>>(), on.collect::<Vec<_>>());
    assert!(
        problem["reason"].is_null(),
        "so many formats have no one reason: {problem}"
    );
}

#[tokio::test]
async fn ids_are_decoded_while_none_can_be_minted() {
    // The clock was never set, and shows a time long before this program was built.
    let service =
        Service::start_on(ManualClock::at(UnixNanos::from_seconds(1_000_000_000)), "").await;
    let refused = service.post("/ids/snowflake").await;
    assert_eq!(refused.status, 503);
    let decoded = service
        .get("/decode/175928847299117063?format=snowflake")
        .await;
    assert_eq!(decoded.status, 200);
    assert_eq!(
        decoded.json()["matches"][0]["time"],
        "2016-04-30T11:18:25.796Z"
    );
    assert_eq!(service.minted().await, 0.0);
}

#[tokio::test]
async fn a_conjunction_id_without_hyphens_or_in_capitals_is_recognised() {
    let service = Service::start("").await;
    for text in [
        "zwwqlzzpjjmxmdlkpvwq",
        "ZWWQLZZ-PJJMXMD-LKPVWQ",
        "ZWWQLZZPJJMXMDLKPVWQ",
        "zwwqlzz%20pjjmxmd%20lkpvwq",
    ] {
        let answer = service.get(&format!("/decode/{text}")).await.json();
        let meant = answer["did_you_mean"].as_array().unwrap();
        assert_eq!(
            meant.first().and_then(Value::as_str),
            Some("zwwqlzz-pjjmxmd-lkpvwq"),
            "{text}: {answer}"
        );
    }
    let known = service.get("/decode/zwwqlzz-pjjmxmd-lkpvwq").await.json();
    assert_eq!(
        known["did_you_mean"],
        serde_json::json!([]),
        "a reading that can be needs no other"
    );
}

#[tokio::test]
async fn a_conjunction_id_of_another_salt_is_recognised_by_its_shape() {
    let hashids = r#"kind = "hashids", alphabet = "abcdefghijklmnopqrstuvwxyz", min_length = 20, groups = [7, 7, 6]"#;
    let salted = format!(
        "[formats.conjunction]\nencodings = [{{ {hashids}, salt = \"elsewhere\" }}, {{ kind = \"decimal\" }}]"
    );
    let elsewhere = Service::start(&salted).await;
    let report = r#"{"tca":"2024-02-01T00:00:00Z","primary":25544,"secondary":48274}"#;
    let report = post_request(
        "/ids/conjunction",
        "content-type: application/json\r\n",
        report,
    );
    let theirs = ids_of(&elsewhere.exchange(&report).await).remove(0);
    let service = Service::start("").await;
    for text in [
        theirs.clone(),
        theirs.to_uppercase(),
        theirs.replace('-', ""),
    ] {
        let answer = service.get(&format!("/decode/{text}")).await.json();
        assert_eq!(
            answer["shaped_like"],
            serde_json::json!(["conjunction"]),
            "{text}: {answer}"
        );
        assert_eq!(
            answer["did_you_mean"],
            serde_json::json!([]),
            "{text}: {answer}"
        );
    }
    let problem = service.get(&format!("/decode/{theirs}")).await.json();
    assert!(
        problem["detail"]
            .as_str()
            .is_some_and(|text| text.contains("looks like one of conjunction")),
        "{problem}"
    );
    for text in ["hello", "zwwqlzz-pjjmxmd-lkpvwq", "175928847299117063"] {
        let answer = service.get(&format!("/decode/{text}")).await.json();
        assert!(answer.get("shaped_like").is_none(), "{text}: {answer}");
    }
}

#[tokio::test]
async fn with_a_format_its_canonical_text_of_its_one_length_is_read_first() {
    let service = Service::start("").await;
    // These nine digits can be read in base36, or as the decimal number 575021959. As a decimal
    // number, they would be a payment id of 2024.
    let answer = service.get("/decode/575021959?format=payment").await.json();
    let found = &answer["matches"][0];
    assert_eq!(
        (&found["encoding"], &answer["ambiguous"]),
        (&"base36".into(), &false.into()),
        "{answer}"
    );
    assert_eq!(
        (&found["fields"][1]["value"], &found["fields"][2]["value"]),
        (&"9".into(), &"189".into())
    );
    assert!(
        found["time"].as_str().unwrap().starts_with("2033-"),
        "{answer}"
    );
    assert_eq!(
        answer["matches"][1]["encoding"], "decimal",
        "the other reading is told"
    );
    let many = service
        .exchange(&crate::support::post_request(
            "/decode?format=payment",
            "content-type: application/json\r\n",
            r#"["575021959"]"#,
        ))
        .await
        .json();
    assert_eq!(
        (&many[0]["encoding"], &many[0]["ambiguous"]),
        (&"base36".into(), &false.into()),
        "{many}"
    );
    let shorter = service.get("/decode/57502195?format=payment").await.json();
    assert_eq!(
        shorter["matches"][0]["encoding"], "decimal",
        "eight digits are no payment's nine: {shorter}"
    );
    let pinned = service
        .get("/decode/575021959?format=payment&encoding=decimal")
        .await
        .json();
    assert_eq!(pinned["matches"][0]["encoding"], "decimal");
}
