//! Checks that the number of connections is limited, and that the limits do not affect honest
//! callers.

use std::time::{Duration, Instant};

use idmint_net::Limits;
use tokio::io::AsyncWriteExt;

use crate::support::{LONG, Running, WIDE, get_request, post_request, until, within};

const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn garbage_is_answered_400_and_closed() {
    let server = Running::start(WIDE).await;
    let almost_http2 = "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n";
    for garbage in [
        "\0\x01\x02\x03",
        "HELLO\r\n\r\n",
        "GET / HTTP/1.1\r\nx y: z\r\n\r\n",
        almost_http2,
    ] {
        let mut client = server.connect().await;
        client.send(garbage).await;
        let answer = client.read_to_close().await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{garbage:?}: {answer}");
    }
    assert_eq!(
        server.exchange(&get_request("/hello")).await.text(),
        "hello"
    );
}

#[tokio::test]
async fn two_lengths_for_one_body_are_refused() {
    let server = Running::start(WIDE).await;
    for framing in [
        "content-length: 3\r\ncontent-length: 4\r\n",
        "content-length: x\r\n",
        "transfer-encoding: gzip\r\n",
    ] {
        let mut client = server.connect().await;
        client
            .send(format!("POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\n{framing}\r\nabcd"))
            .await;
        let answer = client.read_to_close().await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{framing:?}: {answer}");
    }
}

#[tokio::test]
async fn a_body_is_chunked_once_and_coded_in_no_other_way() {
    let server = Running::start(WIDE).await;
    let post = |codings: &str| {
        let (head, chunks) = (
            "POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain",
            "4\r\nabcd\r\n0\r\n\r\n",
        );
        format!("{head}\r\ntransfer-encoding: {codings}\r\n\r\n{chunks}")
    };
    for (codings, status, problem) in [
        ("gzip, chunked", "501", "unknown-transfer-coding"),
        (
            "gzip\r\ntransfer-encoding: chunked",
            "501",
            "unknown-transfer-coding",
        ),
        ("identity,chunked", "501", "unknown-transfer-coding"),
        ("chunked, chunked", "400", "malformed-request"),
        (
            "chunked\r\ntransfer-encoding: Chunked",
            "400",
            "malformed-request",
        ),
    ] {
        let mut client = server.connect().await;
        client.send(post(codings)).await;
        let answer = client.read_to_close().await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(problem),
            "{codings:?}: {answer}"
        );
    }
    for codings in ["chunked", "Chunked", ", chunked"] {
        let mut client = server.connect().await;
        client.send(post(codings)).await;
        assert_eq!(client.receive().await.text(), "abcd", "{codings:?}");
        assert_eq!(
            client.exchange(&get_request("/hello")).await.text(),
            "hello",
            "it stays open"
        );
    }
}

#[tokio::test]
async fn a_caller_who_sent_what_may_begin_a_preface_and_left_is_noticed() {
    let server = Running::start(Limits {
        header_timeout: 10 * LONG,
        ..WIDE
    })
    .await;
    let (mut gone, mut staying) = (server.connect().await, server.connect().await);
    for client in [&mut gone, &mut staying] {
        client.send("P").await;
    }
    until(|| server.open.count() == 2).await;
    drop(gone);
    until(|| server.open.count() == 1).await;
    staying.send(&post_request("/echo", "", "abc")[1..]).await;
    assert_eq!(staying.receive().await.text(), "abc");
}

#[tokio::test]
async fn a_head_too_large_is_answered_431() {
    let server = Running::start(WIDE).await;
    let many = "x: y\r\n".repeat(10_000);
    let long = format!("x: {}\r\n", "y".repeat(1 << 20));
    for headers in [many, long] {
        let mut client = server.connect().await;
        let _ = client
            .stream
            .write_all(format!("GET /hello HTTP/1.1\r\n{headers}\r\n").as_bytes())
            .await;
        let answer = client.read_to_close().await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }
}

#[tokio::test]
async fn a_silent_connection_is_closed_after_the_header_timeout() {
    let server = Running::start(Limits {
        header_timeout: SHORT,
        ..WIDE
    })
    .await;
    let began = Instant::now();
    assert_eq!(server.connect().await.read_to_close().await, "");
    assert!(began.elapsed() >= SHORT);
}

#[tokio::test]
async fn a_slow_head_is_closed_after_the_header_timeout() {
    let server = Running::start(Limits {
        header_timeout: Duration::from_secs(2),
        ..WIDE
    })
    .await;
    for answered_before in [false, true] {
        let mut client = server.connect().await;
        if answered_before {
            client.exchange(&get_request("/hello")).await;
        }
        let began = Instant::now();
        // Send a request byte by byte and never finish it. The bytes must not extend the timeout.
        within(LONG / 2, async {
            for byte in get_request("/hello").bytes().cycle() {
                let byte = if byte == b'\n' { b'x' } else { byte };
                if client.stream.write_all(&[byte]).await.is_err() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
        assert!(
            began.elapsed() >= Duration::from_millis(1_900),
            "answered before: {answered_before}"
        );
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_the_idle_timeout() {
    let server = Running::start(Limits {
        idle_timeout: SHORT,
        ..WIDE
    })
    .await;
    let mut client = server.connect().await;
    assert_eq!(client.exchange(&get_request("/hello")).await.status, 200);
    assert_eq!(client.read_to_close().await, "");
    drop(client);
    until(|| server.open.count() == 0).await;
}

#[tokio::test]
async fn an_idle_connection_outlives_the_header_timeout() {
    let server = Running::start(Limits {
        header_timeout: Duration::from_secs(1),
        ..WIDE
    })
    .await;
    let mut client = server.connect().await;
    assert_eq!(client.exchange(&get_request("/hello")).await.status, 200);
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(client.exchange(&get_request("/hello")).await.status, 200);
}

#[tokio::test]
async fn a_handler_may_take_longer_than_the_header_timeout() {
    let server = Running::start(Limits {
        header_timeout: SHORT,
        ..WIDE
    })
    .await;
    let mut client = server.connect().await;
    client.send(get_request("/slow")).await;
    tokio::time::sleep(3 * SHORT).await;
    server.release.notify_one();
    assert_eq!(client.receive().await.text(), "at last");
}

#[tokio::test]
async fn a_handler_may_take_longer_than_the_idle_timeout() {
    let server = Running::start(Limits {
        idle_timeout: SHORT,
        ..WIDE
    })
    .await;
    let mut client = server.connect().await;
    client.send(get_request("/slow")).await;
    until(|| server.metrics().contains("idmint_http_in_flight 1")).await;
    // Open another connection later, and wait until the service closes it because it is idle. The
    // idle timeout has then passed for the first connection, too.
    let mut idle = server.connect().await;
    assert_eq!(idle.exchange(&get_request("/hello")).await.status, 200);
    assert_eq!(idle.read_to_close().await, "");
    server.release.notify_one();
    assert_eq!(client.receive().await.text(), "at last");
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_given_up() {
    let server = Running::start(Limits {
        idle_timeout: SHORT,
        ..WIDE
    })
    .await;
    let mut client = server.connect().await;
    client.send(get_request("/big")).await;
    until(|| server.open.count() == 1).await;
    until(|| server.open.count() == 0).await;
}

#[tokio::test]
async fn a_request_may_come_in_pieces() {
    let server = Running::start(WIDE).await;
    let mut client = server.connect().await;
    for piece in [
        "P",
        "OST /echo HT",
        "TP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-le",
        "ngth: 4\r\n\r",
        "\n",
        "ab",
        "cd",
    ] {
        client.send(piece).await;
        client.stream.flush().await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(client.receive().await.text(), "abcd");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Running::start(WIDE).await;
    let mut client = server.connect().await;
    let bodies: Vec<_> = (0..50).map(|number| format!("body {number}")).collect();
    client
        .send(
            bodies
                .iter()
                .map(|body| post_request("/echo", "", body))
                .collect::<String>(),
        )
        .await;
    for body in &bodies {
        assert_eq!(&client.receive().await.text(), body);
    }
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let server = Running::start(Limits {
        connections_max: 2,
        ..WIDE
    })
    .await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    for (client, in_flight) in [(&mut first, "1"), (&mut second, "2")] {
        client.send(get_request("/slow")).await;
        until(|| {
            server
                .metrics()
                .contains(&format!("idmint_http_in_flight {in_flight}"))
        })
        .await;
    }

    let mut third = server.connect().await;
    let refused = third.exchange(&get_request("/hello")).await;
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(refused.header("connection"), Some("close"));
    assert_eq!(third.read_to_close().await, "");

    server.release.notify_one();
    assert_eq!(first.receive().await.status, 200);
    drop(first);
    until(|| server.open.count() == 1).await;
    assert_eq!(server.exchange(&get_request("/hello")).await.status, 200);
    server.release.notify_one();
    assert_eq!(second.receive().await.status, 200);
}

#[tokio::test]
async fn a_newcomer_has_the_place_of_the_one_idle_longest() {
    let server = Running::start(Limits {
        connections_max: 2,
        ..WIDE
    })
    .await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    for turn in [1, 2, 1] {
        let client = if turn == 1 { &mut first } else { &mut second };
        assert_eq!(client.exchange(&get_request("/hello")).await.status, 200);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut third = server.connect().await;
    assert_eq!(third.exchange(&get_request("/hello")).await.status, 200);
    assert_eq!(
        second.read_to_close().await,
        "",
        "nothing was asked on it for longest"
    );
    for client in [&mut first, &mut third] {
        assert_eq!(client.exchange(&get_request("/hello")).await.status, 200);
    }
}

#[tokio::test]
async fn a_connection_that_is_old_is_closed_with_its_next_answer() {
    const AGE_MAX: Duration = Duration::from_secs(2);
    let server = Running::start(Limits {
        connection_age_max: Some(AGE_MAX),
        ..WIDE
    })
    .await;
    let mut client = server.connect().await;
    assert_eq!(
        client
            .exchange(&get_request("/hello"))
            .await
            .header("connection"),
        None
    );
    tokio::time::sleep(2 * AGE_MAX).await;
    assert_eq!(
        client
            .exchange(&get_request("/hello"))
            .await
            .header("connection"),
        Some("close")
    );
    assert_eq!(client.read_to_close().await, "");
}
