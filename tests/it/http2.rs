//! Checks HTTP/2 without an upgrade (prior knowledge), on the same port as HTTP/1.1.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Request};
use http_body_util::BodyExt;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use idmint_net::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, JoinSet};

use crate::service::Service;
use crate::support::{LONG, Running, WIDE, until, within};

async fn connect(server: &Running) -> (SendRequest<Body>, JoinHandle<hyper::Result<()>>) {
    connect_to(server.address).await
}

async fn connect_to(address: SocketAddr) -> (SendRequest<Body>, JoinHandle<hyper::Result<()>>) {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    (sender, tokio::spawn(connection))
}

async fn ask(
    mut sender: SendRequest<Body>,
    method: &str,
    path: &str,
    body: &'static str,
) -> (u16, String) {
    let uri = format!("http://localhost{path}");
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header("content-type", "text/plain");
    let request = request.body(Body::from(body)).unwrap();
    let answer = within(LONG, sender.send_request(request)).await.unwrap();
    let status = answer.status().as_u16();
    assert!(answer.headers().contains_key("x-request-id"));
    let body = within(LONG, answer.into_body().collect())
        .await
        .unwrap()
        .to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn many_requests_share_one_connection() {
    let server = Running::start(WIDE).await;
    let (sender, _connection) = connect(&server).await;
    let mut asked = JoinSet::new();
    for _ in 0..300 {
        asked.spawn(ask(sender.clone(), "POST", "/echo", "abc"));
    }
    while let Some(answer) = asked.join_next().await {
        assert_eq!(answer.unwrap(), (200, "abc".to_owned()));
    }
    assert_eq!(
        ask(sender.clone(), "POST", "/echo", "longer than sixteen")
            .await
            .0,
        413
    );
    assert_eq!(ask(sender, "GET", "/panic", "").await.0, 500);
    assert_eq!(server.open.count(), 1);
}

/// Sends a request without a body. Returns the status, the headers and the length of the body.
async fn bare(
    sender: &mut SendRequest<Body>,
    method: &str,
    uri: &str,
    etag: &str,
) -> (u16, HeaderMap, usize) {
    let request = Request::builder().method(method).uri(uri);
    let request = request.header("if-none-match", etag);
    let request = request.body(Body::empty()).unwrap();
    let answer = within(LONG, sender.send_request(request)).await.unwrap();
    let (head, body) = answer.into_parts();
    let body = within(LONG, body.collect()).await.unwrap().to_bytes();
    (head.status.as_u16(), head.headers, body.len())
}

#[tokio::test]
async fn a_response_to_head_has_the_length_of_the_body_and_no_body() {
    let service = Service::start("").await;
    let (mut sender, _connection) = connect_to(service.address).await;
    for (uri, status) in [
        ("http://localhost/formats", 200),
        ("http://localhost/nowhere", 404),
        ("http://localhost/formats?no=such", 422),
        ("http://elsewhere.example/formats", 421),
    ] {
        let (head_status, headers, body_len) = bare(&mut sender, "HEAD", uri, "").await;
        assert_eq!((head_status, body_len), (status, 0), "{uri}");
        let len = headers["content-length"].to_str().unwrap();
        let (get_status, _, body_len) = bare(&mut sender, "GET", uri, "").await;
        assert_eq!(
            (get_status, body_len.to_string().as_str()),
            (status, len),
            "{uri}"
        );
    }
}

#[tokio::test]
async fn a_page_that_was_not_modified_has_no_length() {
    let service = Service::start("").await;
    let (mut sender, _connection) = connect_to(service.address).await;
    let uri = "http://localhost/page/main.js";
    let (status, headers, _) = bare(&mut sender, "GET", uri, "").await;
    assert_eq!(status, 200);
    let etag = headers["etag"].to_str().unwrap();
    let (status, headers, _) = bare(&mut sender, "GET", uri, etag).await;
    assert_eq!(status, 304);
    assert!(!headers.contains_key("content-length"), "{headers:?}");
}

#[tokio::test]
async fn the_preface_may_come_in_pieces() {
    let server = Running::start(WIDE).await;
    let mut client = server.connect().await;
    const EMPTY_SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    for piece in [
        &b"P"[..],
        b"RI * HTTP/2.0\r\n",
        b"\r\nSM\r\n\r\n",
        EMPTY_SETTINGS,
    ] {
        client.send(piece).await;
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    let mut frame_head = [0; 9];
    within(LONG, client.stream.read_exact(&mut frame_head))
        .await
        .unwrap();
    assert_eq!(frame_head[3], 4, "the server answers with its settings");
}

#[tokio::test]
async fn an_idle_connection_is_closed_with_a_goodbye() {
    let server = Running::start(Limits {
        idle_timeout: Duration::from_millis(300),
        ..WIDE
    })
    .await;
    let (sender, connection) = connect(&server).await;
    assert_eq!(ask(sender.clone(), "GET", "/hello", "").await.0, 200);
    assert!(
        within(LONG, connection).await.unwrap().is_ok(),
        "an orderly end"
    );
    until(|| server.open.count() == 0).await;
}

#[tokio::test]
async fn a_handler_may_take_longer_than_the_idle_timeout() {
    let server = Running::start(Limits {
        idle_timeout: Duration::from_millis(300),
        ..WIDE
    })
    .await;
    let (sender, _connection) = connect(&server).await;
    let asked = tokio::spawn(ask(sender, "GET", "/slow", ""));
    until(|| server.metrics().contains("idmint_http_in_flight 1")).await;
    // Open another connection later, and wait until the service closes it because it is idle. The
    // idle timeout has then passed for the first connection, too.
    let (sender, idle) = connect(&server).await;
    assert_eq!(ask(sender.clone(), "GET", "/hello", "").await.0, 200);
    assert!(within(LONG, idle).await.unwrap().is_ok());
    server.release.notify_one();
    assert_eq!(asked.await.unwrap(), (200, "at last".to_owned()));
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_given_up() {
    let server = Running::start(Limits {
        idle_timeout: Duration::from_millis(300),
        ..WIDE
    })
    .await;
    let (mut sender, connection) = connect(&server).await;
    let request = Request::builder()
        .uri("http://localhost/big")
        .body(Body::empty())
        .unwrap();
    let unread = within(LONG, sender.send_request(request)).await.unwrap();
    until(|| server.open.count() == 0).await;
    drop(unread);
    let _ = within(LONG, connection).await.unwrap();
}

#[tokio::test]
async fn a_stream_that_is_not_read_is_reset_and_its_neighbour_goes_on() {
    const IDLE: Duration = Duration::from_secs(3);
    let server = Running::start(Limits {
        idle_timeout: IDLE,
        ..WIDE
    })
    .await;
    let (mut sender, _connection) = connect(&server).await;
    let request = Request::builder()
        .uri("http://localhost/big")
        .body(Body::empty())
        .unwrap();
    let answer = within(LONG, sender.send_request(request)).await.unwrap();
    assert_eq!(answer.status(), 200);
    let mut unread = answer.into_body();
    let began = std::time::Instant::now();
    let mut asked = 0;
    while began.elapsed() < 2 * IDLE {
        assert_eq!(
            ask(sender.clone(), "GET", "/hello", "").await,
            (200, "hello".to_owned())
        );
        asked += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(asked > 10, "the connection was in use all the time");
    let broken = within(LONG, async {
        loop {
            match unread.frame().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return error.to_string(),
                None => panic!("the whole answer came"),
            }
        }
    });
    println!("{}", broken.await);
}

#[tokio::test]
async fn a_flood_of_frames_without_a_request_ends_the_connection() {
    const PING: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    const UNKNOWN: &[u8] = &[0, 0, 0, 0xbb, 0, 0, 0, 0, 0];
    /// A RST_STREAM frame for the first request, which has already ended.
    const RST_STREAM: &[u8] = &[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8];
    /// The request `POST http://localhost/hello`, encoded with the static table and two literals
    /// (RFC 7541). The response has the status 405, and the stream is then closed.
    const POST: &[u8] = b"\0\0\x15\x01\x05\0\0\0\x01\x83\x86\x04\x06/hello\x01\x09localhost";
    let server = Running::start(WIDE).await;
    for frame in [PING, UNKNOWN, RST_STREAM] {
        let mut client = server.connect().await;
        client
            .send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
            .await;
        client.send(POST).await;
        until(|| server.metrics().contains("idmint_http_in_flight 0")).await;
        let mut sent = 0;
        while client.stream.write_all(frame).await.is_ok() {
            sent += 1;
            assert!(
                sent < 300_000,
                "any number of frames of type {} is taken",
                frame[3]
            );
            tokio::task::yield_now().await;
        }
        until(|| server.open.count() == 0).await;
    }
}

#[tokio::test]
async fn a_caller_who_cancels_each_of_its_requests_keeps_its_connection() {
    const AT_ONCE: usize = 50;
    let server = Running::start(WIDE).await;
    let (sender, _connection) = connect(&server).await;
    for _ in 0..24 {
        let mut asked = JoinSet::new();
        (0..AT_ONCE).for_each(|_| drop(asked.spawn(ask(sender.clone(), "GET", "/slow", ""))));
        until(|| {
            server
                .metrics()
                .contains(&format!("idmint_http_in_flight {AT_ONCE}"))
        })
        .await;
        asked.shutdown().await;
        until(|| server.metrics().contains("idmint_http_in_flight 0")).await;
    }
    assert_eq!(
        ask(sender, "GET", "/hello", "").await,
        (200, "hello".to_owned())
    );
    assert_eq!(server.open.count(), 1);
}

#[tokio::test]
async fn a_request_in_flight_gets_its_answer_while_draining() {
    let server = Running::start(WIDE).await;
    let release = server.release.clone();
    let (sender, connection) = connect(&server).await;
    let asked = tokio::spawn(ask(sender, "GET", "/slow", ""));
    until(|| server.metrics().contains("idmint_http_in_flight 1")).await;
    let drained = server.begin_draining();
    release.notify_one();
    assert_eq!(asked.await.unwrap(), (200, "at last".to_owned()));
    assert_eq!(
        within(LONG, drained)
            .await
            .unwrap()
            .connections_closed_by_force,
        0
    );
    assert!(within(LONG, connection).await.unwrap().is_ok());
}
