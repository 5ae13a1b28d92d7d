//! Checks texts that other programs have damaged, wrapped in other characters, or written in
//! another notation.

use serde_json::{Value, json};

use crate::service::{Service, in_path};
use crate::support::post_request;

const JSON: &str = "content-type: application/json\r\n";

/// Twitter ids whose last digits were lost when JavaScript stored them as floating-point numbers.
const ROUNDED: [&str; 20] = [
    "1573542482933710800",
    "1573542486985801700",
    "1573542503213564000",
    "1573542506438983700",
    "1573542519835590700",
    "1573542519911088000",
    "1573542527775015000",
    "1573542528827785200",
    "1573542547433717800",
    "1573542554879000600",
    "1573542573010714600",
    "1573542590047977500",
    "1573542597983600600",
    "1573542607940747300",
    "1573542627062579200",
    "1573542637250543600",
    "1573542654460166100",
    "1573542660986372000",
    "1573542681177882600",
    "1573542694695731200",
];

async fn read(service: &Service, text: &str, query: &str) -> Value {
    let answer = service
        .get(&format!("/decode/{}{query}", in_path(text)))
        .await;
    answer.json()
}

#[tokio::test]
async fn what_the_specification_of_a_format_accepts_is_read_without_asking() {
    let service = Service::start("").await;
    for (given, canonical) in [
        (
            "017F22E2-79B0-7CC3-98C4-DC0C0C07398F",
            "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
        ),
        ("01arz3ndektsv4rrffq69g5fav", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        ("64FF86F4F20640CBBAA30C3B", "64ff86f4f20640cbbaa30c3b"),
    ] {
        let answer = read(&service, given, "").await;
        assert_eq!(
            (&answer["as_given"], &answer["canonical"]),
            (&json!(false), &json!(canonical)),
            "{answer}"
        );
        let body = json!([given, canonical]).to_string();
        let brief = service
            .exchange(&post_request("/decode", JSON, &body))
            .await;
        let brief = brief.json();
        assert_eq!(brief[0]["canonical"], canonical, "{brief}");
        assert!(brief[1].get("as_given").is_none(), "{brief}");
    }
    let payment = read(&service, "1i9zc1002", "").await;
    assert_eq!(payment["status"], 404, "only leniently: {payment}");
}

#[tokio::test]
async fn a_wrapped_id_is_read_leniently() {
    let service = Service::start("").await;
    for (given, format, canonical) in [
        (
            "ObjectId(\"64ff86f4f20640cbbaa30c3b\")",
            "objectid",
            "64ff86f4f20640cbbaa30c3b",
        ),
        (
            "ObjectId('64ff86f4f20640cbbaa30c3b')",
            "objectid",
            "64ff86f4f20640cbbaa30c3b",
        ),
        (
            "{\"$oid\":\"64ff86f4f20640cbbaa30c3b\"}",
            "objectid",
            "64ff86f4f20640cbbaa30c3b",
        ),
        (
            "UUID(\"01890a5d-ac96-774b-bcce-b302099a8057\")",
            "uuid7",
            "01890a5d-ac96-774b-bcce-b302099a8057",
        ),
        (
            "\\x018f91e53b9e69708a4b26bdc784d0e3",
            "ulid",
            "01HY8YAEWYD5R8MJS6QQ3R9M73",
        ),
        (
            "0x018f91e53b9e69708a4b26bdc784d0e3",
            "ulid",
            "01HY8YAEWYD5R8MJS6QQ3R9M73",
        ),
        (
            "X'018f91e53b9e69708a4b26bdc784d0e3'",
            "ulid",
            "01HY8YAEWYD5R8MJS6QQ3R9M73",
        ),
        (
            "\u{feff}[01ARZ3NDEKTSV4RRFFQ69G5FAV];",
            "ulid",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        ),
        ("-P7To9rM64JI2aOmu0P1", "firebase", "-P7To9rM64JI2aOmu0P1"),
    ] {
        let answer = read(&service, given, "?lenient=true").await;
        let first = &answer["matches"][0];
        assert_eq!(
            (&first["format"], &first["canonical"]),
            (&json!(format), &json!(canonical)),
            "{given}: {answer}"
        );
        assert_eq!(answer["as_given"], given == canonical, "{answer}");
    }
    let wrapped = |at: u32| format!("ObjectId(\"64ff86f4f20640cbbaa30{at:03x}\")");
    let lines: Vec<_> = (0..12).map(wrapped).collect();
    let body = json!(lines).to_string();
    let verdict = service
        .exchange(&post_request("/inspect?lenient=true", JSON, &body))
        .await
        .json();
    assert_eq!(verdict["format"], "objectid", "{verdict}");
}

#[tokio::test]
async fn damage_is_noted_and_changes_no_reading() {
    let service = Service::start("").await;
    for (given, kind, format) in [
        ("1573542478315782100", Some("digits-lost"), None),
        ("1573542478315782144", None, None),
        ("1.57354E+18", Some("spreadsheet"), None),
        ("-8646911284551352320", Some("sign"), None),
        (
            "cc4b9001-2ef3-0972-a817-17d9356c5c98",
            Some("byte-order"),
            Some("ulid"),
        ),
        (
            "11e8c266-98fa-4fc8-9ab6-0242c7bc9d97",
            Some("byte-order"),
            Some("uuid4"),
        ),
        ("01904bcc-f32e-7209-a817-17d9356c5c98", None, Some("uuid7")),
        ("018f91e5-3b9e-6970-8a4b-26bdc784d0e3", None, Some("ulid")),
    ] {
        let answer = read(&service, given, "").await;
        assert_eq!(answer["notes"][0]["kind"].as_str(), kind, "{answer}");
        if let Some(format) = format {
            assert_eq!(answer["matches"][0]["format"], format, "{answer}");
        }
    }
    let body = json!(ROUNDED).to_string();
    let verdict = service
        .exchange(&post_request("/inspect", JSON, &body))
        .await
        .json();
    assert_eq!(verdict["notes"][0]["kind"], "digits-lost", "{verdict}");
}

#[tokio::test]
async fn a_column_of_texts_is_answered_with_its_verdict() {
    let service = Service::start("").await;
    // These are ULIDs written as UUIDs. One of them has the version and the variant of a UUID by
    // chance.
    let ulid = |at: u64| {
        let [a, b, c] = [40_503, 30_011, 0x9e37_79b9_7f4a].map(|factor: u64| at * factor);
        let (a, b, c) = (a & 0xffff, b & 0xffff, c & 0xffff_ffff_ffff);
        format!("018f91e5-3b9e-{a:04x}-{b:04x}-{c:012x}")
    };
    let mut texts: Vec<String> = (1..40).map(ulid).collect();
    texts.push("018f91e5-3b9e-4970-8a4b-26bdc784d0e3".to_owned());
    texts.push("no id".to_owned());
    let body = json!(texts).to_string();
    let answer = service
        .exchange(&post_request("/decode?column=true", JSON, &body))
        .await
        .json();
    assert_eq!(answer["column"]["format"], "ulid", "{}", answer["column"]);
    assert_eq!(answer["column"]["certainty"], "certain");
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(rows.len(), texts.len());
    assert!(rows[0].get("read_as").is_none(), "{}", rows[0]);
    let by_chance = &rows[39];
    assert_eq!(by_chance["format"], "uuid4", "its own reading: {by_chance}");
    assert_eq!(by_chance["read_as"]["format"], "ulid", "{by_chance}");
    assert_eq!(by_chance["ambiguous"], true, "{by_chance}");
    assert_eq!(rows[40]["read_as"], Value::Null);
    assert!(rows[40].get("read_as").is_some());
    let alone = service
        .exchange(&post_request("/decode", JSON, &body))
        .await;
    assert!(alone.json()[39].get("read_as").is_none());

    let lines: String = texts.iter().map(|text| format!("\"{text}\"\n")).collect();
    let head = "content-type: application/x-ndjson\r\naccept: application/x-ndjson\r\n";
    let told = service
        .exchange(&post_request("/decode?column=true", head, &lines))
        .await;
    let told = told.text();
    assert!(
        told.starts_with("{\"column\":{\"format\":\"ulid\""),
        "{told}"
    );
    assert_eq!(told.lines().count(), texts.len() + 1);
    let full = service
        .exchange(&post_request(
            "/decode?column=true&detail=full",
            JSON,
            &body,
        ))
        .await;
    assert_eq!(
        (full.status, full.json()["reason"].clone()),
        (422, json!("column"))
    );
}

#[tokio::test]
async fn uuids_of_several_versions_are_told_with_their_numbers() {
    let service = Service::start("").await;
    let uuid = |at: u32| {
        let (head, version) = [("c190", 4), ("0190", 7), ("a190", 5)][at as usize % 3];
        format!("{head}{at:04x}-f32e-{version}209-a817-17d9356c{at:04x}")
    };
    let texts: Vec<String> = (0..30).map(uuid).collect();
    let verdict = service
        .exchange(&post_request("/inspect", JSON, &json!(texts).to_string()))
        .await
        .json();
    assert_eq!(verdict["why"], "mixed_formats", "{verdict}");
    let counts = verdict["candidates"].as_array().unwrap().iter();
    assert!(counts.clone().count() >= 2, "{verdict}");
    assert!(counts.map(|one| one["ids"].as_u64().unwrap()).sum::<u64>() >= 20);
}

#[tokio::test]
async fn a_byte_order_mark_does_not_hide_the_first_id() {
    let service = Service::start("").await;
    let body = "\u{feff}1573542478315782144\r\n1573542478315782145\r\n";
    let head = "content-type: text/plain\r\n";
    let rows = service.exchange(&post_request("/decode", head, body)).await;
    assert_eq!(rows.json()[0]["id"], "1573542478315782144");
}
