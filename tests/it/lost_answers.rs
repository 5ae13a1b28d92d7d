//! Checks that no response is lost while its caller can still read it.

use std::time::Duration;

use idmint_http::paths;
use tokio::io::AsyncWriteExt;

use crate::service::Service;
use crate::support::{Running, WIDE, get_request, post_request, until};
use idmint_testing::http1::request;

#[tokio::test]
async fn a_caller_that_closes_its_sending_half_gets_its_answer() {
    const CALLERS: usize = 300;
    let service = Service::start("").await;
    for caller in 0..CALLERS {
        let mut client = service.connect().await;
        client.send(post_request("/ids/snowflake", "", "")).await;
        client.stream.shutdown().await.unwrap();
        assert_eq!(client.receive().await.status, 200, "caller {caller}");
        assert_eq!(client.read_to_close().await, "");
    }
    assert_eq!(service.minted().await, CALLERS as f64);

    let server = Running::start(WIDE).await;
    let mut waiting = server.connect().await;
    waiting.send(get_request("/slow")).await;
    waiting.stream.shutdown().await.unwrap();
    until(|| server.metrics().contains("idmint_http_in_flight 1")).await;
    server.release.notify_one();
    assert_eq!(waiting.receive().await.text(), "at last");
}

#[tokio::test]
async fn answers_that_came_before_an_error_are_sent_before_it_ends_the_connection() {
    const MINTS: usize = 20;
    let service = Service::start("").await;
    let mints = post_request("/ids/snowflake", "", "").repeat(MINTS);
    let broken_body = "POST /ids/snowflake HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\nnot a length\r\n";
    for ending in [
        "\0 is no request\r\n\r\n",
        broken_body,
        "GET /metrics HTTP/1.1\r\nhost: localhost",
    ] {
        let mut client = service.connect().await;
        client.send(format!("{mints}{ending}")).await;
        for _ in 0..MINTS {
            assert_eq!(client.receive().await.status, 200, "{ending:?}");
        }
        client.stream.shutdown().await.unwrap();
        client.read_to_close().await;
    }
}

/// Sends the body only after the head. A route that keeps the connection must have waited for the
/// body. A route that did not read the body must announce that the connection closes.
#[tokio::test]
async fn an_answer_that_leaves_a_body_unread_says_so_on_every_route() {
    let service = Service::start("").await;
    let (mut closed, mut kept) = (0, 0);
    for (method, path) in paths() {
        for method in [method.as_str(), "PUT"] {
            let path = path
                .replace("{format}", "snowflake")
                .replace(['{', '}'], "");
            let mut client = service.connect().await;
            let (head, body) = (
                request(
                    &format!("{method} {path}"),
                    "content-type: application/json\r\ncontent-length: 2\r\n",
                    "",
                ),
                "{}",
            );
            client.send(head).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            let _ = client.stream.write_all(body.as_bytes()).await;
            let answer = client.receive().await;
            if answer.header("connection") == Some("close") {
                assert_eq!(client.read_to_close().await, "", "{method} {path}");
                closed += 1;
            } else {
                let next = client.exchange(get_request("/health/live")).await;
                assert_eq!(
                    next.status, 200,
                    "{method} {path}: the next request is lost"
                );
                kept += 1;
            }
        }
    }
    println!("{closed} answers left a body unread and said so, {kept} read it");
    assert!(closed >= 20 && kept >= 3, "{closed} closed, {kept} kept");
}
