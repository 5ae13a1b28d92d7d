//! Checks the HTTP interface with schemathesis, which knows nothing about the service except
//! `openapi.yaml`.
//!
//! schemathesis generates valid and invalid requests from the schemas. It checks the status, media
//! type, headers and body of every response, and whether the service was right to accept or refuse
//! the request. `schemathesis/` contains its additional settings.

use std::collections::BTreeMap;

use crate::tampering_proxy::{Tamper, TamperingProxy};
use crate::tools::{output_of, schemathesis};
use idmint_testing::chains::chains;
use idmint_testing::http1::{Client, post_json, request};
use idmint_testing::service::{Home, Service, idmint, run};

/// The minimum number of requests, both for the service without tokens and for the one with tokens.
/// The variable `REQUESTS` sets another number.
const REQUESTS: u64 = 1_000;

/// The number of requests for which schemathesis draws one example of each operation. For 1 000
/// requests, it draws at most 1 000 / 25 = 40 examples of each operation. Most operations receive
/// fewer requests.
const REQUESTS_OF_AN_EXAMPLE: u64 = 25;

/// The minimum number of requests that each route must have accepted.
const GRANTED_MIN: u64 = 10;

/// Runs schemathesis. Returns its output, and `true` if it found no failure.
fn judge(url: &str, args: &[&str]) -> (bool, String) {
    let home = Home::new();
    let mut schemathesis = schemathesis(&home.path("."), &[&["--url", url], args].concat());
    let output = output_of(&mut schemathesis);
    let printed = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    (output.status.success(), printed)
}

/// Returns the number of responses for each route and status, according to the metrics of the
/// service.
fn answers(service: &Service, headers: &str) -> BTreeMap<(String, u16), u64> {
    let mut counts = BTreeMap::new();
    let metrics = Client::connect(service.address()).exchange(request("GET /metrics", headers, ""));
    for line in metrics.text().lines() {
        let Some((labels, count)) = line
            .strip_prefix("idmint_http_requests_total{")
            .and_then(|rest| rest.split_once("} "))
        else {
            continue;
        };
        let label = |name: &str| {
            let (_, rest) = labels
                .split_once(&format!("{name}=\""))
                .expect("every series has this label");
            rest.split_once('"').expect("a label ends").0
        };
        let route = format!("{} {}", label("method"), label("route"));
        *counts
            .entry((route, label("status").parse().unwrap()))
            .or_default() += count.parse::<u64>().unwrap();
    }
    counts
}

/// Creates the records to which the settings in `schemathesis/` refer: the ledger whose first event
/// is in the documents, and the numbers.
fn create_known_records(service: &Service, headers: &str) {
    let documented = &chains()[0];
    let created = Client::connect(service.address()).exchange(post_json(
        "/ledgers",
        headers,
        &documented.lines[0],
    ));
    assert_eq!(
        (created.status, documented.ledger.as_str()),
        (201, "aa77f99c")
    );
    let headers = format!("{headers}idempotency-key: known\r\n");
    let given = Client::connect(service.address()).exchange(request(
        "POST /numbers/acme-2026?count=1000",
        &headers,
        "",
    ));
    assert_eq!(given.status, 201);
}

#[test]
fn no_made_up_request_gets_an_answer_that_is_not_described() {
    let home = Home::new();
    let service = Service::start(home.serve_with("[siq]\ndomains = [\"example.com\"]"));
    assert_as_described(&service, "", REQUESTS);
}

#[test]
fn no_made_up_request_with_a_token_gets_an_answer_that_is_not_described() {
    let home = Home::new();
    let tokens = home.path("tokens.toml");
    let every = [
        "--name",
        "all",
        "--scopes",
        "mint,ledger,decode,metrics,number,import",
        "--file",
        tokens.to_str().unwrap(),
    ];
    let made = run(idmint(&[&["token", "new"][..], &every].concat()));
    made.assert(0, &[]);
    let settings = format!(
        "http.tokens = '{}'\nsiq.domains = ['example.com']",
        tokens.display()
    );
    let service = Service::start(home.serve_with(&settings));
    assert_eq!(
        service.post("/ids/snowflake").status,
        401,
        "it asks for tokens"
    );
    assert_as_described(
        &service,
        &format!("authorization: Bearer {}\r\n", made.out.trim()),
        REQUESTS,
    );
}

/// Asserts that the responses match the description, for at least `requests` requests with these
/// headers.
fn assert_as_described(service: &Service, headers: &str, requests: u64) {
    let requests = std::env::var("REQUESTS").map_or(requests, |number| number.parse().unwrap());
    service.wait_until_ready();
    create_known_records(service, headers);
    let answers = || answers(service, headers);
    let before: u64 = answers().values().sum();
    let examples = (requests / REQUESTS_OF_AN_EXAMPLE).to_string();
    let header: Vec<&str> = headers
        .lines()
        .flat_map(|line| ["--header", line])
        .collect();
    let (is_good, printed) = judge(
        &service.url(),
        &[&["--max-examples", &examples], &header[..]].concat(),
    );
    let answers = answers();
    let made = answers.values().sum::<u64>() - before;
    assert!(is_good, "after {made} requests:\n{printed}");
    assert!(
        made >= requests,
        "only {made} requests were made:\n{printed}"
    );

    let described = idmint_http::paths()
        .into_iter()
        .filter(|(_, path)| *path != "/decode/");
    let routes = described.map(|(method, path)| format!("{method} {path}"));
    for route in routes {
        let granted: u64 = [200, 201]
            .iter()
            .filter_map(|status| answers.get(&(route.clone(), *status)))
            .sum();
        assert!(
            granted >= GRANTED_MIN,
            "only {granted} requests to {route} were granted: {answers:?}\n{printed}"
        );
    }
    let appended = answers
        .get(&("POST /ledgers/{ledger}/events".to_owned(), 201))
        .copied()
        .unwrap_or(0);
    assert!(
        appended >= GRANTED_MIN,
        "only {appended} appends were granted: {answers:?}\n{printed}"
    );
    // Allow this status before the service was ready, when the test waited for it.
    let waited = ("GET /health/ready".to_owned(), 503);
    let faults = answers
        .iter()
        .filter(|(answer, count)| **count > 0 && answer.1 >= 500 && **answer != waited);
    for ((route, status), _) in faults {
        assert_eq!(
            (route.as_str(), *status),
            ("POST /ids/{format}", 503),
            "{answers:?}"
        );
    }
    let with = if headers.is_empty() {
        "open"
    } else {
        "with a token"
    };
    println!("{made} requests, {with}, every answer as described");
}

/// Asserts that schemathesis notices when a proxy changes the responses of a service, and that it
/// names the difference.
#[track_caller]
fn assert_found_out(operation: &str, tampered: TamperingProxy, finding: &str) {
    let (is_good, printed) = judge(
        &tampered.url(),
        &["--include-operation-id", operation, "--max-examples", "10"],
    );
    assert!(
        !is_good && printed.contains(finding),
        "{finding:?} is not in:\n{printed}"
    );
}

#[test]
fn an_answer_that_is_not_as_described_is_found_out() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let through = |change| TamperingProxy::through(service.address(), change);

    assert_found_out(
        "decode",
        through(|answer| answer.without_member("canonical")),
        "\"canonical\" is a required",
    );
    assert_found_out(
        "getFormat",
        through(|answer| answer.without_member("rule")),
        "\"rule\" is a required",
    );
    assert_found_out(
        "ready",
        through(|answer| answer.with_status(200, 202)),
        "Undocumented status code",
    );
    assert_found_out(
        "live",
        through(|answer| answer.with_status(200, 500)),
        "Server error",
    );
    assert_found_out(
        "mint",
        through(|answer| answer.with_status(422, 200)),
        "Schema-violating request accepted",
    );
    assert_found_out(
        "getFormat",
        through(|answer| answer.without_header("cache-control")),
        "Missing required response headers",
    );
    assert_found_out(
        "metrics",
        through(|answer| answer.with_media_type("text/html")),
        "Undocumented Content-Type",
    );
    assert_found_out(
        "describe",
        through(|answer| answer.with_media_type("text/plain")),
        "Another media type than",
    );
}
