//! Checks that `openapi.yaml` describes the service: all of its routes, and all of its responses
//! with their schemas.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, Response};
use http_body_util::BodyExt;
use idmint::server::config::Config;
use idmint_core::minting::{Refusal, SlotLack};
use idmint_http::{AnswerBody, Api, CorsOrigin, HostPolicy, Slug, operations};
use idmint_service::MemoryReservation;
use serde_json::Value;
use tower::ServiceExt;

use crate::numbers::{give, number_calls};
use crate::schema::{faults, openapi, resolved};
use crate::service::{assembled, begin_in_memory, minting, waiting};
use crate::texts::text_calls;

const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

#[test]
fn the_routes_are_those_of_the_router() {
    let document = openapi();
    let name = |operation: &Value| {
        operation["operationId"]
            .as_str()
            .expect("an operationId")
            .to_owned()
    };
    let documented: BTreeSet<(String, String, String)> = described(&document)
        .into_iter()
        .map(|(path, method, operation)| (name(operation), method.to_uppercase(), path.to_owned()))
        .collect();
    // Ignore the route `/decode/`, because the document describes it as `/decode/{id}` with an
    // empty id.
    let routed: BTreeSet<(String, String, String)> = operations()
        .into_iter()
        .filter(|(.., path)| *path != "/decode/")
        .map(|(name, method, path)| (name.to_owned(), method.to_string(), path.replace("{*", "{")))
        .collect();
    assert_eq!(documented, routed);
    assert!(
        documented
            .iter()
            .all(|(.., path)| path == "/" || !path.ends_with('/')),
        "clients drop a slash at the end"
    );
    for (path, method, operation) in described(&document) {
        assert!(
            operation["security"].is_array(),
            "{method} {path} does not say who may"
        );
    }
}

#[test]
fn the_version_is_that_of_the_crate() {
    let document = openapi();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn every_schema_is_closed_every_reference_leads_somewhere_and_no_status_is_left_to_default() {
    let document = openapi();
    each_value(&document, &mut |value| {
        resolved(&document, value);
        let is_object = value.get("type").is_some_and(|name| name == "object");
        assert!(
            !is_object || value.get("additionalProperties").is_some(),
            "an open schema: {value}"
        );
        // An unquoted description in YAML ends at a comma. The rest of its text would then become a
        // key.
        let mut keys = value
            .as_object()
            .into_iter()
            .flat_map(|object| object.keys());
        let described = value.get("description").is_some();
        assert!(
            !described || keys.all(|key| !key.contains(' ')),
            "a text without quotes: {value}"
        );
    });
    let mut ids = BTreeSet::new();
    for (path, method, operation) in described(&document) {
        assert!(
            ids.insert(operation["operationId"].as_str().expect("an operationId")),
            "{method} {path}"
        );
        for (status, response) in operation["responses"].as_object().expect("responses") {
            assert!(
                status.parse::<u16>().is_ok(),
                "{method} {path} answers {status}"
            );
            assert!(
                resolved(&document, response)["description"].is_string(),
                "{method} {path} {status}"
            );
        }
        let in_path = path
            .split('{')
            .skip(1)
            .filter_map(|part| part.split('}').next());
        for name in in_path {
            let mut parameters = operation["parameters"]
                .as_array()
                .expect("parameters")
                .iter();
            let is_it =
                |it: &Value| it["in"] == "path" && it["name"] == name && it["required"] == true;
            assert!(
                parameters.any(|it| is_it(resolved(&document, it))),
                "{method} {path}: {name} is not described"
            );
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert!(
                resolved(&document, parameter)["schema"].is_object(),
                "{method} {path}: {parameter} has no schema"
            );
        }
    }
}

/// Checks that every integer that may need more than 31 bits has the format `int64` in the
/// document. For an integer without this format, client generators use 32 bits.
#[test]
fn every_integer_that_may_pass_31_bits_is_said_to_have_64() {
    let mut wide = 0;
    each_value(&openapi(), &mut |value| {
        let is_integer = |name: &Value| {
            name == "integer" || name.as_array().is_some_and(|names| names[0] == "integer")
        };
        if !value.get("type").is_some_and(is_integer) {
            return;
        }
        let fits = value
            .get("maximum")
            .and_then(Value::as_u64)
            .is_some_and(|most| most <= i32::MAX as u64);
        assert_eq!(
            value.get("format").is_some_and(|name| name == "int64"),
            !fits,
            "{value}"
        );
        wide += usize::from(!fits);
    });
    assert!(wide > 10, "only {wide} were found");
}

#[test]
fn every_example_is_of_its_schema() {
    let document = openapi();
    let mut checked = 0;
    each_value(&document, &mut |value| {
        let Some(schema) = value.get("schema") else {
            return;
        };
        let named = value
            .get("examples")
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        for example in value
            .get("example")
            .into_iter()
            .chain(named.map(|(_, example)| &example["value"]))
        {
            assert_eq!(faults(&document, schema, example), [""; 0]);
            checked += 1;
        }
    });
    assert!(checked > 20, "only {checked} examples were found");
}

#[test]
fn every_problem_has_its_slug() {
    let document = openapi();
    let slugs = Slug::ALL.map(Slug::as_str).to_vec();
    assert_eq!(
        document["components"]["schemas"]["Slug"]["enum"],
        serde_json::json!(slugs)
    );
}

#[test]
fn every_problem_in_an_example_has_the_title_and_status_of_the_catalog() {
    let mut checked = 0;
    each_value(&openapi(), &mut |value| {
        let example = &value["example"];
        let Some(url) = example["type"].as_str() else {
            return;
        };
        let Some(slug) = url.strip_prefix("/problems/") else {
            return;
        };
        let page = Slug::named(slug).expect(slug).page();
        assert_eq!(example["title"], page.title, "{slug}");
        assert_eq!(example["status"], page.status, "{slug}");
        checked += 1;
    });
    assert!(checked > 10, "only {checked} examples were found");
}

#[test]
fn the_response_503_names_every_problem_with_that_status() {
    let document = openapi();
    let not_now = &document["components"]["responses"]["NotNow"]["description"];
    let not_now = not_now.as_str().expect("a description");
    for slug in Slug::ALL
        .map(Slug::page)
        .iter()
        .filter(|page| page.status == 503)
    {
        let name = format!("`{}`", slug.name);
        assert!(not_now.contains(&name), "{name} is missing");
    }
    for (path, method, operation) in described(&document) {
        let text = operation["description"].as_str().unwrap_or_default();
        assert!(
            !text.contains("503") || operation["responses"]["503"].is_object(),
            "{method} {path} mentions 503, but does not describe it"
        );
    }
}

#[tokio::test]
async fn the_files_of_the_page_are_those_of_its_folder() {
    let document = openapi();
    let operation = &document["paths"]["/page/{file}"]["get"];
    let documented: BTreeSet<String> =
        serde_json::from_value(operation["parameters"][0]["schema"]["enum"].clone()).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/idmint-http/src/page");
    let names = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    let served: BTreeSet<String> = names
        .filter(|name| !["mod.rs", "page.html"].contains(&name.as_str()))
        .collect();
    assert_eq!(documented, served);
    let (router, _) = waiting();
    for name in documented {
        let call = get("/page/{file}", &format!("/page/{name}"), 200);
        ask(&document, &router, call).await;
    }
}

/// A request, together with the route and the status under which `openapi.yaml` describes its
/// response.
pub(crate) struct Call {
    method: Method,
    uri: String,
    headers: Vec<(&'static str, &'static str)>,
    body: String,
    route: &'static str,
    status: u16,
}

pub(crate) fn get(route: &'static str, uri: &str, status: u16) -> Call {
    Call {
        method: Method::GET,
        uri: uri.to_owned(),
        headers: Vec::new(),
        body: String::new(),
        route,
        status,
    }
}

pub(crate) fn post(route: &'static str, uri: &str, status: u16) -> Call {
    Call {
        method: Method::POST,
        ..get(route, uri, status)
    }
}

fn mint(uri: &str, status: u16) -> Call {
    post("/ids/{format}", uri, status)
}

fn create(event: &str, status: u16) -> Call {
    Call {
        method: Method::POST,
        ..get("/ledgers", "/ledgers", status)
    }
    .sending(event)
}

fn report(query: &str, status: u16) -> Call {
    Call {
        method: Method::POST,
        ..get("/conjunctions", &format!("/conjunctions{query}"), status)
    }
}

fn append_to(ledger: &str, status: u16) -> Call {
    Call {
        method: Method::POST,
        ..get(
            "/ledgers/{ledger}/events",
            &format!("/ledgers/{ledger}/events"),
            status,
        )
    }
}

/// Creates a request to append events. All such requests use the same idempotency key.
fn append(events: &str, status: u16) -> Call {
    append_to("aa77f99c", status)
        .with("idempotency-key", "1")
        .sending(events)
}

const APPEND: &str = r#"{"ledger":"aa77f99c","events":[{"event":"Item Ordered","entities":{}}]}"#;
const MOVED: &str = r#"{"ledger":"aa77f99c","events":[{"event":"Item Ordered","entities":{}}],
    "expected_previous":"0005cd7556b05092aecc815daa77f99c"}"#;

fn verify(query: &str, status: u16) -> Call {
    let uri = format!("/ledgers/aa77f99c/verify{query}");
    Call {
        method: Method::POST,
        ..get("/ledgers/{ledger}/verify", &uri, status)
    }
}

impl Call {
    pub(crate) fn with(mut self, name: &'static str, value: &'static str) -> Call {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn sending(self, body: impl Into<String>) -> Call {
        Call {
            body: body.into(),
            ..self
        }
    }
}

#[tokio::test]
async fn every_answer_is_as_described() {
    const DECODE: &str = "/decode/{id}";
    const ENCODE: &str = "/encode/{format}";
    const FORMAT: &str = "/formats/{format}";
    const RANGE: &str = "/formats/{format}/range";
    const PROBLEM: &str = "/problems/{slug}";
    const PAGE_FILE: &str = "/page/{file}";
    const LEDGER: &str = "/ledgers/{ledger}";
    const LEDGER_IDS: &str = "/ledgers/{ledger}/ids";
    const LEDGER_ID: &str = "/ledgers/{ledger}/ids/{id}";
    const CONJUNCTION: &str = "/conjunctions/{id}";
    const DAY: &str = "from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z";
    const GENESIS: &str = r#"{"event":"Ledger Created","entities":{"ledger":"testing⑆preview"},"timestamp":"2021-10-03T16:32:12.816530Z","meta":{"actor":"matt"},"data":{"name":"My Ledger","description":"This ledger is for my example events."},"eventId":"0005cd7556b05092aecc815daa77f99c"}"#;
    const REPORT: &str = r#"{"tca":"2024-02-01T00:00:00Z","primary":25544,"secondary":48274}"#;
    const ANALYSIS: &str = r#"{"event_id":"zwwqlzz-pjjmxmd-lkpvwq","cdm_id":"1","tca":"2024-02-01T00:00:00Z",
        "primary_object":{"norad_id":25544},"secondary_object":{"norad_id":48274},"risk":"low"}"#;
    let document = openapi();
    let router = minting().await;
    let long = "x".repeat(9_000);
    for call in [
        mint("/ids/snowflake", 200),
        mint("/ids/twitter?count=3", 200),
        mint("/ids/payment?encoding=decimal", 200),
        mint("/ids/conjunction-v1?encoding=sqids", 200),
        mint("/ids/flax?count=100000", 200),
        mint("/ids/siq?type=message", 200),
        report("", 200).sending(REPORT),
        report("?encoding=decimal", 200).sending(format!("[{REPORT},{REPORT}]")),
        report("", 200)
            .with("accept", "application/octet-stream")
            .sending(REPORT),
        report("", 400).sending("["),
        report("", 200)
            .with("content-type", "text/plain")
            .sending(include_str!("../cdm/one.kvn")),
        report("?return=cdm", 200)
            .with("content-type", "text/plain")
            .sending(include_str!("../cdm/one.kvn")),
        report("?return=cdm", 200)
            .with("content-type", "text/xml")
            .sending(include_str!("../cdm/one.xml")),
        report("?return=cdm", 200)
            .with("content-type", "application/xml")
            .sending(include_str!("../cdm/several.xml")),
        report("", 422)
            .with("content-type", "text/plain")
            .sending(REPORT),
        report("?return=cdm", 422).sending(REPORT),
        report("", 200)
            .with("content-type", "text/csv")
            .sending(include_str!("../cdm/cdm_public.csv")),
        report("?return=csv", 200)
            .with("content-type", "text/csv")
            .sending(include_str!("../cdm/socrates.csv")),
        report("", 415)
            .with("content-type", "text/html")
            .sending(REPORT),
        report("?count=1", 422).sending(REPORT),
        report("", 422).sending("[]"),
        report("", 422),
        report("", 200).sending(ANALYSIS),
        report("?noted=keep", 200).sending(format!("[{ANALYSIS}]")),
        report("?partial=true", 200).sending(format!("[{REPORT},{{}}]")),
        report("?format=conjunction", 200).sending(REPORT),
        report("?format=flax", 422).sending(REPORT),
        report("?format=invoice", 404).sending(REPORT),
        create(GENESIS, 201),
        create(GENESIS, 409),
        create("{", 400),
        create(r#"{"event":"Ledger Created","entities":{}}"#, 400),
        create(r#"{"event":"Ledger Created"}"#, 422),
        create("{}", 415).with("content-type", "text/plain"),
        create("{}", 406).with("accept", "text/plain"),
        create(&" ".repeat(1_100_000), 413),
        create(r#"{"event":"Opened","entities":{}}"#, 201).with("idempotency-key", "k"),
        create(r#"{"event":"Opened","entities":{}}"#, 200).with("idempotency-key", "k"),
        append(APPEND, 201),
        append(APPEND, 200),
        append(APPEND, 200).with("accept", "text/plain"),
        append(APPEND, 200).with("accept", "application/octet-stream"),
        append("{", 400),
        append_to("00000000", 404)
            .with("idempotency-key", "1")
            .sending(r#"{"events":[{"event":"a","entities":{}}]}"#),
        append(
            r#"{"ledger":"00000000","events":[{"event":"a","entities":{}}]}"#,
            422,
        ),
        append(r#"{"events":[{"event":"other","entities":{}}]}"#, 422),
        append(r#"{"ledger":"aa77f99c","events":[]}"#, 422),
        append_to("aa77f99c", 409)
            .with("idempotency-key", "2")
            .sending(MOVED),
        append_to("aa77f99c", 400).sending(APPEND),
        get("/ledgers", "/ledgers", 200),
        get("/ledgers", "/ledgers?after=aa77f99c", 200),
        get("/ledgers", "/ledgers?after=aa77f99d", 422),
        get("/ledgers", "/ledgers", 406).with("accept", "text/plain"),
        get(LEDGER, "/ledgers/aa77f99c", 200),
        get(LEDGER, "/ledgers/00000000", 404),
        get(LEDGER, "/ledgers/0", 422),
        get(LEDGER_IDS, "/ledgers/aa77f99c/ids", 200),
        get(
            LEDGER_IDS,
            "/ledgers/aa77f99c/ids?after=0005cd7556b05092aecc815daa77f99c",
            200,
        ),
        get(
            LEDGER_IDS,
            "/ledgers/aa77f99c/ids?after=0005cd7556b05092aecc815eaa77f99c",
            422,
        ),
        get(LEDGER_IDS, "/ledgers/00000000/ids", 404),
        get(
            LEDGER_ID,
            "/ledgers/aa77f99c/ids/0005cd7556b05092aecc815daa77f99c",
            200,
        ),
        get(
            LEDGER_ID,
            "/ledgers/aa77f99c/ids/0005cd7556b05092aecc815eaa77f99c",
            404,
        ),
        get(LEDGER_ID, "/ledgers/aa77f99c/ids/1", 422),
        report("", 200)
            .with("content-type", "application/json")
            .sending(REPORT),
        get("/conjunctions", "/conjunctions", 200),
        get(
            "/conjunctions",
            "/conjunctions?from=2024-02-01T00:00:00Z&to=2024-02-02T00:00:00Z&primary=25544&limit=1",
            200,
        ),
        get("/conjunctions", "/conjunctions?limit=0", 422),
        get("/conjunctions", "/conjunctions?from=yesterday", 422),
        get("/conjunctions", "/conjunctions?after=x", 422),
        get("/conjunctions", "/conjunctions?format=flax", 422),
        get("/conjunctions", "/conjunctions?format=invoice", 404),
        get("/conjunctions", "/conjunctions", 406).with("accept", "text/plain"),
        get(CONJUNCTION, "/conjunctions/zwwqlzz-pjjmxmd-lkpvwq", 200),
        get(
            CONJUNCTION,
            "/conjunctions/30025386125795551919250?format=conjunction",
            200,
        ),
        get(CONJUNCTION, "/conjunctions/30025386125795551919251", 404),
        get(CONJUNCTION, "/conjunctions/x", 422),
        get(CONJUNCTION, "/conjunctions/%zz", 400),
        mint("/ids/snowflake", 200).with("accept", "text/plain"),
        mint("/ids/snowflake", 200).with("accept", "application/x-ndjson"),
        mint("/ids/snowflake?count=2", 200).with("accept", "application/octet-stream"),
        mint("/ids/snowflake?count=5000", 200).with("accept", "application/vnd.idmint.rows+json"),
        mint("/ids/siq?type=message", 200).with("accept", "application/vnd.idmint.rows+json"),
        mint("/ids/flax", 406).with("accept", "application/vnd.idmint.rows+json"),
        mint("/ids/snowflake", 200)
            .with("content-type", "application/json")
            .sending("{\"count\":2}"),
        mint("/ids/snowflake", 200)
            .with("content-type", "application/json")
            .sending("null"),
        mint("/ids/snowflake", 400).sending("{\"count\":"),
        mint("/ids/%zz", 400),
        mint("/ids/invoice", 404),
        mint("/ids/snowflake", 406).with("accept", "image/png"),
        mint("/ids/snowflake", 413).sending(" ".repeat(17_000)),
        mint(&format!("/ids/{long}"), 414),
        mint("/ids/snowflake", 415)
            .with("content-type", "text/plain")
            .sending("3"),
        mint("/ids/snowflake", 415)
            .with("content-encoding", "gzip")
            .sending("3"),
        mint("/ids/snowflake", 421).with("host", "rebound.example.net"),
        mint("/ids/snowflake", 400).with("host", "a b"),
        mint("/ids/snowflake", 403).with("origin", "https://tickets.example.com"),
        create(GENESIS, 403).with("sec-fetch-site", "cross-site"),
        verify("", 403)
            .with("sec-fetch-site", "same-site")
            .sending(GENESIS),
        get(DECODE, "/decode/1", 421).with("host", "rebound.example.net"),
        get("/", "/", 421).with("host", "rebound.example.net"),
        get("/metrics", "/metrics", 400).with("host", "a b"),
        mint("/ids/snowflake?count=0", 422),
        mint("/ids/snowflake?count=1", 422).sending("{\"count\":1}"),
        mint("/ids/payment?count=100000", 422),
        mint("/ids/siq", 422),
        mint("/ids/siq?type=message&domain=example.com", 422),
        get(DECODE, "/decode/1I9ZC1002", 200),
        get(DECODE, "/decode/175928847299117063", 200),
        get(
            DECODE,
            "/decode/175928847299117063?format=snowflake&encoding=decimal",
            200,
        ),
        get(DECODE, "/decode/%zz", 400),
        get(DECODE, "/decode/!!!", 404),
        get(DECODE, "/decode/1?format=invoice", 404),
        get(DECODE, "/decode/1I9ZC1002", 200).with("accept", "text/plain"),
        get(DECODE, "/decode/1", 406).with("accept", "text/html"),
        get(DECODE, &format!("/decode/{long}"), 414),
        get(DECODE, "/decode/1?nonsense", 422),
        get(DECODE, "/decode/", 404),
        get(DECODE, "/decode/hello", 404),
        get(DECODE, "/decode/hello?format=snowflake", 200),
        get(DECODE, "/decode/?format=flax", 404),
        get(
            ENCODE,
            "/encode/payment?time=2026-11-21T03:36:01Z&sequence=2",
            200,
        ),
        get(ENCODE, "/encode/siq?type=message&time_ticks=1", 200),
        get(ENCODE, "/encode/typeid?type=user", 200),
        get(ENCODE, "/encode/uuid4", 200),
        get(ENCODE, "/encode/%zz", 400),
        get(ENCODE, "/encode/invoice", 404),
        get(ENCODE, "/encode/payment", 406).with("accept", "text/plain"),
        get(ENCODE, &format!("/encode/payment?{long}"), 414),
        get(ENCODE, "/encode/payment?worker=36", 422),
        get(ENCODE, "/encode/payment?shard=1", 422),
        get("/formats", "/formats", 200),
        get("/formats", "/formats?x=1", 422),
        get(FORMAT, "/formats/conjunction-v1", 200),
        get(FORMAT, "/formats/siq", 200),
        get(FORMAT, "/formats/invoice", 404),
        get(FORMAT, "/formats/siq", 406).with("accept", "text/plain"),
        get(RANGE, &format!("/formats/flax/range?{DAY}"), 200),
        get(RANGE, &format!("/formats/siq/range?{DAY}"), 200),
        get(RANGE, &format!("/formats/%zz/range?{DAY}"), 400),
        get(RANGE, &format!("/formats/invoice/range?{DAY}"), 404),
        get(RANGE, &format!("/formats/flax/range?{DAY}"), 406).with("accept", "text/plain"),
        get(RANGE, "/formats/flax/range?from=2026-01-01T00:00:00Z", 422),
        verify("", 200).sending(GENESIS),
        verify("", 200).sending("{}\n{}"),
        verify("?after=0005cd7556b05092aecc815daa77f99c", 200).sending(GENESIS),
        verify("?after=%zz", 400).sending(GENESIS),
        verify("", 406)
            .with("accept", "text/plain")
            .sending(GENESIS),
        verify("", 413).sending(" ".repeat(1_100_000)),
        verify(&format!("?after={long}"), 414),
        verify("", 415)
            .with("content-type", "application/json")
            .sending(GENESIS),
        verify("", 422),
        get("/health/live", "/health/live", 200),
        get("/health/ready", "/health/ready", 200),
        get("/metrics", "/metrics", 200),
        get("/openapi.yaml", "/openapi.yaml", 200),
        get("/openapi.yaml", "/openapi.yaml", 200).with("accept", "text/plain"),
        get("/openapi-3.0.yaml", "/openapi-3.0.yaml", 200),
        get("/openapi.yaml", "/openapi.yaml", 406).with("accept", "application/json"),
        get(PROBLEM, "/problems/draining", 200),
        get(PROBLEM, "/problems/draining", 200).with("accept", "text/html"),
        get(PROBLEM, "/problems/draining", 200).with("accept", "application/json"),
        get(PROBLEM, "/problems/nonsense", 404),
        get(PROBLEM, "/problems/draining", 406).with("accept", "image/png"),
        get("/", "/", 200),
        get("/", "/", 406).with("accept", "image/png"),
        get("/", "/", 200).with("accept", "text/html"),
        get("/", "/?x", 200).with("accept", "text/html"),
        get(PAGE_FILE, "/page/main.js", 200),
        get(PAGE_FILE, "/page/style.css", 200),
        get(PAGE_FILE, "/page/icon.svg", 200),
        get(PAGE_FILE, "/page/nonsense", 404),
        get(PAGE_FILE, "/page/%zz", 400),
        get(PAGE_FILE, "/page/main.js?x", 422),
        get("/", "/?x", 422),
    ]
    .into_iter()
    .chain(text_calls(&long))
    .chain(number_calls())
    {
        ask(&document, &router, call).await;
    }
}

#[tokio::test]
async fn a_service_that_waits_answers_as_described() {
    let document = openapi();
    let (router, service) = waiting();
    ask(&document, &router, mint("/ids/snowflake", 503)).await;
    ask(&document, &router, mint("/ids/flax", 200)).await;
    let reported = r#"{"tca":"2024-032T00:00:00","primary":1,"secondary":2}"#;
    ask(&document, &router, report("", 503).sending(reported)).await;
    ask(
        &document,
        &router,
        append_to("aa77f99c", 503)
            .with("idempotency-key", "1")
            .sending(APPEND),
    )
    .await;
    ask(&document, &router, get("/ledgers", "/ledgers", 503)).await;
    ask(&document, &router, give("acme", 503)).await;
    ask(&document, &router, get("/numbers", "/numbers", 503)).await;
    ask(
        &document,
        &router,
        get("/health/ready", "/health/ready", 503),
    )
    .await;
    ask(
        &document,
        &router,
        get("/decode/{id}", "/decode/1?format=snowflake", 200),
    )
    .await;
    let wait = Duration::from_secs(1);
    for reason in [
        Refusal::ClockBehindFleet { behind: wait },
        Refusal::ClockAheadOfFleet { ahead: wait },
        Refusal::NoWorkerSlot {
            lack: SlotLack::Asking,
            retry_after: wait,
        },
    ] {
        service.wait_for(reason);
        let call = get("/health/ready", "/health/ready", 503);
        ask(&document, &router, call).await;
    }
}

#[tokio::test]
async fn the_examples_that_do_not_depend_on_the_time_are_what_is_answered() {
    let document = openapi();
    let router = minting().await;
    let decoded =
        &document["components"]["responses"]["Decoded"]["content"]["application/json"]["example"];
    let mut answer = json_at(&router, "/decode/1I9ZC1002").await;
    // The evidence in the response depends on when the test runs. The longer the format has been in
    // use, the less evidence a time gives. So the evidence is compared with a range, and then
    // removed.
    let evidence = answer["matches"][0]["evidence_bits"].take();
    assert!(
        (-4.0..=4.2).contains(&evidence.as_f64().unwrap()),
        "{evidence}"
    );
    for name in ["evidence_bits", "evidence"] {
        answer["matches"][0][name] = decoded["matches"][0][name].clone();
    }
    assert_eq!(answer, *decoded);
    let format = &document["paths"]["/formats/{format}"]["get"]["responses"]["200"]["content"]["application/json"];
    assert_eq!(
        json_at(&router, "/formats/payment").await,
        format["example"]
    );
    let encoded = &document["paths"]["/encode/{format}"]["get"]["responses"]["200"]["content"]["application/json"];
    let of_payment = "/encode/payment?time=2026-11-21T03:36:01Z&sequence=2";
    assert_eq!(json_at(&router, of_payment).await, encoded["example"]);
    let range = &document["paths"]["/formats/{format}/range"]["get"]["responses"]["200"]["content"]
        ["application/json"];
    let of_flax = "/formats/flax/range?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z";
    assert_eq!(json_at(&router, of_flax).await, range["example"]);
}

async fn json_at(router: &Api, uri: &str) -> Value {
    let request = Request::builder()
        .uri(uri)
        .header("host", "localhost")
        .body(Body::empty())
        .unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

pub(crate) async fn ask(document: &Value, router: &Api, call: Call) {
    let Call {
        method,
        uri,
        headers,
        body,
        route,
        status,
    } = call;
    let what = format!("{method} {uri:.80} {headers:?} {body:.80}");
    let request = Request::builder().method(&method).uri(&uri);
    let sent = |name: &str| headers.iter().any(|(sent, _)| *sent == name);
    let request = if sent("host") {
        request
    } else {
        request.header("host", "localhost")
    };
    let is_untyped = !body.is_empty() && !sent("content-type");
    let kind = if route.ends_with("/verify") {
        "application/x-ndjson"
    } else {
        "application/json"
    };
    let request = if is_untyped {
        request.header("content-type", kind)
    } else {
        request
    };
    let request = headers.into_iter().fold(request, |request, (name, value)| {
        request.header(name, value)
    });
    let answer = router
        .clone()
        .oneshot(request.body(Body::from(body)).unwrap())
        .await
        .unwrap();
    assert_eq!(answer.status(), status, "{what}");

    let operation = &document["paths"][route][method.as_str().to_lowercase()];
    let response = &operation["responses"][status.to_string()];
    assert!(response.is_object(), "{what}: {status} is not described");
    let response = resolved(document, response);
    check_headers(document, response, &answer, &what);
    let media = answer.headers()["content-type"]
        .to_str()
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let content = &response["content"][&media];
    assert!(content.is_object(), "{what}: {media} is not described");
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    if media.ends_with("json") {
        assert!(bytes.ends_with(b"\n"), "{what}: no newline ends the answer");
        // A schema describes an NDJSON body as a single text.
        let is_lines = media == "application/x-ndjson";
        let json = if is_lines {
            str::from_utf8(&bytes).unwrap().into()
        } else {
            serde_json::from_slice(&bytes).unwrap()
        };
        assert_eq!(
            faults(document, &content["schema"], &json),
            [""; 0],
            "{what}"
        );
    }
}

#[tokio::test]
async fn a_503_for_lack_of_memory_leaves_the_records_unchanged() {
    const GENESIS: &str =
        r#"{"event":"Opened","entities":{},"timestamp":"2021-10-03T16:32:12.816530Z"}"#;
    let (api, service) = waiting();
    begin_in_memory(&service).await;
    let owner = service.load().memory.owner(Ipv4Addr::LOCALHOST.into());
    let send = async |method: &str, path: &str, body: &str| {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("idempotency-key", "1")
            .extension(owner.clone());
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let answer = api.clone().oneshot(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let is_paid = parts.extensions.get::<Arc<MemoryReservation>>().is_some();
        let json: Value = serde_json::from_slice(&body).unwrap();
        (parts.status.as_u16(), is_paid, json)
    };
    let (status, _, ledger) = send("POST", "/ledgers", GENESIS).await;
    assert_eq!(status, 201);
    let ledger = format!("/ledgers/{}", ledger["ledger"].as_str().unwrap());
    let append = format!("{ledger}/events");
    let event = r#"{"event":"a","entities":{}}"#;
    let events = format!(r#"{{"events":[{}]}}"#, [event; 120].join(","));
    let reports: Vec<_> = (1..=40)
        .map(|second| {
            format!(
                r#"{{"tca":"2024-02-01T00:00:{second:02}Z","primary":1,"secondary":{second}1}}"#
            )
        })
        .collect();
    let reports = format!("[{}]", reports.join(","));
    let posts = [
        (append.as_str(), events.as_str(), 201),
        ("/numbers/invoices?count=1000", "", 201),
        ("/conjunctions", reports.as_str(), 200),
    ];
    let stored = async || {
        (
            send("GET", &ledger, "").await.2["events"].clone(),
            send("GET", "/numbers", "").await.2["series"].clone(),
            send("GET", "/conjunctions", "").await.2["conjunctions"].clone(),
        )
    };
    let before = stored().await;

    let all = owner.reserve(usize::MAX).await.unwrap();
    for (path, body, _) in posts {
        let (status, _, problem) = send("POST", path, body).await;
        assert_eq!(
            (status, &problem["reason"]),
            (503, &"memory".into()),
            "{path}"
        );
    }
    assert_eq!(stored().await, before);

    drop(all);
    for (path, body, status) in posts {
        let (found, is_paid, answer) = send("POST", path, body).await;
        assert_eq!((found, is_paid), (status, true), "{path}: {answer}");
    }
    assert_ne!(stored().await, before);
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_can_read_every_described_header() {
    /// The headers that only the browser itself uses, and the headers that every page may read.
    const OF_BROWSER: [&str; 7] = [
        "cache-control",
        "content-security-policy",
        "etag",
        "referrer-policy",
        "vary",
        "www-authenticate",
        "x-content-type-options",
    ];
    let mut described = BTreeSet::new();
    each_value(&openapi(), &mut |value| {
        // Skip the list of shared headers. Unlike a response, it has no description.
        let headers = value.get("headers").and_then(Value::as_object);
        if let (Some(headers), true) = (headers, value.get("description").is_some()) {
            described.extend(headers.keys().map(|name| name.to_lowercase()));
        }
    });
    described.retain(|name| !OF_BROWSER.contains(&name.as_str()));

    let (service, metrics) = assembled(&Config::default());
    let origin = CorsOrigin::parse("https://a.example").unwrap();
    let api = Api::new(service, metrics, HostPolicy::new(None, &[], &[origin]));
    let request = Request::builder()
        .uri("/health/live")
        .header("host", "localhost")
        .header("origin", "https://a.example");
    let answer = api.oneshot(request.body(Body::empty()).unwrap()).await;
    let headers = answer.unwrap().headers().clone();
    let exposed = headers["access-control-expose-headers"].to_str().unwrap();
    assert_eq!(
        exposed
            .split(',')
            .map(str::to_owned)
            .collect::<BTreeSet<_>>(),
        described
    );
}

/// Checks the headers of a response against the document. Described headers must have valid values,
/// and required headers must be present. Every header that idmint adds must be described.
fn check_headers(document: &Value, response: &Value, answer: &Response<AnswerBody>, what: &str) {
    let described = response["headers"].as_object().expect("headers");
    for (name, header) in described {
        let header = resolved(document, header);
        let Some(value) = answer.headers().get(name) else {
            assert!(header["required"] != true, "{what}: {name} is missing");
            continue;
        };
        let text = value.to_str().unwrap();
        let value = text
            .parse::<i64>()
            .map_or_else(|_| Value::from(text), Value::from);
        assert_eq!(
            faults(document, &header["schema"], &value),
            [""; 0],
            "{what}: {name}"
        );
    }
    for name in answer
        .headers()
        .keys()
        .filter(|name| !matches!(name.as_str(), "content-type" | "content-length"))
    {
        let is_described = described
            .keys()
            .any(|known| known.eq_ignore_ascii_case(name.as_str()));
        assert!(is_described, "{what}: the header {name} is not described");
    }
}

fn described(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let methods = paths.iter().flat_map(|(path, item)| {
        item.as_object()
            .expect("a path item")
            .iter()
            .map(move |(method, operation)| (path, method, operation))
    });
    let operations: Vec<_> = methods
        .map(|(path, method, it)| (path.as_str(), method.as_str(), it))
        .collect();
    assert!(
        operations
            .iter()
            .all(|(_, method, _)| METHODS.contains(method))
    );
    operations
}

/// Calls `look` for every object of the document except those in examples, because examples
/// describe nothing.
fn each_value(value: &Value, look: &mut impl FnMut(&Value)) {
    match value {
        Value::Object(members) => {
            look(value);
            for (_, member) in members
                .iter()
                .filter(|(name, _)| !matches!(name.as_str(), "example" | "examples"))
            {
                each_value(member, look);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each_value(item, look)),
        _ => {}
    }
}
