//! HTTP/1 callers that do not read their responses, and callers that close their sending half
//! early.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::aim::Aim;
use super::ask::{self, Ask};
use super::attacker::Attacker;
use idmint_testing::http1::request;

pub(super) const READERS: usize = 3_000;
/// As many connections as the connection table can hold.
pub(super) const PIPELINERS: usize = 10_000;
pub(super) const HALF_CLOSED: usize = 300;

/// The receive buffer of the kernel. It is small, so that the rest of the response stays on the
/// server.
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

/// Requests sixty batches at once on a connection that the caller never reads. The caller
/// reconnects as soon as the connection was closed.
pub(crate) fn pipelined_batches(aim: &Aim) -> JoinSet<()> {
    const BATCHES: usize = 60;
    ask::unread(aim, PIPELINERS, &Ask::post("/ids/uuid4?count=400"), BATCHES)
}

/// Sends a request, closes the sending half, and waits for the response, twice a second.
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
