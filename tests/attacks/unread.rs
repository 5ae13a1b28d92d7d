//! HTTP/1 attackers that do not read their responses, or that close the sending direction of their
//! connections early.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::aim::Aim;
use super::ask::{self, Ask};
use super::attacker::Attacker;
use idmint_testing::http1::request;

pub(super) const READERS: usize = 3_000;
/// The number of connections that the connection table of the service can hold.
pub(super) const PIPELINERS: usize = 10_000;
pub(super) const HALF_CLOSED: usize = 300;

/// The size of the kernel's receive buffer in bytes. The buffer is small, so that most of the
/// response stays on the server.
const RECEIVE_LEN: u32 = 4 * 1024;

pub(crate) fn long_answers(aim: &Aim) -> JoinSet<()> {
    let ask = request("POST /ids/snowflake?count=100000", "", "");
    aim.attackers(READERS, move |aim, number| {
        let ask = ask.clone();
        async move {
            let mut attacker = Attacker::connect_with(&aim, number, Some(RECEIVE_LEN)).await;
            let is_sent = attacker.send(ask.as_bytes()).await;
            attacker.deeds.requests.add(usize::from(is_sent));
            attacker.hold().await;
        }
    })
}

/// Requests sixty batches of ids at once, and never reads the responses. If the service closes the
/// connection, the attacker reconnects.
pub(crate) fn pipelined_batches(aim: &Aim) -> JoinSet<()> {
    const BATCHES: usize = 60;
    ask::unread(aim, PIPELINERS, &Ask::post("/ids/uuid4?count=400"), BATCHES)
}

/// Twice a second, sends a request, closes the sending direction, and waits for the response.
pub(crate) fn half_closed(aim: &Aim) -> JoinSet<()> {
    const BETWEEN: Duration = Duration::from_millis(500);
    let ask = request("POST /ids/snowflake", "", "");
    aim.attackers(HALF_CLOSED, move |aim, number| {
        let ask = ask.clone();
        async move {
            loop {
                let mut attacker = Attacker::connect(&aim, number).await;
                if attacker.send(ask.as_bytes()).await {
                    attacker.close_half().await;
                    attacker.deeds.requests.add(1);
                    let _ = timeout(Duration::from_secs(5), attacker.next_status()).await;
                }
                sleep(BETWEEN).await;
            }
        }
    })
}
