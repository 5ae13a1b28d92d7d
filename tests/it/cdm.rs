//! Checks the responses of `POST /ids/conjunction` to Conjunction Data Messages. A response
//! contains the ids, or the messages with the ids inserted.

use std::path::Path;

use serde_json::{Value, json};

use crate::service::{Service, ids_of};
use crate::support::post_request;
use idmint_testing::cases;
use idmint_testing::http1::Answer;

/// A setting with which the id of each report follows from the report's own time. These tests cover
/// reading and returning messages, and not the grouping of reports.
const PURE: &str = "conjunction.mode = 'pure'";

const FIRST: &str = "zwwqlzz-pjjmxmd-lkpvwq";

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cdm")
        .join(name);
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

async fn send(service: &Service, query: &str, media: &str, body: &str) -> Answer {
    let headers = format!("content-type: {media}\r\n");
    service
        .exchange(&post_request(
            &format!("/ids/conjunction{query}"),
            &headers,
            body,
        ))
        .await
}

/// The name of every fixture, with its media type and the number of messages in it.
const SENT: [(&str, &str, usize); 18] = [
    ("one.kvn", "text/plain", 1),
    ("several-crlf.kvn", "text/plain; charset=utf-8", 3),
    ("noted.kvn", "text/plain", 1),
    ("one.xml", "application/xml", 1),
    ("several.xml", "text/xml", 2),
    ("cdm.json", "application/json", 1),
    ("cdm_public.json", "application/json", 2),
    ("two.kvn", "text/plain", 1),
    ("two-theirs.kvn", "text/plain", 1),
    ("two-noted.kvn", "text/plain", 1),
    ("two.xml", "application/xml", 1),
    ("two-theirs.xml", "application/xml", 1),
    ("envelope.json", "application/json", 1),
    ("leolabs.json", "application/json", 1),
    ("other-names.json", "application/json", 2),
    ("nested.json", "application/json", 1),
    ("cdm_public.csv", "text/csv", 2),
    ("socrates.csv", "text/csv; charset=utf-8", 2),
];

/// Returns the query that requests the messages back.
fn returning(media: &str) -> &'static str {
    match media.starts_with("text/csv") {
        true => "?return=csv",
        false => "?return=cdm",
    }
}

/// Returns `true` if the messages of this fixture already contain their ids.
fn is_noted(name: &str) -> bool {
    matches!(name, "noted.kvn" | "two-noted.kvn")
}

#[tokio::test]
async fn messages_of_every_form_get_the_ids_of_their_reports() {
    let service = Service::start(PURE).await;
    let report =
        |tca, primary, secondary| json!({ "tca": tca, "primary": primary, "secondary": secondary });
    let reports = json!([
        report("2024-02-01T00:00:00.25Z", 25_544, 48_274),
        report("2024-02-01T11:04:27.5Z", 270_001, 339_999),
        report("2017-01-01T00:00:00.5Z", 5, 12),
    ]);
    let plain = send(&service, "", "application/json", &reports.to_string())
        .await
        .json();
    assert_eq!(plain["ids"][0], FIRST);
    for (name, media, count) in SENT {
        let answer = send(&service, "", media, &fixture(name)).await;
        assert_eq!(answer.status, 200, "{name}: {answer:?}");
        let json = answer.json();
        for member in ["ids", "details"] {
            let expected: Vec<_> = plain[member].as_array().unwrap()[..count].to_vec();
            if name != "several-crlf.kvn" || member == "ids" {
                assert_eq!(json[member], Value::Array(expected), "{name}: {member}");
            }
        }
        assert_eq!(
            answer.header("idmint-count"),
            Some(count.to_string().as_str())
        );
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    let finer = send(&service, "", "text/plain", &fixture("several-crlf.kvn"))
        .await
        .json();
    assert_eq!(
        finer["details"][1]["anchor_tca"],
        "2024-02-01T11:04:27.500000Z"
    );
    let text = "content-type: text/xml\r\naccept: text/plain\r\n";
    let lines = service
        .exchange(&post_request(
            "/ids/conjunction",
            text,
            &fixture("several.xml"),
        ))
        .await;
    assert_eq!(lines.text().lines().next(), Some(FIRST));
}

#[tokio::test]
async fn messages_come_back_with_their_ids_in_them_and_a_second_time_unchanged() {
    let service = Service::start(PURE).await;
    for (name, media, count) in SENT {
        for encoding in ["hashids", "decimal", "hex_padded"] {
            let query = format!("{}&encoding={encoding}", returning(media));
            let sent = fixture(name);
            let ids = ids_of(&send(&service, &format!("?encoding={encoding}"), media, &sent).await);
            let back = send(&service, &query, media, &sent).await;
            assert_eq!(back.status, 200, "{name}: {back:?}");
            let media_type = media.split(';').next().unwrap();
            assert_eq!(
                back.header("content-type").unwrap().split(';').next(),
                Some(media_type)
            );
            assert_eq!(
                back.header("idmint-count"),
                Some(count.to_string().as_str())
            );
            assert_eq!(back.header("cache-control"), Some("no-store"));
            assert_eq!(
                back.header("content-length"),
                Some(back.body.len().to_string().as_str())
            );
            let new: Vec<_> = ids.iter().filter(|_| !is_noted(name)).collect();
            assert!(
                new.iter().all(|id| back.text().contains(id.as_str())),
                "{name}: {}",
                back.text()
            );
            assert_eq!(back.text() == sent, new.is_empty(), "{name}");

            // Send the messages again. Their ids must be recognized in any encoding, and must stay
            // unchanged.
            for encoding in ["", "&encoding=decimal"] {
                let query = format!("{}{encoding}", returning(media));
                let again = send(&service, &query, media, &back.text()).await;
                assert!(again.body == back.body, "{name} {query}: {}", again.text());
            }
            assert_eq!(
                ids_of(&send(&service, "", media, &back.text()).await).len(),
                count
            );
        }
    }
    let one = send(&service, "?return=cdm", "text/plain", &fixture("one.kvn")).await;
    let comment = format!(
        "COMMENT SCREENING = a comment with an equals sign\nCOMMENT CONJUNCTION_EVENT_ID = {FIRST}\n"
    );
    assert!(one.text().contains(&comment), "{}", one.text());
}

#[tokio::test]
async fn csv_comes_back_with_the_ids_in_its_last_column() {
    let service = Service::start(PURE).await;
    let sent = fixture("socrates.csv");
    let back = send(&service, "?return=csv", "text/csv", &sent).await;
    assert_eq!(back.header("content-type"), Some("text/csv; charset=utf-8"));
    let text = back.text();
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert!(
        lines[0].ends_with(",DILUTION,CONJUNCTION_EVENT_ID"),
        "{text}"
    );
    assert!(
        lines[1].ends_with(&format!(",1.139E-02,\"{FIRST}\"")),
        "{text}"
    );
    assert_eq!((lines.len(), lines[3]), (4, ""), "{text}");

    // An empty column is filled, and an id that is there already stays.
    let filled = "TCA;CONJUNCTION_EVENT_ID;SAT_1_ID;SAT_2_ID\n2024-02-01 00:00:00.9;;25544;48274\n";
    let expected = filled.replacen(";;", &format!(";{FIRST};"), 1);
    let back = send(&service, "?return=csv", "text/csv", filled).await;
    assert_eq!(back.text(), expected);
    let again = send(&service, "?return=csv", "text/csv", &expected).await;
    assert_eq!(again.text(), expected);

    for (query, media, body) in [
        ("?return=cdm", "text/csv", fixture("socrates.csv")),
        ("?return=csv", "text/plain", fixture("one.kvn")),
        ("?return=xml", "text/plain", fixture("one.kvn")),
    ] {
        let answer = send(&service, query, media, &body).await;
        assert_refused(&answer, 422, "invalid-parameter", "return", "return is ");
    }
    let partial = sent.replace("25544", "UNKNOWN");
    let answer = send(&service, "?partial=true", "text/csv", &partial)
        .await
        .json();
    assert_eq!(answer["count"], 1, "{answer}");
    assert_eq!(answer["details"][0]["problem"]["line"], 2, "{answer}");
}

#[tokio::test]
async fn kvn_in_utf_16_comes_back_in_utf_16() {
    let service = Service::start(PURE).await;
    for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        let utf_16 = |text: &str| -> Vec<u8> {
            let text = format!("\u{feff}{text}");
            text.encode_utf16().flat_map(to_bytes).collect()
        };
        let head = |body: &[u8]| {
            let len = body.len();
            format!(
                "POST /ids/conjunction?return=cdm HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-length: {len}\r\n\r\n"
            )
        };
        let sent = utf_16(&fixture("one.kvn"));
        let request = [head(&sent).as_bytes(), &sent].concat();
        let back = service.connect().await.exchange(request).await;
        assert_eq!(back.status, 200, "{back:?}");
        assert_eq!(
            back.header("content-type"),
            Some("text/plain; charset=utf-16")
        );
        let utf_8 = send(&service, "?return=cdm", "text/plain", &fixture("one.kvn")).await;
        assert_eq!(back.body, utf_16(&utf_8.text()));
    }
}

#[tokio::test]
async fn another_originators_id_in_json_is_kept_and_refuses_no_report() {
    let service = Service::start("").await;
    let row = |id: &Value| {
        json!({ "TCA": "2024-02-01T00:00:00.25", "SAT_1_ID": "25544", "SAT_2_ID": "48274", "CONJUNCTION_ID": id })
            .to_string()
    };
    let long = "x".repeat(300);
    for id in [
        json!("theirs"),
        json!(7),
        json!(null),
        json!({}),
        json!(""),
        json!(long),
        json!(FIRST),
    ] {
        let back = send(&service, "?return=cdm", "application/json", &row(&id)).await;
        assert_eq!(back.status, 200, "{back:?}");
        let expected = format!("\"CONJUNCTION_EVENT_ID\":\"{FIRST}\"");
        assert!(back.text().contains(&expected), "{}", back.text());
    }
    let nested = fixture("nested.json");
    assert_eq!(
        send(&service, "", "application/json", &nested).await.status,
        200
    );
    let csv = "TCA,SAT_1_ID,SAT_2_ID,CONJUNCTION_ID\n2024-02-01 00:00:00,25544,48274,of csv\n";
    assert_eq!(send(&service, "", "text/csv", csv).await.status, 200);
    let shown = service.get(&format!("/conjunctions/{FIRST}")).await.json();
    assert_eq!(
        shown["external"],
        json!(["theirs", "7", "EXAMPLE-7", "of csv"])
    );
}

#[tokio::test]
async fn a_message_of_version_2_comes_back_with_its_id_as_the_keyword_of_the_standard() {
    let service = Service::start(PURE).await;
    let keyword = format!("COMMENT Relative Metadata/Data\nCONJUNCTION_ID = {FIRST}\nTCA");
    let back = send(&service, "?return=cdm", "text/plain", &fixture("two.kvn")).await;
    assert!(back.text().contains(&keyword), "{}", back.text());
    assert!(
        !back.text().contains("CONJUNCTION_EVENT_ID"),
        "{}",
        back.text()
    );
    let back = send(&service, "?return=cdm", "text/xml", &fixture("two.xml")).await;
    assert!(
        back.text().contains(&format!(
            "<CONJUNCTION_ID>{FIRST}</CONJUNCTION_ID>\n      <TCA>"
        )),
        "{}",
        back.text()
    );

    // If another originator has already set the keyword, the keyword must stay, and the id of
    // idmint goes into a comment.
    for (name, media) in [
        ("two-theirs.kvn", "text/plain"),
        ("two-theirs.xml", "application/xml"),
    ] {
        let back = send(&service, "?return=cdm", media, &fixture(name))
            .await
            .text();
        assert!(back.contains("20240201T00hz SATELLITEA "), "{back}");
        assert!(
            back.contains(&format!("CONJUNCTION_EVENT_ID = {FIRST}")),
            "{back}"
        );
    }

    // The setting decides where the id is inserted, even if the version of the message has another
    // default.
    for (note, names, key) in [
        (
            "comment",
            ["two.kvn", "one.kvn"],
            "COMMENT CONJUNCTION_EVENT_ID",
        ),
        ("conjunction_id", ["two.kvn", "one.kvn"], "\nCONJUNCTION_ID"),
    ] {
        let service = Service::start(&format!("{PURE}\nconjunction.note = '{note}'")).await;
        for name in names {
            let back = send(&service, "?return=cdm", "text/plain", &fixture(name)).await;
            assert!(
                back.text().contains(&format!("{key} = {FIRST}\n")),
                "{name} {note}: {}",
                back.text()
            );
            let again = send(&service, "?return=cdm", "text/plain", &back.text()).await;
            assert!(again.body == back.body, "{name} {note}: {}", again.text());
        }
    }
}

#[tokio::test]
async fn a_keyword_is_an_id_of_this_service_only_if_it_is_of_the_two_objects() {
    let service = Service::start("").await;
    let noted = fixture("two-noted.kvn");
    let detail = send(
        &service,
        "",
        "text/plain",
        &noted.replace("2024-032T00:00:00.25", "2024-032T00:00:01.5"),
    )
    .await;
    assert_eq!(
        ids_of(&detail),
        [FIRST],
        "it is adopted as an id in a comment is"
    );

    // Each of these ids can be read as an id of idmint for other objects: a plain number, and two
    // ids of another pair. They must count as ids of another originator.
    for theirs in ["20240201", "zwwqlzz-pjjmxmd-lkpvwr", FIRST] {
        let sent = noted.replace(FIRST, theirs).replace("= 25544", "= 25545");
        let back = send(&service, "?return=cdm", "text/plain", &sent).await;
        assert_eq!(back.status, 200, "{theirs}: {back:?}");
        assert!(
            back.text()
                .contains(&format!("\nCONJUNCTION_ID = {theirs}\n")),
            "{}",
            back.text()
        );
        assert!(
            back.text().contains("COMMENT CONJUNCTION_EVENT_ID = "),
            "{}",
            back.text()
        );
    }

    // Send a message with two ids of idmint, one in a comment and one in the keyword.
    let both = |comment: &str| {
        let of_comment = format!("= 2.0\nCOMMENT CONJUNCTION_EVENT_ID = {comment}\n");
        noted.replacen("= 2.0\n", &of_comment, 1)
    };
    let same = send(
        &service,
        "?return=cdm&encoding=decimal",
        "text/plain",
        &both("30025386125795551919250"),
    )
    .await;
    assert_eq!(
        (same.status, same.text()),
        (200, both("30025386125795551919250"))
    );
    let next = "30025386143387737963666"; // The next second.
    let problem = send(&service, "", "text/plain", &both(next)).await;
    let problem = assert_refused(&problem, 422, "invalid-report", "another_id", next);
    assert_eq!(
        (&problem["line"], &problem["keyword"]),
        (&json!(6), &json!("CONJUNCTION_ID")),
        "{problem}"
    );
}

#[tokio::test]
async fn a_conjunction_is_found_by_the_ids_that_others_have_given_it() {
    let service = Service::start("").await;
    let found = async |query: &str| service.get(&format!("/conjunctions?{query}")).await.json();
    let ids_found = async |query: &str| {
        let list = found(query).await["conjunctions"].clone();
        list.as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let theirs = fixture("two-theirs.kvn");
    let external = "20240201T00hz SATELLITEA SATELLITEB";
    let named = |id: &str| theirs.replacen(external, id, 1);
    assert_eq!(send(&service, "", "text/plain", &theirs).await.status, 200);
    assert_eq!(
        ids_found(&format!("external={}", external.replace(' ', "%20"))).await,
        [FIRST]
    );
    assert_eq!(
        send(&service, "", "application/xml", &fixture("two-theirs.xml"))
            .await
            .status,
        200
    );
    let of_xml = "20240201T00hz SATELLITEA & SATELLITEB";
    assert_eq!(
        service.get(&format!("/conjunctions/{FIRST}")).await.json()["external"],
        json!([external, of_xml])
    );

    // Two conjunctions can have the same external id, even if another message of the list is
    // refused. A conjunction keeps only its first 16 external ids.
    let other = named("ROUND-7").replace("= 25544", "= 25545");
    let partial = format!("{}{other}", named("ROUND-7").replacen("= 2.0", "= 3.0", 1));
    let answer = send(&service, "?partial=true", "text/plain", &partial).await;
    assert_eq!(
        (
            answer.status,
            answer.json()["details"][0]["problem"]["reason"].clone()
        ),
        (200, json!("bad_version"))
    );
    for number in 0..20 {
        let back = send(
            &service,
            "?return=cdm",
            "text/plain",
            &named(&format!("ROUND-{number}")),
        )
        .await;
        assert_eq!(back.status, 200, "{back:?}");
    }
    let list = found("external=ROUND-7").await;
    assert_eq!(
        (
            list["conjunctions"].as_array().unwrap().len(),
            &list["next"]
        ),
        (2, &Value::Null),
        "{list}"
    );
    assert_eq!(ids_found("external=ROUND-7&primary=25544").await, [FIRST]);
    let first_page = found("external=ROUND-7&limit=1").await;
    let next = first_page["next"].as_str().unwrap();
    let second_page = found(&format!("external=ROUND-7&limit=1&after={next}")).await;
    assert_eq!(
        [&first_page, &second_page].map(|page| &page["conjunctions"][0]),
        [&list["conjunctions"][0], &list["conjunctions"][1]]
    );
    assert_eq!(second_page["next"], Value::Null);
    assert_eq!(
        ids_found("external=ROUND-7&from=2025-01-01T00:00:00Z").await,
        Vec::<String>::new()
    );
    let shown = service.get(&format!("/conjunctions/{FIRST}")).await.json();
    assert_eq!(shown["external"].as_array().unwrap().len(), 16, "{shown}");
    assert_eq!(
        (
            ids_found("external=ROUND-13").await,
            ids_found("external=ROUND-14").await
        ),
        (vec![FIRST.to_owned()], vec![])
    );

    // In a query, a plus sign means a space, so the service reads a space in a time as the plus
    // sign of an offset. It must not do so in an external id, which may contain a space.
    let timed = named("EVENT 2024-02-01 00:15").replace("= 25544", "= 25546");
    assert_eq!(send(&service, "", "text/plain", &timed).await.status, 200);
    let listed = ids_found("external=EVENT%202024-02-01%2000:15").await;
    assert_eq!(listed.len(), 1, "{listed:?}");

    // An id of idmint must never be stored as an external id, in any encoding.
    assert_eq!(
        send(&service, "", "text/plain", &fixture("two-noted.kvn"))
            .await
            .status,
        200
    );
    assert_eq!(
        ids_found(&format!("external={FIRST}")).await,
        Vec::<String>::new()
    );
    for (query, detail) in [
        (
            "external=",
            "external has 0 characters, but must have from 1 to 254",
        ),
        (
            &format!("external={}", "A".repeat(255)),
            "external has 255 characters",
        ),
    ] {
        let answer = service.get(&format!("/conjunctions?{query}")).await;
        assert_eq!(
            (answer.status, answer.json()["reason"].clone()),
            (422, json!("external")),
            "{answer:?}"
        );
        assert!(
            answer.json()["detail"].as_str().unwrap().contains(detail),
            "{}",
            answer.text()
        );
    }
    let pure = Service::start(PURE).await;
    assert_eq!(
        send(&pure, "", "text/plain", &theirs).await.status,
        200,
        "nothing is stored"
    );
}

#[tokio::test]
async fn an_unknown_version_that_begins_with_2_is_read_with_a_warning() {
    let service = Service::start(PURE).await;
    let warning = "CCSDS_CDM_VERS 2.7 is not known; the message was read as 2.0";
    let (known, unknown) = (
        fixture("two.kvn"),
        fixture("two.kvn").replacen("= 2.0", "= 2.7", 1),
    );
    let both = format!("{known}{unknown}");
    let answer = send(&service, "", "text/plain", &both).await.json();
    assert_eq!(
        (
            answer["details"][0].get("warning"),
            &answer["details"][1]["warning"]
        ),
        (None, &json!(warning))
    );

    let refused = known.replacen("= 2.0", "= 3.0", 1);
    let answer = send(
        &service,
        "?partial=true",
        "text/plain",
        &format!("{refused}{both}"),
    )
    .await
    .json();
    assert_eq!(answer["details"][0]["problem"]["reason"], "bad_version");
    assert_eq!(
        (
            answer["details"][1].get("warning"),
            &answer["details"][2]["warning"]
        ),
        (None, &json!(warning))
    );

    let back = send(&service, "?return=cdm", "text/plain", &both).await;
    assert_eq!(
        (back.status, back.header("idmint-warning")),
        (200, Some(warning))
    );
    let several = format!("{warning} (the first of 2 warnings)");
    let back = send(
        &service,
        "?return=cdm",
        "text/plain",
        &format!("{unknown}{unknown}"),
    )
    .await;
    assert_eq!(back.header("idmint-warning"), Some(several.as_str()));
    assert_eq!(
        send(&service, "?return=cdm", "text/plain", &known)
            .await
            .header("idmint-warning"),
        None
    );
    let lines = "content-type: text/plain\r\naccept: text/plain\r\n";
    let lines = service
        .exchange(&post_request("/ids/conjunction", lines, &unknown))
        .await;
    assert_eq!(
        (lines.text().as_str(), lines.header("idmint-warning")),
        (format!("{FIRST}\n").as_str(), Some(warning))
    );
}

fn assert_refused(answer: &Answer, status: u16, slug: &str, reason: &str, detail: &str) -> Value {
    let problem = answer.json();
    assert_eq!(
        (answer.status, &problem["reason"]),
        (status, &json!(reason)),
        "{problem}"
    );
    assert_eq!(problem["type"], format!("/problems/{slug}"));
    assert!(
        problem["detail"].as_str().unwrap().contains(detail),
        "{problem}"
    );
    problem
}

#[tokio::test]
async fn a_message_that_is_wrong_is_told_with_its_line_and_its_keyword() {
    let service = Service::start(PURE).await;
    let expected = fixture("malformed/expected.tsv");
    let mut seen = 0;
    for case in expected
        .lines()
        .filter(|line| !line.starts_with('#') && !line.contains("latin-1"))
    {
        let [name, line, keyword, reason] = case.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{case:?}")
        };
        let media = match name.rsplit('.').next().unwrap() {
            "kvn" => "text/plain",
            "xml" => "application/xml",
            "csv" => "text/csv",
            // Invalid JSON, and JSON that is not a message, get the same refusal as idmint's own
            // JSON reports.
            _ if matches!(
                name,
                "cut.json" | "nothing.json" | "tca-twice.json" | "name-twice.json"
            ) =>
            {
                continue;
            }
            _ => "application/json",
        };
        let answer = send(&service, "", media, &fixture(&format!("malformed/{name}"))).await;
        let problem = assert_refused(
            &answer,
            422,
            "invalid-report",
            reason,
            &format!("line {line}: "),
        );
        assert_eq!(problem["line"].to_string(), line, "{name}: {problem}");
        assert_eq!(
            problem["keyword"].as_str().unwrap_or("-"),
            keyword,
            "{name}: {problem}"
        );
        assert!(
            problem["detail"].as_str().unwrap().starts_with("line "),
            "{name}: {problem}"
        );
        seen += 1;
    }
    assert!(seen > 55, "{seen}");
    assert_eq!(service.minted().await, 0.0);
    for (body, media, status) in [
        (fixture("malformed/cut.json"), "application/json", 400),
        (
            fixture("malformed/name-twice.json"),
            "application/json",
            400,
        ),
        ("{\"TCA\":1".into(), "application/json", 400),
        (
            "{\"tca\":\"2024-02-01T00:00:00Z\",\"primary\":1,\"secondary\":2}".into(),
            "text/plain",
            422,
        ),
        (fixture("one.kvn"), "application/xml", 422),
        (fixture("one.xml"), "text/plain", 422),
        (fixture("one.kvn"), "application/json", 400),
        (fixture("one.kvn"), "text/csv", 422),
        (fixture("one.kvn"), "text/html", 415),
    ] {
        assert_eq!(
            send(&service, "", media, &body).await.status,
            status,
            "{media}: {body}"
        );
    }
}

#[tokio::test]
async fn a_message_that_names_another_id_is_refused_with_both() {
    let service = Service::start(PURE).await;
    for (name, media, line) in [
        ("one.kvn", "text/plain", 4),
        ("one.xml", "text/xml", 6),
        ("cdm.json", "application/json", 1),
    ] {
        let back = send(&service, "?return=cdm", media, &fixture(name))
            .await
            .text();
        // The new time is more than a second away from the second in the attached id.
        let moved = back.replace("2024-02-01T00:00:00.250", "2024-02-01T00:00:03.250");
        let answer = send(&service, "?return=cdm", media, &moved).await;
        let problem = assert_refused(&answer, 422, "invalid-report", "another_id", FIRST);
        assert_eq!(
            (&problem["line"], &problem["keyword"]),
            (&json!(line), &json!("CONJUNCTION_EVENT_ID")),
            "{problem}"
        );
        let ids = ids_of(
            &send(
                &service,
                "",
                media,
                &moved
                    .replace(FIRST, "")
                    .replace("CONJUNCTION_EVENT_ID", "X"),
            )
            .await,
        );
        assert!(
            problem["detail"].as_str().unwrap().contains(&ids[0]),
            "{problem}"
        );

        let nonsense = send(
            &service,
            "?return=cdm",
            media,
            &back.replace(FIRST, "nonsense"),
        )
        .await;
        assert_refused(
            &nonsense,
            422,
            "invalid-report",
            "another_id",
            "\"nonsense\" is not an id of this format",
        );
    }
}

#[tokio::test]
async fn a_value_that_the_format_has_no_room_for_is_told_with_its_line() {
    let service = Service::start(PURE).await;
    let one = fixture("one.kvn");
    for (from, to, line, keyword, reason, limit) in [
        (
            "48274",
            "799500001",
            55,
            "OBJECT_DESIGNATOR",
            "out_of_range",
            "4194303",
        ),
        (
            "25544",
            "4194304",
            25,
            "OBJECT_DESIGNATOR",
            "out_of_range",
            "4194303",
        ),
        (
            "2024-02-01T00",
            "2242-03-16T13",
            9,
            "TCA",
            "overflow",
            "2242-03-16T12:56:32.000Z",
        ),
        (
            "2024-02-01T00",
            "1969-365T23",
            9,
            "TCA",
            "before_epoch",
            "1970-01-01T00:00:00.000Z",
        ),
    ] {
        let answer = send(&service, "", "text/plain", &one.replacen(from, to, 1)).await;
        let problem = assert_refused(&answer, 422, "invalid-report", reason, keyword);
        let told = (&problem["line"], &problem["keyword"], &problem["limit"]);
        assert_eq!(
            told,
            (&json!(line), &json!(keyword), &json!(limit)),
            "{problem}"
        );
    }
    let small = Service::start("mint.batch_max = 2").await;
    let three = send(&small, "", "text/plain", &fixture("several-crlf.kvn")).await;
    assert_refused(&three, 422, "invalid-report", "count", "3 reports");
}

#[tokio::test]
async fn what_comes_back_is_what_was_sent_or_nothing() {
    let service = Service::start(PURE).await;
    let plain = r#"{"tca":"2024-02-01T00:00:00Z","primary":25544,"secondary":48274}"#;
    let answer = send(&service, "?return=cdm", "application/json", plain).await;
    assert_refused(
        &answer,
        422,
        "invalid-parameter",
        "return",
        "Conjunction Data Messages",
    );
    let answer = send(&service, "?return=ids", "text/plain", &fixture("one.kvn")).await;
    let problem = assert_refused(&answer, 422, "invalid-parameter", "return", "\"ids\"");
    assert_eq!(problem["limit"], "cdm");
    let answer = service.post("/ids/snowflake?return=cdm").await;
    assert_refused(
        &answer,
        422,
        "invalid-parameter",
        "unknown_parameter",
        "return",
    );

    let one = fixture("one.xml");
    for (accept, status) in [
        ("application/xml", 200),
        ("application/*", 200),
        ("application/json", 406),
        ("text/xml", 406),
    ] {
        let headers = format!("content-type: application/xml\r\naccept: {accept}\r\n");
        let answer = service
            .exchange(&post_request("/ids/conjunction?return=cdm", &headers, &one))
            .await;
        assert_eq!(answer.status, status, "{accept}: {answer:?}");
    }
}

#[tokio::test]
async fn a_mixture_of_two_kinds_of_json_is_refused() {
    let service = Service::start(PURE).await;
    let ours = r#"{"tca":"2024-02-01T00:00:00Z","primary":25544,"secondary":48274}"#;
    let theirs = r#"{"TCA":"2024-02-01T00:00:00","SAT_1_ID":"25544","SAT_2_ID":"48274"}"#;
    for body in [
        format!("[{ours},{theirs}]"),
        format!("[{theirs},{ours}]"),
        ours.replace("tca", "TCA"),
        theirs.replace("TCA", "tca"),
        theirs.replace('{', r#"{"primary":25544,"#),
    ] {
        let answer = send(&service, "", "application/json", &body).await;
        assert_eq!(
            (answer.status, &answer.json()["reason"]),
            (422, &json!("report_form")),
            "{body}: {answer:?}"
        );
    }
    let bom = send(
        &service,
        "?return=cdm",
        "application/json",
        &format!("\u{feff}{theirs}"),
    )
    .await;
    assert_eq!(
        bom.text(),
        format!(
            "\u{feff}{},\"CONJUNCTION_EVENT_ID\":\"{FIRST}\"}}",
            theirs.trim_end_matches('}')
        )
    );
}

#[tokio::test]
async fn a_byte_order_mark_before_json_reports_is_skipped() {
    let service = Service::start("").await;
    let plain = r#"{"tca":"2024-02-01T00:00:00Z","primary":25544,"secondary":48274}"#;
    let analysis = r#"{"tca":"2024-02-01T00:00:00Z","primary_object":{"norad_id":25544},"secondary_object":{"norad_id":48274}}"#;
    for report in [plain, analysis] {
        for (query, body) in [
            ("", report.to_owned()),
            ("", format!("[{report}]")),
            ("?partial=true", format!("[{report}]")),
        ] {
            let marked = format!("\u{feff}{body}");
            let answer = send(&service, query, "application/json", &marked).await;
            assert_eq!(answer.status, 200, "{query} {body}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_long_document_comes_back_whole() {
    let service = Service::start("mint.batch_max = 20000").await;
    let message = |at: usize| {
        format!(
            "CCSDS_CDM_VERS = 1.0\nTCA = 2024-02-01T00:00:00\nOBJECT = OBJECT1\nOBJECT_DESIGNATOR = {at}\n\
             OBJECT = OBJECT2\nOBJECT_DESIGNATOR = 4194303\n"
        )
    };
    let sent: String = (1..=20_000).map(message).collect();
    let back = send(
        &service,
        "?return=cdm&encoding=hex_padded",
        "text/plain",
        &sent,
    )
    .await;
    assert_eq!(
        (back.status, back.header("idmint-count")),
        (200, Some("20000"))
    );
    let kept: String = back
        .text()
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("COMMENT CONJUNCTION_EVENT_ID = 06"))
        .collect();
    assert!(kept == sent && back.text().len() > sent.len());
}

#[tokio::test]
async fn an_id_of_a_format_of_ones_own_goes_into_each_form_and_is_known_again() {
    // Use an alphabet with the characters that XML and JSON must escape.
    let settings = r#"
        [formats.odd]
        summary = "Odd letters"
        rule = "grouped"
        tick = "1s"
        epoch = "2020-01-01T00:00:00Z"
        fields = [{ name = "t", kind = "time", bits = 33 }, { name = "a", kind = "object", bits = 22 }, { name = "b", kind = "object", bits = 22 }]
        encodings = [{ kind = "hashids", salt = "", alphabet = "<>&\"'\\abcdefghijklmnopqrst" }, "decimal"]
    "#;
    let service = Service::start(settings).await;
    for (name, media, count) in SENT.iter().filter(|(name, ..)| !is_noted(name)) {
        if *name == "several-crlf.kvn" {
            continue; // One of its times is before this epoch.
        }
        let headers = format!("content-type: {media}\r\n");
        let target = &format!("/ids/odd{}", returning(media));
        let back = service
            .exchange(&post_request(target, &headers, &fixture(name)))
            .await;
        assert_eq!(
            (back.status, back.header("idmint-count")),
            (200, Some(count.to_string().as_str())),
            "{back:?}"
        );
        let again = service
            .exchange(&post_request(target, &headers, &back.text()))
            .await;
        assert!(
            again.body == back.body,
            "{name}: {}\n{}",
            back.text(),
            again.text()
        );
    }
}

#[tokio::test]
async fn every_report_of_the_vectors_gets_its_id_here_too() {
    let service = Service::start(PURE).await;
    let (mut minted, mut refused) = (0, 0);
    for case in cases::valid()
        .iter()
        .filter(|case| case.format == "conjunction")
    {
        let (tca, [one, other]) = (
            case.utc.as_ref().unwrap(),
            [case.fields[1].1, case.fields[2].1],
        );
        let body = format!(r#"{{"tca":"{tca}","primary":{one},"secondary":{other}}}"#);
        for (encoding, text) in &case.encodings {
            let answer = send(
                &service,
                &format!("?encoding={encoding}"),
                "application/json",
                &body,
            )
            .await;
            if one == 0 || other == 0 || one == other {
                assert_eq!(answer.status, 422, "{case:?}: {answer:?}");
                refused += 1;
            } else {
                assert_eq!(ids_of(&answer), [text.as_str()], "{case:?}");
                minted += 1;
            }
        }
    }
    assert_eq!((minted, refused), (20 * 3, 8 * 3));
}
