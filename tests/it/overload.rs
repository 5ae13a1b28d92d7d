//! Checks that a caller who asks for more than the service has room for is refused immediately, and
//! that all other callers are served.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::service::Service;
use crate::support::{LONG, Running, WIDE, get_request, post_request, within};
use idmint_testing::http1::{AsyncClient, request};

#[tokio::test]
async fn a_peer_that_reads_nothing_is_refused_more_and_what_it_had_comes_back() {
    const READERS: usize = 150;
    let service = Service::start(
        "http.idle_timeout = '2s'\nhttp.memory_max = '64MiB'\nmint.batch_max = 1_000_000",
    )
    .await;
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let mut reader = service.connect().await;
        reader
            .send(post_request("/ids/uuid4?count=1000000", "", ""))
            .await;
        readers.push(reader);
    }
    let used = "idmint_memory_budget_used_bytes";
    let shed = async |reason: &str| {
        service
            .metric(&format!(
                "idmint_requests_shed_total{{reason=\"{reason}\"}}"
            ))
            .await
    };
    within(LONG, async {
        while shed("memory").await + shed("bulk").await == 0.0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let most = service.metric(used).await;
    assert!(
        most <= 16.0 * 1024.0 * 1024.0,
        "{most} bytes are more than a quarter"
    );
    assert_eq!(
        service.mint("/ids/uuid4").await.len(),
        1,
        "single mints go on"
    );

    within(LONG, async {
        while service.metric(used).await > 256.0 * 1024.0 * 8.0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    println!(
        "{most} bytes at most, {} once those that read nothing were cut",
        service.metric(used).await
    );
}

#[tokio::test]
async fn an_answer_with_memory_of_its_own_needs_no_more() {
    let server = Running::start(WIDE).await;
    let answer = server.exchange(&get_request("/paid")).await;
    assert_eq!((answer.status, answer.body.len()), (200, 100_000));
}

/// Connects a caller that sends as much of `asks` as the server accepts, and never reads a
/// response.
async fn send_unread(service: &Service, asks: &[u8]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(2_304).unwrap();
    let mut stream = within(LONG, socket.connect(service.address)).await.unwrap();
    let _ = tokio::time::timeout(Duration::from_millis(20), stream.write_all(asks)).await;
    stream
}

#[tokio::test]
async fn short_answers_that_nobody_reads_are_paid_for_and_beyond_that_connections_end() {
    const CALLERS: usize = 260;
    let service = Service::start("http.memory_max = '32MiB'").await;
    // The callers use up the memory that one peer address may have. Read the metrics from another
    // peer address.
    let mut kept = connect_from(&service, 2).await;
    let mut metric = async |name: &str| {
        let text = kept.exchange(get_request("/metrics")).await.text();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .expect("there from the first scrape");
        line.trim().parse::<f64>().unwrap()
    };
    let (used, shed) = (
        "idmint_memory_budget_used_bytes",
        "idmint_requests_shed_total{reason=\"memory\"}",
    );
    let before = metric(used).await;
    // Each response is short, but all responses to one caller together exceed the kernel's buffers.
    let asks = post_request("/ids/uuid4?count=90", "", "").repeat(1_000);
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        callers.push(send_unread(&service, asks.as_bytes()).await);
    }
    within(LONG, async {
        while metric(shed).await == 0.0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let most = metric(used).await;
    println!(
        "{most} bytes of a peer's 8 MiB are taken, {} times there was too little",
        metric(shed).await
    );
    assert!(
        most > 6e6,
        "{most} bytes: connections alone are {}",
        CALLERS * 8 * 1024
    );
    drop(callers);
    within(LONG, async {
        while metric(used).await > before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(
        kept.exchange(post_request("/ids/uuid4", "", ""))
            .await
            .status,
        200,
        "and mints as before"
    );
}

#[tokio::test]
async fn a_body_costs_what_has_come_of_it_and_one_too_many_is_refused() {
    let service = Service::start("http.memory_max = '32MiB'\nhttp.body_timeout = '1h'").await;
    let used = "idmint_memory_budget_used_bytes";
    let before = service.metric(used).await;
    let half = format!("[{}", "\"175928847299117063\",".repeat(150_000));
    let head = request(
        "POST /decode",
        &format!(
            "content-type: application/json\r\ncontent-length: {}\r\n",
            half.len() + 1
        ),
        "",
    );
    let mut senders = Vec::new();
    for _ in 0..2 {
        let mut sender = service.connect().await;
        sender.send(&head).await;
        sender.send(&half).await;
        senders.push(sender);
    }
    service.until_metric(used, before + 6e6).await;
    let mut last = service.connect().await;
    last.send(&head).await;
    let _ = tokio::io::AsyncWriteExt::write_all(&mut last.stream, half.as_bytes()).await;
    let refused = last.receive().await;
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("1")),
        "{refused:?}"
    );
    assert!(refused.text().contains("overloaded"));
    drop((senders, last));
    within(LONG, async {
        while service.metric(used).await > before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// Sends a request of the caller `caller` without its body. Returns as soon as the service waits
/// for the body.
async fn stall(service: &Service, caller: &str) -> AsyncClient {
    let headers =
        "content-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 11\r\n";
    let mut client = service.connect().await;
    client
        .send(request(
            "POST /ids/snowflake",
            &format!("x-forwarded-for: {caller}\r\n{headers}"),
            "",
        ))
        .await;
    let mut go_on = [0; "HTTP/1.1 100 Continue\r\n\r\n".len()];
    within(LONG, client.stream.read_exact(&mut go_on))
        .await
        .unwrap();
    assert!(
        go_on.starts_with(b"HTTP/1.1 100 "),
        "{}",
        String::from_utf8_lossy(&go_on)
    );
    client
}

#[tokio::test]
async fn bodies_that_do_not_come_are_in_nobodys_way_and_give_way_to_callers_who_have_fewer() {
    const MANY: usize = 8;
    let service = Service::start(&format!(
        "http.in_flight_max = {MANY}\nhttp.trusted_proxies = ['127.0.0.1']\nhttp.body_timeout = '1h'"
    ))
    .await;
    let shed = async |reason: &str| {
        service
            .metric(&format!(
                "idmint_requests_shed_total{{reason=\"{reason}\"}}"
            ))
            .await
    };
    let mut stalled = Vec::new();
    for _ in 0..MANY {
        stalled.push(stall(&service, "192.0.2.1").await);
    }
    for _ in 0..3 * MANY {
        assert_eq!(
            service.post("/ids/snowflake").await.status,
            200,
            "a mint without a body waits for nothing"
        );
        let whole = service
            .exchange(&post_request("/ids/snowflake", "", r#"{"count":2}"#))
            .await;
        assert_eq!(whole.status, 200, "nor does one whose body is there");
    }
    assert_eq!((shed("in_flight").await, shed("bodies").await), (0.0, 0.0));

    // Another caller now needs one of the places for requests. The caller that uses the most places
    // must lose its oldest request.
    let mut other = stall(&service, "192.0.2.2").await;
    let given_up = within(LONG, stalled.remove(0).receive()).await;
    assert_eq!(
        (given_up.status, given_up.header("retry-after")),
        (503, Some("1")),
        "{given_up:?}"
    );
    assert!(
        given_up.text().contains("took its place"),
        "{}",
        given_up.text()
    );
    for _ in 0..MANY {
        stalled.push(stall(&service, "192.0.2.1").await);
        assert_eq!(
            within(LONG, stalled.remove(0).receive()).await.status,
            503,
            "its own"
        );
    }
    other.send(r#"{"count":3}"#).await;
    assert_eq!(
        within(LONG, other.receive()).await.json()["count"],
        3,
        "who has few keeps what he has"
    );
    assert_eq!(
        (shed("in_flight").await, shed("bodies").await),
        (0.0, 1.0 + MANY as f64)
    );
    // Without competition, one caller may use all places.
    stalled.push(stall(&service, "192.0.2.1").await);
    for client in &mut stalled {
        client.send(r#"{"count":4}"#).await;
        assert_eq!(within(LONG, client.receive()).await.json()["count"], 4);
    }
    assert_eq!(
        (stalled.len(), shed("bodies").await),
        (MANY, 1.0 + MANY as f64)
    );
    assert_eq!(
        service.metric("idmint_http_in_flight").await,
        1.0,
        "the scrape"
    );
}

#[tokio::test]
async fn mints_that_are_held_are_not_in_the_way_of_others() {
    let service =
        Service::start("http.in_flight_max = 2\nworker.lanes = 1\nmint.wait_max = '5s'").await;
    service.mint("/ids/payment?count=1296").await;
    let mut held = Vec::new();
    for _ in 0..5 {
        let mut client = service.connect().await;
        client.send(post_request("/ids/payment", "", "")).await;
        held.push(client);
    }
    service
        .until_metric(r#"idmint_mint_waits_total{format="payment"}"#, 5.0)
        .await;
    assert_eq!(service.mint("/ids/snowflake").await.len(), 1);
    service.clock.advance(Duration::from_secs(1));
    for client in &mut held {
        assert_eq!(client.receive().await.status, 200);
    }
}

#[tokio::test]
async fn requests_that_a_connection_of_http_2_brings_at_once_wait_for_their_turn_and_not_in_flight()
{
    const STREAMS: usize = 100;
    let service = Service::start("http.in_flight_max = 40").await;
    let stream = TcpStream::connect(service.address).await.unwrap();
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    let _connection = tokio::spawn(connection);
    let mut asked = JoinSet::new();
    for _ in 0..STREAMS {
        let request = Request::post("http://localhost/ids/uuid4?count=400")
            .body(Body::empty())
            .unwrap();
        let answer = sender.clone().send_request(request);
        asked.spawn(async {
            answer
                .await
                .unwrap()
                .into_body()
                .collect()
                .await
                .unwrap()
                .to_bytes()
                .len()
        });
    }
    let lengths = within(LONG, asked.join_all()).await;
    assert!(
        lengths.len() == STREAMS && lengths.iter().all(|len| *len > 400 * 36),
        "{lengths:?}"
    );
    assert_eq!(
        service
            .metric(r#"idmint_requests_shed_total{reason="in_flight"}"#)
            .await,
        0.0
    );
}

/// Returns a body that causes long work. Its response is larger than the buffers that the kernel
/// has for a caller that does not read.
fn many_ids() -> String {
    format!(
        "[\"175928847299117063\"{}]",
        ",\"175928847299117063\"".repeat(50_000)
    )
}

#[tokio::test]
async fn callers_who_do_not_read_what_their_ids_are_keep_nobody_from_long_work() {
    let service = Service::start("http.idle_timeout = '1h'\nhttp.memory_max = '16384MiB'").await;
    let admitted_however_long = std::thread::available_parallelism().map_or(1, usize::from);
    let decode = post_request("/decode", "", &many_ids());
    let mut unread = Vec::new();
    // Decoding counts as long work until its response waits for the caller. Wait for the first
    // bytes of each response, because another request could be refused before then.
    while unread.len() < 2 * admitted_however_long {
        let mut client = service.connect().await;
        client.send(&decode).await;
        let mut status = [0; "HTTP/1.1 200".len()];
        client.stream.peek(&mut status).await.unwrap();
        if status.ends_with(b"200") {
            unread.push(client);
        }
    }
    within(LONG, async {
        while service.post("/ids/snowflake?count=10000").await.status != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    for mut client in unread {
        assert_eq!(
            client.receive().await.status,
            200,
            "its answer was on its way all the time"
        );
    }
}

#[tokio::test]
async fn long_work_whose_length_nobody_told_is_admitted_like_any_other() {
    let service = Service::start("http.idle_timeout = '1h'\nhttp.in_flight_max = 2").await;
    let body = many_ids();
    let mut first = service.connect().await;
    first.send(post_request("/decode", "", &body)).await;
    first.stream.readable().await.unwrap();

    let head = request(
        "POST /decode",
        "content-type: application/json\r\ntransfer-encoding: chunked\r\n",
        "",
    );
    let mut second = service.connect().await;
    second
        .send(format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len()))
        .await;
    assert_eq!(
        second.receive().await.status,
        503,
        "half of two requests are one"
    );
    assert_eq!(
        service
            .metric(r#"idmint_requests_shed_total{reason="bulk"}"#)
            .await,
        1.0
    );
}

#[tokio::test]
async fn an_idle_connection_costs_12_kib_and_one_that_reads_a_head_what_its_buffers_cost() {
    const CALLERS: usize = 100;
    const IDLE_LEN: f64 = 12.0 * 1024.0;
    const AWAKE_LEN: f64 = 32.0 * 1024.0;
    let service = Service::start("http.header_timeout = '1h'").await;
    let used_by_each = async || {
        // Subtract the memory of the connection that reads this metric.
        let used = service.metric("idmint_memory_budget_used_bytes").await - 40.0 * 1024.0;
        used / CALLERS as f64
    };
    let mint = post_request("/ids/uuid4", "", "");
    let (first_half, second_half) = mint.split_at(mint.len() / 2);
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        callers.push(service.connect().await);
    }
    // Send the first half of a request in two ways: alone, and together with the request before it.
    for (first, answers) in [
        (first_half.to_owned(), 0),
        (format!("{mint}{first_half}"), 1),
    ] {
        for caller in &mut callers {
            caller.send(&first).await;
            for _ in 0..answers {
                assert_eq!(caller.receive().await.status, 200);
            }
        }
        within(LONG, async {
            while used_by_each().await < AWAKE_LEN {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        for caller in &mut callers {
            assert_eq!(caller.exchange(second_half).await.status, 200);
        }
        within(LONG, async {
            while used_by_each().await > IDLE_LEN {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }
    for caller in &mut callers {
        assert_eq!(caller.exchange(&mint).await.status, 200);
    }
}

/// Connects from the loopback address 127.0.0.`host`. The service counts each address as a peer of
/// its own.
async fn connect_from(service: &Service, host: u8) -> AsyncClient {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, host], 0).into()).unwrap();
    let stream = within(LONG, socket.connect(service.address)).await.unwrap();
    AsyncClient::over(stream)
}

#[tokio::test]
async fn long_decodes_of_one_peer_keep_no_other_peer_from_long_work() {
    let service = Service::start("").await;
    let texts = vec!["\"0123456789abcdef0123456789abcde\""; 240_000];
    let decode = request(
        "POST /decode?detail=full",
        "content-type: application/json\r\naccept: application/x-ndjson\r\n",
        &format!("[{}]", texts.join(",")),
    );
    let mut senders = JoinSet::new();
    for _ in 0..3 {
        let (mut client, decode) = (connect_from(&service, 2).await, decode.clone());
        senders.spawn(async move {
            client.send(decode).await;
            // Read the response as fast as the service writes it.
            let mut piece = vec![0; 1 << 16];
            while client
                .stream
                .read(&mut piece)
                .await
                .is_ok_and(|len| len > 0)
            {}
        });
    }
    // Wait until this peer is refused, which means that it uses more than its share of the memory.
    let mut same = connect_from(&service, 2).await;
    within(LONG, async {
        while same.exchange(get_request("/ledgers")).await.status != 503 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;

    let mut other = connect_from(&service, 9).await;
    for _ in 0..10 {
        for ask in [
            post_request("/ids/uuid4?count=5000", "", ""),
            get_request("/ledgers"),
            get_request("/numbers"),
        ] {
            let answer = within(LONG, other.exchange(&ask)).await;
            assert_eq!(answer.status, 200, "{ask}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn texts_that_are_no_ids_are_long_work_by_the_time_that_they_take() {
    let service = Service::start("http.in_flight_max = 2").await;
    let body = many_ids();
    let mut first = service.connect().await;
    first.send(post_request("/decode", "", &body)).await;
    first.stream.readable().await.unwrap();

    // 39 texts count as short work because of their number. These texts are not ids, so decoding
    // them takes long. The service then treats the request as long work, for which no place is
    // free, and refuses it.
    for (count, status) in [(39, 503), (1, 200)] {
        let texts = vec!["\"0123456789abcdef0123456789abcde\""; count].join(",");
        let decode = post_request("/decode?detail=full", "", &format!("[{texts}]"));
        let answer = service.exchange(&decode).await;
        assert_eq!(answer.status, status, "{count}: {}", answer.text());
    }
}
