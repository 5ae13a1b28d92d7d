//! Attackers that send slowly, and attackers that only hold idle connections.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::aim::{Aim, Protocol};
use super::attacker::{Attacker, COME_AGAIN};
use idmint_testing::http1::request;

pub(super) const IDLE: usize = 10_000;
pub(super) const MORE_THAN_DESCRIPTORS: usize = 600;
pub(super) const ONE_BYTE: usize = 8_000;
pub(super) const SLOW: usize = 2_000;
/// The number of requests, which is above the limit of concurrent requests of the service.
pub(super) const WITHOUT_BODIES: usize = 4_500;

pub(super) const BETWEEN_BYTES: Duration = Duration::from_millis(500);

/// Opens as many connections as the connection table of the service can hold. Each connection sends
/// one request and then stays idle.
pub(crate) fn idle(aim: &Aim) -> JoinSet<()> {
    asking_once(aim, IDLE)
}

pub(crate) fn more_than_descriptors(aim: &Aim) -> JoinSet<()> {
    asking_once(aim, MORE_THAN_DESCRIPTORS)
}

fn asking_once(aim: &Aim, callers: usize) -> JoinSet<()> {
    let ask = request("GET /health/live", "", "");
    aim.attackers(callers, move |aim, number| {
        let ask = ask.clone();
        async move {
            loop {
                let mut attacker = Attacker::connect(&aim, number).await;
                let is_sent = attacker.send(ask.as_bytes()).await;
                attacker.deeds.requests.add(usize::from(is_sent));
                attacker.hold_until_cut().await;
                sleep(COME_AGAIN).await;
            }
        }
    })
}

/// Sends one request and the first 2 000 bytes of a second one. Uses as many connections as the
/// connection table of the service can hold.
pub(crate) fn half_heads(aim: &Aim) -> JoinSet<()> {
    let ask = request("POST /ids/uuid4", "", "");
    let half = format!("POST /ids/uuid4 HTTP/1.1\r\nx: {}", "a".repeat(1_970));
    let ask = ask + &half;
    aim.attackers(IDLE, move |aim, number| {
        let ask = ask.clone();
        async move {
            loop {
                let mut attacker = Attacker::connect(&aim, number).await;
                let is_sent = attacker.send(ask.as_bytes()).await;
                attacker.deeds.requests.add(usize::from(is_sent));
                attacker.hold_until_cut().await;
                sleep(COME_AGAIN).await;
            }
        }
    })
}

/// Sends only the beginning of a connection. This is the first byte of an HTTP/1.1 method, the
/// first bytes of an HTTP/2 preface, or the first byte of a TLS handshake.
pub(crate) fn one_byte(aim: &Aim) -> JoinSet<()> {
    let beginning: &'static [u8] = match aim.protocol {
        Protocol::Http1 => b"P",
        Protocol::Http2 => b"PRI",
        Protocol::Tls => b"\x16",
    };
    aim.attackers(ONE_BYTE, move |aim, number| async move {
        loop {
            let mut attacker = Attacker::connect(&aim, number).await;
            attacker.send(beginning).await;
            attacker.hold_until_cut().await;
            sleep(COME_AGAIN).await;
        }
    })
}

/// Sends the head of a request slowly, one byte every half second.
pub(crate) fn heads(aim: &Aim) -> JoinSet<()> {
    dripping(
        aim,
        "POST /ids/snowflake?count=1 HTTP/1.1\r\nhost: localhost\r\nx-long: ".to_owned(),
    )
}

/// Sends the head of a request, and then its body slowly, one byte every half second.
pub(crate) fn bodies(aim: &Aim) -> JoinSet<()> {
    let kind = "content-type: application/json\r\ncontent-length: 8000000\r\n";
    dripping(aim, request("POST /decode", kind, "") + "[")
}

/// Sends short bodies slowly, one byte per second.
pub(crate) fn bodies_by_the_second(aim: &Aim) -> JoinSet<()> {
    let head = request(
        "POST /ids/payment",
        "content-type: application/json\r\ncontent-length: 10\r\n",
        "",
    );
    aim.attackers(WITHOUT_BODIES, move |aim, number| {
        let head = head.clone();
        async move {
            loop {
                let mut attacker = Attacker::connect_encrypted(&aim, number).await;
                let mut goes_on = attacker.send(head.as_bytes()).await;
                attacker.deeds.requests.add(usize::from(goes_on));
                for _ in 0..9 {
                    sleep(COME_AGAIN).await;
                    goes_on = goes_on && attacker.send(b" ").await;
                }
                sleep(COME_AGAIN).await;
            }
        }
    })
}

fn dripping(aim: &Aim, beginning: String) -> JoinSet<()> {
    aim.attackers(SLOW, move |aim, number| {
        let beginning = beginning.clone();
        async move {
            loop {
                let mut attacker = Attacker::connect(&aim, number).await;
                let mut goes_on = attacker.send(beginning.as_bytes()).await;
                while goes_on {
                    sleep(BETWEEN_BYTES).await;
                    goes_on = attacker.send(b" ").await;
                }
                sleep(COME_AGAIN).await;
            }
        }
    })
}
