//! Callers of HTTP/1 who do not read what they asked for, and those who say early that they will send no more.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::aim::Aim;
use super::ask::{self, Ask};
use super::attacker::Attacker;
use crate::http1::request;

pub(super) const READERS: usize = 3_000;
/// As many as the table of connections has room for.
pub(super) const PIPELINERS: usize = 10_000;
pub(super) const HALF_CLOSED: usize = 300;

/// What the kernel keeps for a caller that does not read; small, so that the rest stays with the server.
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

/// Each asks for sixty batches at once, on a connection from which it takes nothing; again as soon as that was ended.
pub(crate) fn pipelined_batches(aim: &Aim) -> JoinSet<()> {
    const BATCHES: usize = 60;
    ask::unread(aim, PIPELINERS, &Ask::post("/ids/uuid4?count=400"), BATCHES)
}

/// Each sends a request, closes its sending half, and then wants its answer; again twice a second.
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
