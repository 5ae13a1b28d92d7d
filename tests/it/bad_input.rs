//! Checks that every invalid request is refused and mints nothing. The refusal must name the kind
//! of error, the invalid value and the bound.

use serde_json::Value;

use crate::service::Service;
use crate::support::{get_request, post_request};
use idmint_testing::cases::FORMATS;
use idmint_testing::http1::Answer;

/// A format that has ended, and a format that has not begun. The third format, which can only be
/// decoded, comes with the test vectors.
const OUT_OF_TIME: &str = r#"
[formats.ended]
like   = "snowflake"
fields = [{ name = "time", kind = "time", bits = 8 }, { name = "sequence", kind = "sequence", bits = 8 }]

[formats.unborn]
like  = "snowflake"
epoch = "2050-01-01T00:00:00Z"
"#;

const JSON: &str = "content-type: application/json\r\n";

/// An invalid request, together with its expected refusal.
struct Wrong {
    request: String,
    status: u16,
    slug: &'static str,
    /// The texts that the detail of the refusal must contain: the invalid value and the bound.
    named: &'static [&'static str],
}

fn wrong(
    request: String,
    status: u16,
    slug: &'static str,
    named: &'static [&'static str],
) -> Wrong {
    Wrong {
        request,
        status,
        slug,
        named,
    }
}

fn post(path: &str) -> String {
    post_request(path, "", "")
}

fn post_json(body: &str) -> String {
    post_request("/ids/snowflake", JSON, body)
}

fn assert_refused(answer: &Answer, wrong: &Wrong) -> Value {
    assert_eq!(
        answer.status, wrong.status,
        "{:?}: {answer:?}",
        wrong.request
    );
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json"),
        "{:?}",
        wrong.request
    );
    assert_eq!(
        answer.header("cache-control"),
        Some("no-store"),
        "{:?}",
        wrong.request
    );
    let problem = answer.json();
    assert_eq!(
        problem["type"],
        format!("/problems/{}", wrong.slug),
        "{:?}: {problem}",
        wrong.request
    );
    assert_eq!(problem["status"], wrong.status);
    assert_eq!(problem["instance"].as_str(), answer.header("x-request-id"));
    let detail = problem["detail"].as_str().unwrap();
    for named in wrong.named {
        assert!(
            detail.contains(named),
            "{:?}: {named:?} is not in {detail:?}",
            wrong.request
        );
    }
    problem
}

/// Asserts that each request is refused as expected and mints nothing. If a 422 response suggests
/// an example, the example must work.
async fn assert_all_refused(service: &Service, all: &[Wrong]) {
    for wrong in all {
        let before = service.minted().await;
        let problem = assert_refused(&service.exchange(&wrong.request).await, wrong);
        assert_eq!(service.minted().await, before, "{:?}", wrong.request);
        if wrong.status == 422 {
            let example = problem["example"]
                .as_str()
                .unwrap_or_else(|| panic!("{:?}: {problem}", wrong.request));
            let (method, path) = example.split_once(' ').unwrap();
            let (path, body) = path.split_once(' ').unwrap_or((path, ""));
            let request = if method == "POST" {
                post_request(path, "", body)
            } else {
                get_request(path)
            };
            assert_eq!(
                service.exchange(&request).await.status,
                200,
                "{example:?} of {:?}",
                wrong.request
            );
        }
    }
}

#[tokio::test]
async fn a_count_that_is_no_number_of_ids_is_refused() {
    let service = Service::start("mint.batch_max = 1000").await;
    let counts = [
        "0",
        "-1",
        "+5",
        "1e3",
        "1.5",
        "1001",
        "0x10",
        "1_0",
        "4294967297",
        "99999999999999999999999",
        "5,",
        "five",
    ];
    let mut all = Vec::new();
    for count in counts {
        all.push(wrong(
            post(&format!("/ids/snowflake?count={count}")),
            422,
            "invalid-parameter",
            &["count", "1 to 1000"],
        ));
    }
    for count in ["", "%205", "%D9%A5", "5%00"] {
        all.push(wrong(
            post(&format!("/ids/snowflake?count={count}")),
            422,
            "invalid-parameter",
            &["count", "1 to 1000"],
        ));
    }
    for count in ["0", "1001", "4294967297"] {
        all.push(wrong(
            post_json(&format!(r#"{{"count": {count}}}"#)),
            422,
            "invalid-parameter",
            &["count", "1 to 1000"],
        ));
    }
    for count in [
        "-1",
        "1e3",
        "1.5",
        r#""5""#,
        "[5]",
        "true",
        "null",
        "18446744073709551616",
    ] {
        all.push(wrong(
            post_json(&format!(r#"{{"count": {count}}}"#)),
            422,
            "invalid-parameter",
            &["count"],
        ));
    }
    assert_all_refused(&service, &all).await;
    let problem = service.post("/ids/snowflake?count=1e3").await.json();
    assert_eq!(
        (&problem["reason"], &problem["limit"]),
        (&"count".into(), &"1000".into())
    );
    assert!(
        problem["detail"].as_str().unwrap().contains("count is 1e3"),
        "{problem}"
    );
}

#[tokio::test]
async fn a_count_that_can_never_be_had_of_a_siq_is_refused_with_one_that_can() {
    let service =
        Service::start("worker.lanes = 1\nmint = { wait_max = '0s', lead_max = '0s' }").await;
    let request = post("/ids/siq?type=tag&count=4097");
    assert_all_refused(
        &service,
        &[wrong(
            request,
            422,
            "invalid-parameter",
            &["siq", "4096", "4097"],
        )],
    )
    .await;
}

#[tokio::test]
async fn a_parameter_that_is_unknown_or_given_twice_or_means_nothing_is_refused() {
    let service = Service::start(&format!("siq.domains = ['example.com']\n{FORMATS}")).await;
    let invalid = |request, named| wrong(request, 422, "invalid-parameter", named);
    assert_all_refused(
        &service,
        &[
            invalid(
                post("/ids/snowflake?cuont=1"),
                &["cuont", "count, encoding, prefix, type, domain"],
            ),
            invalid(post("/ids/snowflake?Count=1"), &["Count"]),
            invalid(
                post("/ids/snowflake?count=1&count=1"),
                &["count", "more than once"],
            ),
            invalid(
                post("/ids/snowflake?count=1&%63ount=1"),
                &["count", "more than once"],
            ),
            invalid(
                post_request("/ids/snowflake?count=1", JSON, r#"{"count": 1}"#),
                &["count", "twice"],
            ),
            invalid(
                post("/ids/snowflake?encoding=hexx"),
                &["hexx", "decimal, hex, hex_padded"],
            ),
            invalid(post("/ids/snowflake?encoding="), &["\"\"", "decimal"]),
            invalid(
                post("/ids/payment?encoding=hex"),
                &["hex", "base36, decimal"],
            ),
            invalid(post("/ids/snowflake?type=user"), &["snowflake", "user"]),
            invalid(
                post("/ids/snowflake?domain=example.com"),
                &["snowflake", "example.com"],
            ),
            invalid(post("/ids/flax?type=user"), &["flax", "user"]),
            invalid(post("/ids/siq?type=tag&count=0"), &["count is 0"]),
            invalid(
                post("/ids/siq?type=tag&encoding=x"),
                &["\"x\"", "hex_padded"],
            ),
            invalid(post("/ids/siq"), &["type", "user, application", "content"]),
            invalid(post("/ids/siq?type=User"), &["User", "user, application"]),
            invalid(post("/ids/siq?type="), &["``", "user, application"]),
            invalid(post("/ids/siq?type=unassigned"), &["unassigned"]),
            invalid(
                post("/ids/siq?type=tag&domain=a.example"),
                &["a.example", "siq.domains"],
            ),
            invalid(post("/ids/siq?type=tag&domain="), &["\"\"", "siq.domains"]),
            invalid(post("/ids/xid"), &["xid", "decode-only"]),
            invalid(post_json(r#"{"cuont": 1}"#), &["cuont", "count"]),
            invalid(post_json("5"), &["5"]),
            invalid(
                get_request("/decode/1?formt=snowflake"),
                &["formt", "format, encoding"],
            ),
            invalid(
                get_request("/decode/1?format=flax&format=flax"),
                &["format", "more than once"],
            ),
            invalid(get_request("/decode/1?encoding=hexx"), &["hexx"]),
            invalid(
                get_request("/decode/1?format=payment&encoding=did"),
                &["did"],
            ),
            invalid(
                get_request("/formats?x=1"),
                &["\"x\"", "detail, after, limit"],
            ),
            invalid(get_request("/formats/flax?x=1"), &["\"x\"", "none"]),
            invalid(get_request("/?x=1"), &["\"x\"", "none"]),
            invalid(get_request("/openapi.yaml?x=1"), &["\"x\"", "none"]),
        ],
    )
    .await;
}

/// Formats without ranges of ids, because their ids have no time or do not begin with it.
const WITHOUT_RANGES: &str = r#"
[formats.timeless]
summary   = "Nothing but random bits"
rule      = "random"
fields    = [{ name = "random", kind = "random", bits = 64 }]
encodings = ["hex_padded"]

[formats.worker-first]
like   = "snowflake"
fields = [
    { name = "worker", kind = "worker", bits = 5 },
    { name = "time", kind = "time", bits = 41 },
    { name = "sequence", kind = "sequence", bits = 12 },
]
"#;

#[tokio::test]
async fn a_time_span_that_has_no_range_of_ids_is_refused() {
    let service = Service::start(WITHOUT_RANGES).await;
    let day = "from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z";
    let invalid = |format: &str, query: &str, named| {
        wrong(
            get_request(&format!("/formats/{format}/range?{query}")),
            422,
            "invalid-parameter",
            named,
        )
    };
    assert_all_refused(
        &service,
        &[
            invalid("flax", "", &["from is missing"]),
            invalid("flax", "to=2026-01-01T00:00:00Z", &["from is missing"]),
            invalid("flax", "from=2026-01-01T00:00:00Z", &["to is missing"]),
            invalid("flax", &format!("{day}&x=1"), &["\"x\"", "from, to"]),
            invalid(
                "flax",
                &format!("{day}&to=2026-01-02T00:00:00Z"),
                &["to", "more than once"],
            ),
            invalid(
                "flax",
                "from=yesterday&to=2026-01-02T00:00:00Z",
                &["from", "`yesterday`", "2025-01-01T00:00:00Z"],
            ),
            invalid(
                "flax",
                "from=2026-01-01T00:00:00Z&to=2026-13-01T00:00:00Z",
                &["to", "`2026-13-01T00:00:00Z`"],
            ),
            invalid(
                "flax",
                "from=2026-06-30T23:59:60Z&to=2027-01-01T00:00:00Z",
                &["from", "23:59:60"],
            ),
            invalid(
                "flax",
                "from=2026-01-01T00:00:00+24:00&to=2026-01-02T00:00:00Z",
                &["from", "+24:00"],
            ),
            invalid(
                "flax",
                "from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:00Z",
                &["must be before to"],
            ),
            invalid(
                "flax",
                "from=2000-01-01T00:00:00Z&to=2015-01-01T00:00:00Z",
                &["outside"],
            ),
            invalid(
                "payment",
                "from=2026-01-01T00:00:00.1Z&to=2026-01-01T00:00:00.9Z",
                &["no tick of 1s"],
            ),
            invalid("timeless", day, &["timeless", "no time"]),
            invalid(
                "worker-first",
                day,
                &["worker-first", "do not begin with their time"],
            ),
        ],
    )
    .await;
    let problem = service
        .get("/formats/flax/range?from=2050-01-01T00:00:00Z&to=2051-01-01T00:00:00Z")
        .await
        .json();
    assert_eq!(problem["reason"], "outside");
    assert_eq!(
        problem["limit"],
        "from 2015-01-01T00:00:00.000Z to 2049-11-03T19:53:47.776Z"
    );
}

#[tokio::test]
async fn a_request_that_cannot_be_read_is_refused() {
    let service = Service::start("").await;
    let malformed = |request, named| wrong(request, 400, "malformed-request", named);
    let deep = format!("{}1{}", "[".repeat(65), "]".repeat(65));
    assert_all_refused(
        &service,
        &[
            malformed(post_json("{"), &["line 1 column 1"]),
            malformed(post_json(r#"{"count": 5"#), &["EOF"]),
            malformed(post_json(r#"{"count": 05}"#), &["invalid number"]),
            malformed(post_json(r#"{"count": 5} {}"#), &["trailing"]),
            malformed(
                post_json(r#"{"count": 5, "count": 5}"#),
                &["\"count\"", "twice"],
            ),
            malformed(post_json(r#"{'count': 5}"#), &["line 1"]),
            malformed(post_json("count=5"), &["line 1"]),
            malformed(post_json(&deep), &["64"]),
            malformed(post("/ids/snowflake?count=%zz"), &["%zz"]),
            malformed(post("/ids/snowflake?count=%F"), &["%F"]),
            malformed(post("/ids/snowflake?%FF=1"), &["%FF"]),
            malformed(post("/ids/%FF"), &["%FF"]),
            malformed(get_request("/decode/%C3%28"), &["%C3%28"]),
            malformed(get_request("/decode/1%"), &["1%"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let service = Service::start("").await;
    let unknown = |request, named| wrong(request, 404, "unknown-format", named);
    let nothing = |request| wrong(request, 404, "not-found", &[]);
    assert_all_refused(
        &service,
        &[
            unknown(post("/ids/snowfluke"), &["snowfluke", "snowflake"]),
            unknown(post("/ids/Snowflake"), &["Snowflake"]),
            unknown(post("/ids/payment-wide"), &["payment-wide", "payment"]),
            unknown(post("/ids/snowflake%2F"), &["snowflake/"]),
            unknown(get_request("/formats/snowfluke"), &["snowfluke"]),
            unknown(get_request("/decode/1?format=snowfluke"), &["snowfluke"]),
            unknown(get_request("/decode/1?format="), &["\"\""]),
            wrong(
                get_request("/decode/?encoding=decimal"),
                404,
                "no-format-matches",
                &["\"\""],
            ),
            wrong(
                get_request("/decode/a/b"),
                404,
                "no-format-matches",
                &["a/b"],
            ),
            nothing(get_request("/nowhere")),
            nothing(post("/ids/")),
            nothing(post("/ids")),
            nothing(post("/ids/snowflake/")),
            nothing(get_request("/problems/nonsense")),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_method_a_media_type_or_a_size_that_is_not_taken_is_refused() {
    let service = Service::start("").await;
    let with =
        |head: &str, headers: &str| format!("{head} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
    let unsupported = |headers: &str, named| {
        wrong(
            post_request("/ids/snowflake", headers, r#"{"count": 1}"#),
            415,
            "unsupported-media-type",
            named,
        )
    };
    assert_all_refused(
        &service,
        &[
            wrong(
                get_request("/ids/snowflake"),
                405,
                "method-not-allowed",
                &["GET"],
            ),
            wrong(
                with("PUT /ids/snowflake", "content-length: 0\r\n"),
                405,
                "method-not-allowed",
                &["PUT"],
            ),
            wrong(
                with("DELETE /decode/1", ""),
                405,
                "method-not-allowed",
                &["DELETE"],
            ),
            wrong(post("/formats"), 405, "method-not-allowed", &["POST"]),
            wrong(post("/metrics"), 405, "method-not-allowed", &["POST"]),
            wrong(
                post_request("/ids/snowflake", "accept: image/png\r\n", ""),
                406,
                "not-acceptable",
                &["application/octet-stream"],
            ),
            wrong(
                with("GET /formats", "accept: text/csv\r\n"),
                406,
                "not-acceptable",
                &["application/json"],
            ),
            unsupported(
                "content-type: application/x-www-form-urlencoded\r\n",
                &["x-www-form-urlencoded", "application/json"],
            ),
            unsupported("content-type: text/plain\r\n", &["text/plain"]),
            unsupported(
                "content-type: application/json\r\ncontent-encoding: gzip\r\n",
                &["gzip"],
            ),
            wrong(
                post_json(&" ".repeat(16 * 1024 + 1)),
                413,
                "payload-too-large",
                &["16385", "16384"],
            ),
            wrong(
                post(&format!("/ids/snowflake?count={}", "1".repeat(8 * 1024))),
                414,
                "uri-too-long",
                &["8192"],
            ),
        ],
    )
    .await;
    assert_eq!(
        service.get("/ids/snowflake").await.header("allow"),
        Some("POST")
    );
    let fits = service
        .exchange(&post_json(&format!("{}{{}}", " ".repeat(16 * 1024 - 2))))
        .await;
    assert_eq!(fits.status, 200, "a body of just the limit: {fits:?}");
}

#[tokio::test]
async fn a_body_of_texts_to_decode_is_read_strictly() {
    let service = Service::start("").await;
    let sent = |query: &str, media: &str, body: &str| {
        post_request(
            &format!("/decode{query}"),
            &format!("content-type: {media}\r\n"),
            body,
        )
    };
    let json = |body: &str| sent("", "application/json", body);
    let long = "1".repeat(8 * 1024 + 1);
    let invalid = |request, named| wrong(request, 422, "invalid-parameter", named);
    let malformed = |request, named| wrong(request, 400, "malformed-request", named);
    assert_all_refused(
        &service,
        &[
            invalid(json("{}"), &["map", "an array of strings"]),
            invalid(json("[\"1\",2]"), &["[1]", "integer `2`", "a string"]),
            invalid(json("[[\"1\"]]"), &["[0]", "a string"]),
            invalid(json(&format!("[\"{long}\"]")), &["[0]", "8193", "8192"]),
            invalid(
                sent("", "text/plain", &format!("1\n{long}")),
                &["line 2", "8193", "8192"],
            ),
            invalid(
                sent("", "application/x-ndjson", "\"1\"\n2"),
                &["line 2", "integer `2`"],
            ),
            invalid(
                sent("?detail=all", "text/plain", "1"),
                &["detail", "all", "brief or full"],
            ),
            invalid(
                sent("?details=full", "text/plain", "1"),
                &["details", "format, encoding, detail"],
            ),
            invalid(sent("?encoding=hexx", "text/plain", "1"), &["hexx"]),
            malformed(json(""), &["EOF"]),
            malformed(json("[\"1\""), &["EOF"]),
            malformed(
                sent("", "application/x-ndjson", "\"1\"\n1I9ZC1002"),
                &["line 2"],
            ),
            wrong(
                sent("?format=snowfluke", "text/plain", "1"),
                404,
                "unknown-format",
                &["snowfluke"],
            ),
            wrong(get_request("/decode"), 405, "method-not-allowed", &["GET"]),
            wrong(post("/decode/1"), 405, "method-not-allowed", &["POST"]),
            wrong(
                post_request("/decode", "accept: text/html\r\n", "[]"),
                406,
                "not-acceptable",
                &["text/plain"],
            ),
            wrong(
                sent("", "application/x-www-form-urlencoded", "1"),
                415,
                "unsupported-media-type",
                &["urlencoded"],
            ),
            wrong(
                json(&" ".repeat((8 << 20) + 1)),
                413,
                "payload-too-large",
                &["8388609", "8388608"],
            ),
        ],
    )
    .await;
    let fits = service
        .exchange(&json(&format!("{}[]", " ".repeat((8 << 20) - 2))))
        .await;
    assert_eq!(
        (fits.status, fits.text().as_str()),
        (200, "[]\n"),
        "a body of just the limit"
    );
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let service = Service::start("http.body_timeout = '50ms'").await;
    let slow =
        "POST /ids/snowflake HTTP/1.1\r\nhost: localhost\r\ncontent-length: 12\r\n\r\n{".to_owned();
    assert_all_refused(&service, &[wrong(slow, 408, "request-timeout", &["50ms"])]).await;
}

#[tokio::test]
async fn a_format_out_of_its_time_is_refused_without_a_retry() {
    let service = Service::start(OUT_OF_TIME).await;
    for (format, named) in [
        ("ended", "its end at 2015-01-01T00:00:00.256Z"),
        ("unborn", "its epoch, 2050-01-01T00:00:00"),
    ] {
        let answer = service.post(&format!("/ids/{format}")).await;
        let wrong = wrong(format.to_owned(), 503, "epoch-ended", &[]);
        let problem = assert_refused(&answer, &wrong);
        assert!(
            problem["detail"].as_str().unwrap().contains(named),
            "{problem}"
        );
        assert_eq!(answer.header("retry-after"), None);
        assert!(problem["retry_after_ms"].is_null());
    }
    assert_eq!(service.minted().await, 0.0);
}

#[tokio::test]
async fn refusals_are_counted_by_whose_fault_they_are() {
    let service = Service::start(OUT_OF_TIME).await;
    service.post("/ids/snowflake?count=0").await;
    service.exchange(&post_json("{")).await;
    service.post("/ids/ended").await;
    service.get("/decode/1?x=1").await;
    let metrics = service.metrics().await;
    for (series, total) in [
        (
            r#"idmint_mint_requests_total{format="snowflake",outcome="invalid"}"#,
            2.0,
        ),
        (
            r#"idmint_mint_requests_total{format="snowflake",outcome="refused"}"#,
            0.0,
        ),
        (
            r#"idmint_mint_requests_total{format="ended",outcome="refused"}"#,
            1.0,
        ),
        (r#"idmint_decode_requests_total{outcome="invalid"}"#, 1.0),
        (
            r#"idmint_http_requests_total{method="POST",route="/ids/{format}",status="422"}"#,
            1.0,
        ),
    ] {
        assert_eq!(metrics.get(series), Some(&total), "{series}");
    }
}
