//! Checks the responses of `POST /ids/conjunction`. Each report gets one id, and a repeated report
//! gets the same id.

use idmint_core::time::{ManualClock, UnixNanos};
use serde_json::{Value, json};

use crate::service::{Service, ids_of, in_path};
use crate::support::post_request;
use idmint_testing::http1::Answer;

const JSON: &str = "content-type: application/json\r\n";
const KNOWN: &str = r#"{"tca":"2024-02-01T00:00:00Z","primary":25544,"secondary":48274}"#;
const KNOWN_ID: &str = "zwwqlzz-pjjmxmd-lkpvwq";

/// A setting with which the service stores nothing, and the id of each report follows from the
/// report's own time.
const PURE: &str = "conjunction.mode = 'pure'";

/// A grouped format with constants, small object fields, its own tick, and ids that fit a signed
/// 64-bit column.
const CLOSE_CALLS: &str = r#"
[formats.close-calls]
summary   = "Close calls"
rule      = "grouped"
tick      = "10ms"
epoch     = "2040-01-01T00:00:00Z"
fields    = [
    { name = "time", kind = "time", bits = 46 },
    { name = "kind", kind = "constant", bits = 2, value = 2 },
    { name = "one", kind = "object", bits = 8 },
    { name = "other", kind = "object", bits = 8 },
]
encodings = ["decimal", "hex"]
"#;

fn post(path: &str, body: &str) -> String {
    post_request(path, JSON, body)
}

fn request_accepting(media: &str, body: &str) -> String {
    post_request(
        "/ids/conjunction",
        &format!("{JSON}accept: {media}\r\n"),
        body,
    )
}

fn list(reports: impl Iterator<Item = (u64, u64)>) -> String {
    let reports = reports.map(
        |(primary, secondary)| json!({ "tca": "2024-02-01T00:00:00", "primary": primary, "secondary": secondary }),
    );
    Value::Array(reports.collect()).to_string()
}

async fn id(service: &Service, tca: &str, primary: u64, secondary: u64) -> String {
    let report = json!({ "tca": tca, "primary": primary, "secondary": secondary }).to_string();
    let answer = service.exchange(&post("/ids/conjunction", &report)).await;
    assert_eq!(answer.status, 200, "{report}: {answer:?}");
    ids_of(&answer).remove(0)
}

#[tokio::test]
async fn a_report_gets_the_id_of_its_second_and_its_objects() {
    let service = Service::start(PURE).await;
    let answer = service.exchange(&post("/ids/conjunction", KNOWN)).await;
    assert_eq!(
        answer.text().trim_end(),
        r#"{"format":"conjunction","count":1,"ids":["zwwqlzz-pjjmxmd-lkpvwq"],"details":[{"id":"zwwqlzz-pjjmxmd-lkpvwq","created":null,"anchor_tca":"2024-02-01T00:00:00.000000Z","tca_delta_us":0}]}"#
    );
    for (name, value) in [
        ("content-type", "application/json"),
        ("cache-control", "no-store"),
        ("idmint-count", "1"),
        ("content-length", &answer.body.len().to_string()),
    ] {
        assert_eq!(answer.header(name), Some(value), "{}", answer.head);
    }
    assert!(
        answer
            .header("x-request-id")
            .is_some_and(|id| !id.is_empty())
    );
}

#[tokio::test]
async fn reports_come_to_the_address_of_conjunctions_as_to_that_of_their_format() {
    let service = Service::start("").await;
    let first = service.exchange(&post("/conjunctions", KNOWN)).await;
    assert_eq!(
        (first.status, ids_of(&first)),
        (200, vec![KNOWN_ID.to_owned()]),
        "{first:?}"
    );
    let again = service.exchange(&post("/ids/conjunction", KNOWN)).await;
    assert_eq!(
        again.json()["details"][0]["created"],
        false,
        "it is the same conjunction: {again:?}"
    );
    let named = service
        .exchange(&post(
            "/conjunctions?format=conjunction&encoding=decimal",
            KNOWN,
        ))
        .await;
    assert_eq!(ids_of(&named), ["30025386125795551919250"]);
    let refused = service
        .exchange(&post("/conjunctions?format=flax", KNOWN))
        .await;
    assert_eq!(
        (refused.status, &refused.json()["reason"]),
        (422, &json!("format")),
        "{refused:?}"
    );
    let refused = service
        .exchange(&post("/conjunctions?limit=1", KNOWN))
        .await;
    assert_eq!(
        (refused.status, &refused.json()["reason"]),
        (422, &json!("unknown_parameter")),
        "{refused:?}"
    );
    // The query must not name the format, because the path already does.
    let refused = service
        .exchange(&post("/ids/conjunction?format=conjunction", KNOWN))
        .await;
    assert_eq!(
        (refused.status, &refused.json()["reason"]),
        (422, &json!("unknown_parameter")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn every_spelling_of_an_instant_is_the_same_instant() {
    let service = Service::start(PURE).await;
    for tca in [
        "2024-02-01T00:00:00",
        "2024-032T00:00:00Z",
        "2024-032T00:00:00.999999999999",
        "2024-02-01T00:00:00.25Z",
        "2024-01-31T23:59:60Z",
    ] {
        assert_eq!(id(&service, tca, 25_544, 48_274).await, KNOWN_ID, "{tca}");
    }
    for (tca, primary, secondary) in [
        ("2024-02-01T00:00:01Z", 25_544, 48_274),
        ("2024-02-01T00:00:00Z", 48_274, 25_544),
    ] {
        assert_ne!(
            id(&service, tca, primary, secondary).await,
            KNOWN_ID,
            "{tca} {primary} {secondary}"
        );
    }
    let finer = post(
        "/ids/conjunction",
        &KNOWN.replace("00:00Z", "00:00.2500009Z"),
    );
    assert_eq!(
        service.exchange(&finer).await.json()["details"][0]["anchor_tca"],
        "2024-02-01T00:00:00.250000Z"
    );
}

#[tokio::test]
async fn an_answer_has_the_form_that_was_asked_for() {
    let service = Service::start("").await;
    let two = format!("[{KNOWN},{KNOWN}]");
    let ask = async |media: &str| service.exchange(&request_accepting(media, &two)).await;
    let text = ask("text/plain").await;
    assert_eq!(text.text(), format!("{KNOWN_ID}\n{KNOWN_ID}\n"));
    let lines = ask("application/x-ndjson").await;
    assert_eq!(lines.text(), format!("\"{KNOWN_ID}\"\n\"{KNOWN_ID}\"\n"));
    let bytes = ask("application/octet-stream").await;
    let big_endian = 30_025_386_125_795_551_919_250_u128.to_be_bytes();
    assert_eq!(bytes.body, [&big_endian[6..], &big_endian[6..]].concat());
    assert_eq!(bytes.header("idmint-width"), Some("10"));
    for answer in [text, lines, bytes] {
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.header("content-length"),
            Some(answer.body.len().to_string().as_str())
        );
        assert_eq!(answer.header("idmint-count"), Some("2"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    assert_eq!(ask("image/png").await.status, 406);
}

#[tokio::test]
async fn every_encoding_is_answered_and_decodes_back() {
    let service = Service::start("").await;
    for (encoding, text) in [
        ("hashids", KNOWN_ID),
        ("decimal", "30025386125795551919250"),
        ("hex_padded", "065badf00018f200bc92"),
    ] {
        let answer = service
            .exchange(&post(
                &format!("/ids/conjunction?encoding={encoding}"),
                KNOWN,
            ))
            .await;
        assert_eq!(ids_of(&answer), [text]);
        assert_eq!(answer.json()["details"][0]["id"], text);
        let path = format!(
            "/decode/{}?format=conjunction&encoding={encoding}",
            in_path(text)
        );
        let reading = &service.get(&path).await.json()["matches"][0];
        assert_eq!(reading["time"], "2024-02-01T00:00:00Z");
        let values: Vec<_> = (1..=2)
            .map(|at| reading["fields"][at]["value"].as_str().unwrap())
            .collect();
        assert_eq!(values, ["25544", "48274"]);
    }
}

#[tokio::test]
async fn a_list_gets_its_ids_in_its_order() {
    let service = Service::start("mint.batch_max = 1000").await;
    let body = list((1..=1_000).map(|object| (object, object + 1)));
    let answer = service
        .exchange(&post("/ids/conjunction?encoding=decimal", &body))
        .await;
    let ids = ids_of(&answer);
    let expected =
        (1..=1_000_u128).map(|object| 1_706_745_600_u128 << 44 | object << 22 | (object + 1));
    assert!(
        expected.map(|id| id.to_string()).eq(ids.iter().cloned()),
        "{ids:?}"
    );
    let details = answer.json()["details"].as_array().unwrap().clone();
    assert!(
        details
            .iter()
            .map(|detail| detail["id"].as_str().unwrap())
            .eq(&ids)
    );
    for media in ["text/plain", "application/x-ndjson"] {
        let answer = service.exchange(&request_accepting(media, &body)).await;
        assert_eq!(
            (answer.status, answer.text().lines().count()),
            (200, 1_000),
            "{media}"
        );
        assert_eq!(
            answer.header("content-length"),
            Some(answer.body.len().to_string().as_str())
        );
    }

    let one_more = list((1..=1_001).map(|object| (object, object + 1)));
    assert_refused(
        &service.exchange(&post("/ids/conjunction", &one_more)).await,
        "count",
        &["1001", "1 to 1000"],
    );
}

#[tokio::test]
async fn a_long_answer_of_numbers_of_several_lengths_has_its_exact_length() {
    let service = Service::start(CLOSE_CALLS).await;
    let times = (0..20_000).map(|at| {
        format!(
            "2040-01-01T{:02}:00:{:02}.{:02}",
            at % 24,
            at % 60,
            at % 100
        )
    });
    let reports = times.map(|tca| json!({ "tca": tca, "primary": 1, "secondary": 2 }));
    let body = Value::Array(reports.collect()).to_string();
    let request = post_request(
        "/ids/close-calls",
        &format!("{JSON}accept: text/plain\r\n"),
        &body,
    );
    let answer = service.exchange(&request).await;
    assert_eq!(
        (answer.status, answer.text().lines().count()),
        (200, 20_000)
    );
    assert_eq!(
        answer.header("content-length"),
        Some(answer.body.len().to_string().as_str())
    );
    assert!(answer.text().lines().any(|id| id.len() < 8) && answer.body.len() > 3 * 64 * 1024);
}

fn assert_refused(answer: &Answer, reason: &str, named: &[&str]) -> Value {
    let problem = answer.json();
    assert_eq!(answer.status, 422, "{problem}");
    assert_eq!(problem["type"], "/problems/invalid-report", "{problem}");
    assert_eq!(problem["reason"], reason, "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    for named in named {
        assert!(detail.contains(named), "{named:?} is not in {detail:?}");
    }
    problem
}

/// Returns the report [`KNOWN`] with one member replaced.
fn with(member: &str, value: &str) -> String {
    let members = [
        ("tca", "\"2024-02-01T00:00:00Z\""),
        ("primary", "25544"),
        ("secondary", "48274"),
    ];
    let members = members
        .map(|(name, known)| format!("\"{name}\":{}", if name == member { value } else { known }));
    format!("{{{}}}", members.join(","))
}

/// An invalid report, the expected reason, the texts that the detail must contain, and the expected
/// limit.
type Wrong = (
    String,
    &'static str,
    &'static [&'static str],
    Option<&'static str>,
);

#[tokio::test]
async fn a_report_that_makes_no_id_is_refused_with_its_value_and_its_bound() {
    let service = Service::start("").await;
    let cases: Vec<Wrong> = vec![
        (
            with("primary", "0"),
            "out_of_range",
            &["primary is 0"],
            Some("1"),
        ),
        (
            with("secondary", "0"),
            "out_of_range",
            &["secondary is 0"],
            Some("1"),
        ),
        (
            with("primary", "4194304"),
            "out_of_range",
            &["primary is 4194304", "1 to 4194303"],
            Some("4194303"),
        ),
        (
            with("secondary", "799500001"),
            "out_of_range",
            &["secondary is 799500001"],
            Some("4194303"),
        ),
        (
            with("secondary", "18446744073709551615"),
            "out_of_range",
            &["18446744073709551615"],
            Some("4194303"),
        ),
        (
            with("secondary", "25544"),
            "same_object",
            &["secondary is 25544", "the same as primary"],
            None,
        ),
        (
            with("tca", "\"1969-12-31T23:59:59.999999999Z\""),
            "before_epoch",
            &["tca is 1969-12-31T23:59:59.999Z"],
            Some("1970-01-01T00:00:00.000Z"),
        ),
        (
            with("tca", "\"2242-03-16T12:56:32Z\""),
            "overflow",
            &["tca is 2242-03-16T12:56:32.000Z"],
            Some("2242-03-16T12:56:32.000Z"),
        ),
        (
            with("tca", "\"2024-02-01\""),
            "bad_timestamp",
            &["tca: `2024-02-01`", "2024-032T00:00:00"],
            None,
        ),
        (
            with("tca", "\"2024-02-01T00:00:00+24:00\""),
            "bad_timestamp",
            &["+24:00"],
            None,
        ),
        (with("tca", "\"\""), "bad_timestamp", &["tca: ``"], None),
    ];
    for (report, reason, named, limit) in &cases {
        let problem = assert_refused(
            &service.exchange(&post("/ids/conjunction", report)).await,
            reason,
            named,
        );
        assert_eq!(problem["limit"].as_str(), *limit, "{problem}");
        // In a list, the detail must name the position of the report. The other reports of the list
        // get no ids.
        let listed = format!("[{KNOWN},{KNOWN},{KNOWN},{report}]");
        let problem = assert_refused(
            &service.exchange(&post("/ids/conjunction", &listed)).await,
            reason,
            named,
        );
        assert!(
            problem["detail"].as_str().unwrap().starts_with("[3]."),
            "{problem}"
        );
    }
    assert_eq!(service.minted().await, 0.0);
    let requests = r#"idmint_mint_requests_total{format="conjunction",outcome="invalid"}"#;
    assert_eq!(
        service.metric(requests).await,
        f64::from(2 * u32::try_from(cases.len()).unwrap())
    );
}

#[tokio::test]
async fn json_that_is_no_report_is_refused_with_its_place() {
    let service = Service::start("").await;
    let cases: &[(String, &[&str])] = &[
        (String::new(), &["empty"]),
        ("{}".into(), &["missing field `tca`"]),
        ("null".into(), &["null"]),
        ("7".into(), &["7"]),
        (r#"{"count":3}"#.into(), &["count", "`primary`"]),
        (
            r#"{"tca":"2024-02-01T00:00:00Z","primary":1}"#.into(),
            &["missing field `secondary`"],
        ),
        (KNOWN.replace("tca", "TCA"), &["primary", "TCA", "`tca`"]),
        (with("tca", "1706745600"), &["tca", "1706745600"]),
        (with("tca", "null"), &["tca", "null"]),
        (
            with("primary", "\"25544\""),
            &["primary", "\"25544\"", "from 1 up"],
        ),
        (
            with("primary", "25544.0"),
            &["primary", "25544.0", "from 1 up"],
        ),
        (with("primary", "2e4"), &["primary", "20000.0"]),
        (with("primary", "-3"), &["primary", "-3", "from 1 up"]),
        (
            with("primary", "18446744073709551616"),
            &["primary", "from 1 up"],
        ),
        (
            format!("[{KNOWN},{KNOWN},{KNOWN},{}]", with("primary", "true")),
            &["[3].primary", "true"],
        ),
        (format!("[{KNOWN},[{KNOWN}]]"), &["[1]"]),
    ];
    for (body, named) in cases {
        assert_refused(
            &service.exchange(&post("/ids/conjunction", body)).await,
            "report_form",
            named,
        );
    }
    assert_refused(
        &service.exchange(&post("/ids/conjunction", " [ ] ")).await,
        "count",
        &["0 reports", "1 to 100000"],
    );
    assert_eq!(service.minted().await, 0.0);
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_refused() {
    let service = Service::start("").await;
    let twice = KNOWN.replace("\"primary\"", "\"tca\":\"\",\"primary\"");
    let deep = format!("{}1{}", "[".repeat(65), "]".repeat(65));
    for body in [
        "{",
        " ",
        "[",
        KNOWN.trim_end_matches('}'),
        "CCSDS_CDM_VERS = 1.0",
        &twice,
        &deep,
    ] {
        let answer = service.exchange(&post("/ids/conjunction", body)).await;
        assert_eq!(
            (answer.status, &answer.json()["type"]),
            (400, &json!("/problems/malformed-request")),
            "{body}"
        );
    }
    let text = service
        .exchange(&post_request(
            "/ids/conjunction",
            "content-type: text/html\r\n",
            KNOWN,
        ))
        .await;
    let known = "application/json, text/plain, application/xml, text/xml, text/csv";
    assert_eq!((text.status, text.header("accept")), (415, Some(known)));
    let packed = service
        .exchange(&post_request(
            "/ids/conjunction",
            &format!("{JSON}content-encoding: gzip\r\n"),
            KNOWN,
        ))
        .await;
    assert_eq!(packed.status, 415);

    const MOST: usize = 16 * 1024 * 1024;
    let padded = |len: usize| format!("{KNOWN}{}", " ".repeat(len - KNOWN.len()));
    assert_eq!(
        service
            .exchange(&post("/ids/conjunction", &padded(MOST)))
            .await
            .status,
        200
    );
    let head = format!(
        "POST /ids/conjunction HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        MOST + 1
    );
    let too_long = service.exchange(&head).await;
    assert_eq!(too_long.status, 413);
    assert!(
        too_long.json()["detail"]
            .as_str()
            .unwrap()
            .contains("16777216"),
        "{too_long:?}"
    );
}

#[tokio::test]
async fn a_parameter_that_means_nothing_to_reports_is_refused_with_a_request_that_works() {
    let service = Service::start(CLOSE_CALLS).await;
    for (query, reason, named) in [
        (
            "count=1",
            "count",
            &["count", "one id for each report"] as &[_],
        ),
        ("type=message", "type", &["type"]),
        ("domain=example.com", "domain", &["domain"]),
        ("encoding=base36", "encoding", &["base36", "decimal"]),
    ] {
        for format in ["conjunction", "close-calls"] {
            let problem = service
                .exchange(&post(&format!("/ids/{format}?{query}"), KNOWN))
                .await
                .json();
            assert_eq!(
                (&problem["type"], &problem["reason"]),
                (&json!("/problems/invalid-parameter"), &json!(reason))
            );
            let detail = problem["detail"].as_str().unwrap();
            assert!(named.iter().all(|named| detail.contains(named)), "{detail}");
            let example: Vec<_> = problem["example"]
                .as_str()
                .unwrap()
                .splitn(3, ' ')
                .collect();
            assert_eq!(
                (example[0], example[1]),
                ("POST", format!("/ids/{format}").as_str())
            );
            let answer = service.exchange(&post(example[1], example[2])).await;
            assert_eq!(answer.status, 200, "{example:?}: {answer:?}");
        }
    }
    let unknown = service
        .exchange(&post("/ids/conjunction?retrun=cdm", KNOWN))
        .await;
    assert_eq!(unknown.status, 422);
    assert!(
        unknown.json()["detail"]
            .as_str()
            .unwrap()
            .contains("return")
    );
}

#[tokio::test]
async fn a_pair_has_no_order_where_that_is_configured() {
    let service = Service::start("conjunction.pair_order = 'unordered'").await;
    for (primary, secondary) in [(25_544, 48_274), (48_274, 25_544)] {
        assert_eq!(
            id(&service, "2024-02-01T00:00:00Z", primary, secondary).await,
            KNOWN_ID
        );
    }
}

#[tokio::test]
async fn a_node_that_cannot_mint_others_answers_reports() {
    // The clock was never set. Ids that need the current time cannot be minted, but reports have
    // their own time.
    let service = Service::start_on(ManualClock::at(UnixNanos::from_seconds(1)), PURE).await;
    assert_eq!(service.get("/health/ready").await.status, 503);
    assert_eq!(service.post("/ids/snowflake").await.status, 503);
    assert_eq!(
        id(&service, "2024-02-01T00:00:00Z", 25_544, 48_274).await,
        KNOWN_ID
    );
}

#[tokio::test]
async fn reports_are_counted_and_the_format_says_that_it_is_minted() {
    let service = Service::start("mint.batch_max = 500").await;
    service.exchange(&post("/ids/conjunction", KNOWN)).await;
    service
        .exchange(&request_accepting(
            "text/plain",
            &format!("[{KNOWN},{KNOWN}]"),
        ))
        .await;
    service.exchange(&post("/ids/conjunction", "{")).await;
    let metrics = service.metrics().await;
    for (series, total) in [
        (r#"idmint_ids_minted_total{format="conjunction"}"#, 3.0),
        (
            r#"idmint_mint_requests_total{format="conjunction",outcome="minted"}"#,
            2.0,
        ),
        (
            r#"idmint_mint_requests_total{format="conjunction",outcome="invalid"}"#,
            1.0,
        ),
        (
            r#"idmint_mint_requests_total{format="conjunction",outcome="refused"}"#,
            0.0,
        ),
    ] {
        assert_eq!(metrics.get(series), Some(&total), "{series}");
    }
    let format = service.get("/formats/conjunction").await.json();
    assert_eq!(
        (&format["minted"], &format["batch_max"]),
        (&json!(true), &json!("500"))
    );
    assert_eq!(format["workers"], json!([]));
    assert!(
        service
            .get("/")
            .await
            .text()
            .lines()
            .next()
            .unwrap()
            .contains(" conjunction ")
    );
    let only_read = service.get("/formats/objectid").await.json();
    assert_eq!(only_read["minted"], false);
}

#[tokio::test]
async fn a_format_of_ones_own_has_the_same_powers() {
    let settings = format!(
        "{CLOSE_CALLS}\n[formats.later]\nlike = 'conjunction'\nepoch = '2024-02-01T00:00:00Z'\n[formats.ended]\nlike = 'close-calls'\nmint_below = 67108864"
    );
    let service = Service::start(&settings).await;
    let ask = async |path: &str, body: &str| service.exchange(&post(path, body)).await;
    let report = |tca: &str| {
        with("tca", &format!("\"{tca}\""))
            .replace("25544", "3")
            .replace("48274", "5")
    };

    let answer = ask("/ids/close-calls", &report("2040-01-01T00:00:00.079")).await;
    assert_eq!(
        ids_of(&answer),
        [(7_u64 << 18 | 2 << 16 | 3 << 8 | 5).to_string()]
    );
    let early = ask("/ids/close-calls", &report("2039-12-31T23:59:59.999999")).await;
    assert_refused(
        &early,
        "before_epoch",
        &["close-calls", "2040-01-01T00:00:00.000Z"],
    );
    assert_refused(&ask("/ids/close-calls", KNOWN).await, "before_epoch", &[]);
    let wide = ask("/ids/close-calls", &with("tca", "\"2040-01-01T00:00:00Z\"")).await;
    assert_refused(&wide, "out_of_range", &["primary is 25544", "255"]);
    let late = ask("/ids/ended", &report("2040-01-01T00:00:02.56")).await;
    assert_refused(
        &late,
        "overflow",
        &["must be before 2040-01-01T00:00:02.560Z, when `ended` ends"],
    );
    assert_eq!(
        ask("/ids/ended", &report("2040-01-01T00:00:02.559999"))
            .await
            .status,
        200
    );

    let answer = ask("/ids/later?encoding=decimal", KNOWN).await;
    assert_eq!(ids_of(&answer), [(25_544_u64 << 22 | 48_274).to_string()]);
}
