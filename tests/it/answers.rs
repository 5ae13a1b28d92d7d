//! Checks that every response has a request id and is counted, and that every refusal is a problem
//! document (RFC 9457).

use crate::service::Service;
use crate::support::{Running, WIDE, get_request, post_request};
use idmint_testing::http1::Answer;

fn assert_problem(answer: &Answer, status: u16, slug: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let problem = answer.json();
    assert_eq!(problem["type"], format!("/problems/{slug}"));
    assert_eq!(problem["status"], status);
    assert_eq!(
        problem["instance"].as_str(),
        answer.header("x-request-id"),
        "{answer:?}"
    );
    assert!(problem["title"].is_string() && problem["detail"].is_string());
}

#[tokio::test]
async fn a_refusal_is_a_problem_whoever_refuses() {
    let server = Running::start(WIDE).await;
    let with_header =
        |path, header| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{header}\r\n\r\n");

    assert_problem(
        &server.exchange(&get_request("/nowhere")).await,
        404,
        "not-found",
    );
    assert_problem(
        &server.exchange(&get_request("/problems/nonsense")).await,
        404,
        "not-found",
    );
    assert_problem(
        &server
            .exchange(&get_request(&format!("/hello?{}", "x".repeat(8_192))))
            .await,
        414,
        "uri-too-long",
    );

    let not_allowed = server.exchange(&post_request("/hello", "", "")).await;
    assert_problem(&not_allowed, 405, "method-not-allowed");
    assert_eq!(not_allowed.header("allow"), Some("GET,HEAD"));

    let not_acceptable = server
        .exchange(&with_header("/represented", "accept: image/png"))
        .await;
    assert_problem(&not_acceptable, 406, "not-acceptable");
    assert_eq!(
        not_acceptable.json()["accepts"],
        serde_json::json!(["application/json", "text/plain"])
    );
    assert_eq!(
        server
            .exchange(&with_header("/represented", "accept: text/*"))
            .await
            .text(),
        "text/plain; charset=utf-8"
    );

    let form = server
        .exchange(&post_request(
            "/echo",
            "content-type: application/x-www-form-urlencoded\r\n",
            "a=b",
        ))
        .await;
    assert_problem(&form, 415, "unsupported-media-type");
    assert_eq!(form.header("accept"), Some("application/json, text/plain"));
}

#[tokio::test]
async fn a_body_too_large_is_answered_413_before_it_is_sent() {
    let server = Running::start(WIDE).await;
    let head = "POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\nexpect: 100-continue\r\ncontent-length: 17\r\n\r\n";
    let declared = server.exchange(head).await;
    assert_problem(&declared, 413, "payload-too-large");
    assert_eq!(declared.json()["limit"], "16 bytes");
    assert_eq!(declared.header("connection"), Some("close"));
}

#[tokio::test]
async fn a_body_without_end_is_answered_413_and_the_answer_can_be_read() {
    let server = Running::start(WIDE).await;
    let mut client = server.connect().await;
    client
        .send(
            "POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n",
        )
        .await;
    // Send more than the buffers between client and server can hold. The server must keep reading
    // for a while after its response. Otherwise the connection would be reset, and the response
    // would be lost.
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..200 {
        client.send(&chunk).await;
    }
    assert_problem(&client.receive().await, 413, "payload-too-large");
}

#[tokio::test]
async fn a_slow_body_is_answered_408() {
    let server = Running::start(WIDE).await;
    let mut client = server.connect().await;
    let slow = client
        .exchange("POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nab")
        .await;
    assert_problem(&slow, 408, "request-timeout");
    assert_eq!(slow.header("connection"), Some("close"));
    assert_eq!(client.read_to_close().await, "");
}

#[tokio::test]
async fn a_body_that_breaks_off_harms_nobody() {
    let server = Running::start(WIDE).await;
    let mut client = server.connect().await;
    let bad_chunk = client.exchange("POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n").await;
    assert_problem(&bad_chunk, 400, "malformed-request");
    let mut gone = server.connect().await;
    gone.send("POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nab")
        .await;
    drop(gone);
    assert_eq!(server.exchange(&get_request("/hello")).await.status, 200);
}

#[tokio::test]
async fn a_handler_that_panics_has_answered_500() {
    let server = Running::start(WIDE).await;
    let mut client = server.connect().await;
    for _ in 0..3 {
        let answer = client.exchange(&get_request("/panic")).await;
        assert_problem(&answer, 500, "internal-error");
        assert!(!answer.text().contains("the test wants it"), "no internals");
    }
    assert_eq!(
        client.exchange(&get_request("/hello")).await.text(),
        "hello"
    );
    assert!(server.metrics().contains("idmint_http_in_flight 0"));
}

#[tokio::test]
async fn the_callers_request_id_is_kept_and_an_unusable_one_replaced() {
    let server = Running::start(WIDE).await;
    let mut client = server.connect().await;
    let mut ask = async |id: &str, path: &str| {
        let answer = client
            .exchange(&format!(
                "GET {path} HTTP/1.1\r\nhost: localhost\r\nx-request-id: {id}\r\n\r\n"
            ))
            .await;
        answer.header("x-request-id").unwrap().to_owned()
    };
    for path in ["/hello", "/nowhere"] {
        assert_eq!(ask("order-4711", path).await, "order-4711");
        assert_eq!(ask(&"x".repeat(128), path).await, "x".repeat(128));
        for unusable in [String::new(), "two words".to_owned(), "x".repeat(129)] {
            let made = ask(&unusable, path).await;
            assert!(
                made != unusable
                    && made.len() > 12
                    && made.bytes().all(|byte| byte.is_ascii_graphic()),
                "{made}"
            );
        }
    }
}

#[tokio::test]
async fn requests_are_counted_by_route_method_and_status() {
    let server = Running::start(WIDE).await;
    assert!(
        server
            .metrics()
            .contains(r#"idmint_http_requests_total{method="GET",route="/hello",status="200"} 0"#)
    );
    for request in [
        get_request("/hello"),
        get_request("/hello"),
        get_request("/nowhere"),
        get_request("/echo"),
    ] {
        server.exchange(&request).await;
    }
    server
        .exchange("BREW /hello HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    let metrics = server.metrics();
    for series in [
        r#"idmint_http_requests_total{method="GET",route="/hello",status="200"} 2"#,
        r#"idmint_http_requests_total{method="GET",route="unmatched",status="404"} 1"#,
        r#"idmint_http_requests_total{method="GET",route="/echo",status="405"} 1"#,
        r#"idmint_http_requests_total{method="other",route="/hello",status="405"} 1"#,
        r#"idmint_http_request_duration_seconds_count{route="/hello"} 3"#,
        "idmint_http_in_flight 0",
    ] {
        assert!(metrics.contains(series), "{series} is not in\n{metrics}");
    }
}

#[tokio::test]
async fn a_head_request_has_the_headers_and_no_body() {
    let server = Running::start(WIDE).await;
    let mut client = server.connect().await;
    for path in ["/hello", "/nowhere"] {
        client
            .send(format!("HEAD {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"))
            .await;
    }
    // Send a GET request on the same connection. If a HEAD response had a body, that body would be
    // read as the beginning of this response.
    client
        .send("GET /hello HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await;
    let all = client.read_to_close().await;
    assert_eq!(all.matches("HTTP/1.1 ").count(), 3, "{all}");
    assert_eq!(all.matches("hello").count(), 1, "{all}");
    assert!(!all.contains("\"type\""), "{all}");
}

#[tokio::test]
async fn a_newline_ends_an_answer_in_json_and_is_counted_for_head_too() {
    let service = Service::start("").await;
    for (path, end) in [
        ("/formats", "}]}\n"),
        ("/formats/snowflake", "}\n"),
        (
            "/formats/snowflake/range?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z",
            "}\n",
        ),
        ("/decode/1I9ZC1000", "}\n"),
        ("/encode/payment?worker=3", "}\n"),
        ("/decode/hello", "}\n"),
        ("/health/live", "{\"live\":true}\n"),
        ("/health/ready", "}\n"),
        ("/ledgers", "}\n"),
        ("/conjunctions", "}\n"),
        ("/nowhere", "}\n"),
    ] {
        let answer = service.exchange(&get_request(path)).await;
        let text = answer.text();
        assert!(
            text.ends_with(end) && !text.trim_end_matches('\n').contains('\n'),
            "{path}: {text}"
        );
        let len = answer.header("content-length").map(str::to_owned);
        assert_eq!(len, Some(text.len().to_string()), "{path}");
        // Send a GET request on the same connection. If the HEAD response had a body, that body
        // would be read as the beginning of this response.
        let mut client = service.connect().await;
        client
            .send(get_request(path).replacen("GET", "HEAD", 1))
            .await;
        client
            .send("GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .await;
        let all = client.read_to_close().await;
        let (head, rest) = all.split_once("\r\n\r\n").unwrap();
        let told = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        assert_eq!(told.map(str::to_owned), len, "{path}: {head}");
        assert!(rest.starts_with("HTTP/1.1 200"), "{path}: {rest}");
    }
}

#[tokio::test]
async fn readiness_is_asked_for_ids_or_for_records() {
    let service = Service::start("").await;
    for query in ["", "?for=ids", "?for=records", "?probe=7"] {
        let ready = service.get(&format!("/health/ready{query}")).await;
        assert_eq!(ready.status, 200, "{query}: {}", ready.text());
        assert_eq!(ready.json()["records_detail"], serde_json::Value::Null);
    }
    let refused = service.get("/health/ready?for=numbers").await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    let detail = refused.json()["detail"].to_string();
    assert!(
        detail.contains("numbers") && detail.contains("ids or records"),
        "{detail}"
    );
}
