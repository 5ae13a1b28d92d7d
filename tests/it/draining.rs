//! Checks that a server that is asked to stop still responds to all requests that it has accepted.

use std::sync::Arc;
use std::time::Duration;

use idmint::server::assemble;
use idmint::server::config::Config;
use idmint_core::minting::Randomness;
use idmint_core::time::Clock;
use idmint_http::{Api, HostPolicy, HttpMetrics, paths};
use idmint_net::{OpenConnections, serve};
use prometheus::{Registry, TextEncoder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::support::{LONG, Running, WIDE, get_request, terms, until, within};
use idmint_testing::http1::AsyncClient;

#[tokio::test]
async fn a_request_in_flight_gets_its_answer() {
    let server = Running::start(WIDE).await;
    let (address, release) = (server.address, server.release.clone());
    let mut busy = server.connect().await;
    busy.send(get_request("/slow")).await;
    let mut idle = server.connect().await;
    idle.exchange(&get_request("/hello")).await;
    until(|| server.open.count() == 2).await;

    let drained = server.begin_draining();
    assert_eq!(idle.read_to_close().await, "");
    assert!(
        TcpStream::connect(address).await.is_err(),
        "nothing new is accepted"
    );
    assert!(!drained.is_finished());
    drop(idle);

    release.notify_one();
    let answer = busy.receive().await;
    assert_eq!(
        (answer.text().as_str(), answer.header("connection")),
        ("at last", Some("close"))
    );
    assert_eq!(busy.read_to_close().await, "");
    drop(busy);
    assert_eq!(
        within(LONG, drained)
            .await
            .unwrap()
            .connections_closed_by_force,
        0
    );
}

#[tokio::test]
async fn what_does_not_end_is_cut_off() {
    let server = Running::start_to_drain_within(Duration::from_millis(300)).await;
    let mut busy = server.connect().await;
    busy.send(get_request("/slow")).await;
    until(|| server.metrics().contains("idmint_http_in_flight 1")).await;

    assert_eq!(server.drain().await.connections_closed_by_force, 1);
    assert_eq!(busy.read_to_close().await, "");
}

#[tokio::test]
async fn a_busy_connection_loses_no_request_while_draining() {
    let server = Running::start(WIDE).await;
    let mut callers = Vec::new();
    for _ in 0..8 {
        let mut client = server.connect().await;
        callers.push(tokio::spawn(async move {
            // `exchange` panics if a request gets no response.
            let mut answered = 0;
            while client
                .exchange(&get_request("/hello"))
                .await
                .header("connection")
                != Some("close")
            {
                answered += 1;
            }
            answered
        }));
    }
    until(|| server.open.count() == 8).await;
    assert_eq!(server.drain().await.connections_closed_by_force, 0);
    for client in callers {
        within(LONG, client)
            .await
            .expect("every request is answered");
    }
}

#[tokio::test]
async fn a_request_on_its_way_when_draining_begins_is_answered() {
    let server = Running::start(WIDE).await;
    let mut client = server.connect().await;
    client.exchange(&get_request("/hello")).await;
    // This runtime has a single thread. The server therefore learns that it must stop before it
    // sees the request.
    client.send(get_request("/hello")).await;
    let drained = server.begin_draining();
    let answer = client.receive().await;
    assert_eq!(
        (answer.text().as_str(), answer.header("connection")),
        ("hello", Some("close"))
    );
    drop(client);
    assert_eq!(
        within(LONG, drained)
            .await
            .unwrap()
            .connections_closed_by_force,
        0
    );
}

#[tokio::test]
async fn a_request_sent_before_draining_is_answered_even_from_the_backlog() {
    for _ in 0..10 {
        let server = Running::start(WIDE).await;
        let mut client = server.connect().await;
        client.send(get_request("/hello")).await;
        let drained = server.begin_draining();
        assert_eq!(client.receive().await.text(), "hello");
        drop(client);
        assert_eq!(
            within(LONG, drained)
                .await
                .unwrap()
                .connections_closed_by_force,
            0
        );
    }
}

#[tokio::test]
async fn a_verification_that_drips_does_not_hold_the_end() {
    let registry = Registry::new();
    let clock = Arc::new(Clock::system());
    let service = assemble(&Config::default(), clock, &Randomness::Thread, &registry).unwrap();
    let metrics = Arc::new(HttpMetrics::register(&registry, &paths()).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let api = Api::new(service, metrics, HostPolicy::default());
    let (open, (drain, drained)) = (OpenConnections::default(), oneshot::channel::<()>());
    let drain_max = Duration::from_millis(300);
    let serving = tokio::spawn(serve(
        listener,
        api,
        terms(WIDE, open),
        async { _ = drained.await },
        drain_max,
    ));

    let mut client = AsyncClient::connect(address).await;
    let head =
        "POST /ledgers/aa77f99c/verify HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\n";
    client
        .send(format!(
            "{head}expect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n"
        ))
        .await;
    // Wait for this response, which shows that the server has begun to read the body.
    within(
        LONG,
        client
            .stream
            .read_exact(&mut [0; "HTTP/1.1 100 Continue\r\n\r\n".len()]),
    )
    .await
    .unwrap();
    // Send a few bytes of the body every five milliseconds, for as long as the server reads.
    let dripping = tokio::spawn(async move {
        while client.stream.write_all(b"1\r\nx\r\n").await.is_ok() {
            sleep(Duration::from_millis(5)).await;
        }
    });
    drain.send(()).unwrap();
    assert_eq!(
        within(LONG, serving)
            .await
            .unwrap()
            .connections_closed_by_force,
        1
    );
    assert_eq!(in_flight(&registry), 0, "nobody works on it any more");
    within(LONG, dripping).await.unwrap();
}

fn in_flight(registry: &Registry) -> i64 {
    let text = TextEncoder::new()
        .encode_to_string(&registry.gather())
        .unwrap();
    text.lines()
        .find_map(|line| line.strip_prefix("idmint_http_in_flight "))
        .unwrap()
        .parse()
        .unwrap()
}
