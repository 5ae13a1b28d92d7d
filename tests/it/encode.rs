//! Checks `GET /encode/{format}`, which builds an id from given field values without minting it.

use serde_json::{Value, json};

use crate::service::{ALL_ON, Service};
use idmint_testing::cases::{self, FORMATS, Valid};

async fn encoded(service: &Service, path: &str) -> Value {
    let answer = service.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()
}

#[tokio::test]
async fn every_vector_is_what_its_fields_are_encoded_to() {
    let service = Service::start(FORMATS).await;
    let cases = cases::valid();
    let mut texts = 0;
    for Valid {
        name,
        format,
        of_type,
        fields,
        encodings,
        ..
    } in &cases
    {
        let number = |(field, value): &(&str, u128)| match *field {
            "time" => format!("time_ticks={value}"),
            field => format!("{field}={value}"),
        };
        let of_type = of_type.iter().map(|name| format!("type={name}"));
        let query: Vec<_> = fields.iter().map(number).chain(of_type).collect();
        let answer = encoded(&service, &format!("/encode/{format}?{}", query.join("&"))).await;
        assert_eq!(
            (&answer["format"], &answer["minted"]),
            (&json!(format), &json!(false)),
            "{name}"
        );
        for (encoding, text) in encodings {
            assert_eq!(
                answer["encodings"][encoding],
                json!(text),
                "{name}: {encoding}"
            );
            texts += 1;
        }
    }
    println!("{} ids in {texts} texts", cases.len());
    assert!(
        cases.len() == 331 && texts > 900,
        "{} ids, {texts} texts",
        cases.len()
    );
    assert_eq!(
        service
            .metric("idmint_ids_minted_total{format=\"payment\"}")
            .await,
        0.0
    );
}

#[tokio::test]
async fn what_decoding_says_of_the_example_of_every_format_encodes_to_it() {
    let service = Service::start(ALL_ON).await;
    let formats = service.get("/formats").await.json();
    for format in formats["formats"].as_array().unwrap() {
        let (name, text) = (
            format["name"].as_str().unwrap(),
            &format["example"]["encodings"],
        );
        let canonical = text[format["encodings"][0]["name"].as_str().unwrap()]
            .as_str()
            .unwrap();
        let decoded = service
            .get(&format!("/decode/{canonical}?format={name}"))
            .await
            .json();
        let found = &decoded["matches"][0];
        let mut query = Vec::new();
        for field in found["fields"].as_array().unwrap() {
            let value = |of: &Value| of.as_str().unwrap().to_owned();
            query.push(match field["kind"].as_str().unwrap() {
                "time" => format!("time={}", value(&found["time"])),
                _ => format!("{}={}", value(&field["name"]), value(&field["value"])),
            });
        }
        query.extend(
            found["type"]
                .as_str()
                .map(|of_type| format!("type={of_type}")),
        );
        let answer = encoded(&service, &format!("/encode/{name}?{}", query.join("&"))).await;
        for member in [
            "canonical",
            "value",
            "time",
            "time_unix_seconds",
            "fields",
            "encodings",
        ] {
            assert_eq!(answer[member], found[member], "{name}: {member}");
        }
    }
    assert!(formats["formats"].as_array().unwrap().len() > 25);
}

#[tokio::test]
async fn missing_fields_are_0_and_a_lone_time_is_where_its_range_begins() {
    let service = Service::start("").await;
    let payment = encoded(
        &service,
        "/encode/payment?time=2024-02-20T00:00:00Z&worker=3",
    )
    .await;
    assert_eq!(payment["canonical"], "02KLC0300");
    assert_eq!(payment["fields"][1]["value"], "3");
    assert_eq!(payment["time"], "2024-02-20T00:00:00Z");
    // In a query, a plus sign means a space. The service must accept a time whose offset has lost
    // its plus sign in this way.
    let local = "/encode/payment?time=2024-02-20T01:00:00%2001:00&worker=3";
    assert_eq!(encoded(&service, local).await, payment);
    for name in ["snowflake", "flax", "siq", "uuid7", "evently"] {
        let lone = encoded(
            &service,
            &format!("/encode/{name}?time=2024-02-20T00:00:00Z"),
        )
        .await;
        let range =
            format!("/formats/{name}/range?from=2024-02-20T00:00:00Z&to=2024-02-21T00:00:00Z");
        assert_eq!(
            lone["value"],
            service.get(&range).await.json()["least"]["value"],
            "{name}"
        );
    }
    let zero = encoded(&service, "/encode/payment").await;
    assert_eq!(
        zero["encodings"],
        json!({ "base36": "000000000", "decimal": "0" })
    );
}

#[tokio::test]
async fn what_makes_no_id_is_named_with_its_bound_and_a_request_that_works() {
    let service = Service::start("").await;
    for (query, reason, named) in [
        ("worker=36", "worker", "0 to 35"),
        ("worker=-1", "worker", "0 to 35"),
        ("worker=", "worker", "0 to 35"),
        (
            "time=2024-02-20T00:00:00.5Z",
            "time",
            "2024-02-20T00:00:01Z",
        ),
        ("time=yesterday", "time", "yesterday"),
        (
            "time=2023-12-31T00:00:00Z",
            "time",
            "2024-01-01T00:00:00.000Z",
        ),
        ("time_ticks=2176782336", "time_ticks", "2176782335"),
        ("time=2024-02-20T00:00:00Z&time_ticks=1", "time", "both"),
        ("shard=1", "unknown_parameter", "sequence"),
        ("worker=1&worker=2", "repeated_parameter", "worker"),
    ] {
        let answer = service.get(&format!("/encode/payment?{query}")).await;
        let problem = answer.json();
        assert_eq!(
            (answer.status, &problem["reason"]),
            (422, &json!(reason)),
            "{query}: {problem}"
        );
        assert!(
            problem["detail"].as_str().unwrap().contains(named),
            "{query}: {problem}"
        );
        let example = problem["example"]
            .as_str()
            .unwrap()
            .strip_prefix("GET ")
            .unwrap();
        assert_eq!(service.get(example).await.status, 200, "{example}");
    }
    assert_eq!(
        service.get("/encode/invoice").await.json()["type"],
        "/problems/unknown-format"
    );
}

/// Compares two published ids of the original service with the ids that idmint computes for the
/// same reports. The ids are from its public test collection (UKSpaceAgency/sst-beta-infra).
///
/// The salt of that service is secret, so the letters of its ids differ from those of idmint. After
/// the first letter, Hashids writes the number in base 17 with one letter for each digit, so the
/// pattern of equal letters does not depend on the salt. Of all seconds from 2022 to 2026, only the
/// seconds of these reports fit the patterns.
#[tokio::test]
async fn ids_of_the_original_service_have_the_pattern_of_letters_of_ours() {
    let pattern = |label: &str| {
        let letters: Vec<char> = label
            .chars()
            .filter(char::is_ascii_lowercase)
            .skip(1)
            .collect();
        letters
            .iter()
            .map(|letter| letters.iter().position(|other| other == letter))
            .collect::<Vec<_>>()
    };
    let service = Service::start("").await;
    for (theirs, ours, fields) in [
        (
            "ngawpao-xdvregl-jogeqg",
            "omoldox-znvrymk-qxmyem",
            "time=2025-04-10T12:29:01Z&primary=61604&secondary=45321",
        ),
        (
            "vjgagee-qkpwjrg-gqdplw",
            "dnrjrxx-yvpznqr-rykpdz",
            "time=2023-04-20T15:08:53Z&primary=55145&secondary=28892",
        ),
    ] {
        let canonical =
            encoded(&service, &format!("/encode/conjunction?{fields}")).await["canonical"].clone();
        assert_eq!(canonical, ours);
        assert_eq!(pattern(theirs), pattern(ours), "{theirs}");
        let second = fields.replace(":01Z", ":02Z").replace(":53Z", ":54Z");
        let later =
            encoded(&service, &format!("/encode/conjunction?{second}")).await["canonical"].clone();
        assert_ne!(
            pattern(theirs),
            pattern(later.as_str().unwrap()),
            "a second later {later}"
        );
        let parts: Vec<_> = fields
            .split('&')
            .map(|field| field.split_once('=').unwrap())
            .collect();
        let swapped = format!(
            "{}&primary={}&secondary={}",
            fields.split('&').next().unwrap(),
            parts[2].1,
            parts[1].1
        );
        let swapped =
            encoded(&service, &format!("/encode/conjunction?{swapped}")).await["canonical"].clone();
        assert_ne!(
            pattern(theirs),
            pattern(swapped.as_str().unwrap()),
            "the pair swapped {swapped}"
        );
    }
}
