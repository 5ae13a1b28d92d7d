//! Requests for numbers, whose responses are checked against `openapi.yaml`.

use idmint::server::config::Config;
use idmint_http::{Api, HostPolicy};

use crate::interface::{Call, ask, get, post};
use crate::schema::openapi;
use crate::service::{assembled, begin_in_memory};

const SERIES: &str = "/numbers/{series}";
const REASON: &str = r#"{"reason":"the order was cancelled"}"#;

/// Creates a request for numbers. All such requests use the same idempotency key.
pub(crate) fn give(target: &str, status: u16) -> Call {
    post(SERIES, &format!("/numbers/{target}"), status).with("idempotency-key", "1")
}

fn make_void(number: &str, status: u16) -> Call {
    post(
        "/numbers/{series}/{n}/void",
        &format!("/numbers/{number}/void"),
        status,
    )
}

fn close(series: &str, status: u16) -> Call {
    post(
        "/numbers/{series}/close",
        &format!("/numbers/{series}/close"),
        status,
    )
}

/// Returns the requests for numbers. They must be sent in this order, because later ones depend on
/// earlier ones.
pub(crate) fn number_calls() -> Vec<Call> {
    vec![
        give("acme-2026", 201),
        give("acme-2026", 200),
        give("acme-2026?count=2", 422),
        give("other?count=3", 201),
        give("acme-2026", 406).with("accept", "text/plain"),
        give("acme-2026", 400).sending("{}"),
        give("acme-2026", 413).sending(" ".repeat(17_000)),
        give("acme-2026", 403).with("sec-fetch-site", "cross-site"),
        give("a%20b", 422),
        post(SERIES, "/numbers/acme-2026", 400),
        make_void("other/2", 201).sending(REASON),
        make_void("other/2", 200).sending(REASON),
        make_void("other/2", 409).sending(r#"{"reason":"another"}"#),
        make_void("other/9", 404).sending(REASON),
        make_void("other/x", 422).sending(REASON),
        make_void("other/2", 400).sending("["),
        make_void("other/2", 413).sending(" ".repeat(17_000)),
        make_void("other/2", 415)
            .with("content-type", "text/plain")
            .sending(REASON),
        make_void("other/2", 406)
            .with("accept", "text/plain")
            .sending(REASON),
        give("ended", 201),
        close("ended", 201),
        close("ended", 200),
        close("unbegun", 201),
        give("ended", 200),
        give("unbegun", 409),
        close("a%20b", 422),
        close("ended", 400).sending("{}"),
        close("ended", 413).sending(" ".repeat(17_000)),
        close("ended", 403).with("sec-fetch-site", "cross-site"),
        close("ended", 406).with("accept", "text/plain"),
        get(SERIES, "/numbers/ended", 200),
        get(SERIES, "/numbers/unbegun", 200),
        get("/numbers", "/numbers", 200),
        get("/numbers", "/numbers?after=acme-2026", 200),
        get("/numbers", "/numbers?after=a%20b", 422),
        get("/numbers", "/numbers", 406).with("accept", "text/plain"),
        get(SERIES, "/numbers/other?after=1&limit=2", 200),
        get(SERIES, "/numbers/other?limit=0", 422),
        get(SERIES, "/numbers/none", 404),
        get(SERIES, "/numbers/other", 406).with("accept", "text/plain"),
    ]
}

#[tokio::test]
async fn blocks_of_numbers_are_answered_as_described() {
    let document = openapi();
    let rows = "[numbers.rows]\npattern = 'rows-*'\nkind = 'blocks'";
    let config = Config::load(None, std::iter::empty(), rows.parse().unwrap()).unwrap();
    let (service, metrics) = assembled(&config);
    begin_in_memory(&service).await;
    let router = Api::new(service, metrics, HostPolicy::default());
    for call in [
        post(SERIES, "/numbers/rows-1?count=1000", 201),
        post(SERIES, "/numbers/rows-1", 201),
        give("rows-1", 422),
        make_void("rows-1/2", 422).sending(REASON),
    ] {
        ask(&document, &router, call).await;
    }
}
