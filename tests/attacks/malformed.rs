//! Attackers that send malformed requests.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::aim::Aim;
use super::attacker::Attacker;
use idmint_testing::http1::{post_json, request};

const CALLERS: usize = 64;
const TURN: Duration = Duration::from_millis(250);

/// Starts attackers that send these requests one after another. Each request uses a new connection,
/// and each attacker sends four requests per second.
fn again_and_again(aim: &Aim, requests: Vec<Vec<u8>>) -> JoinSet<()> {
    let requests = Arc::new(requests);
    aim.attackers(CALLERS, move |aim, number| {
        let requests = Arc::clone(&requests);
        async move {
            for request in requests.iter().cycle().skip(number) {
                let turn = async {
                    let mut attacker = Attacker::connect(&aim, number).await;
                    if attacker.send(request).await {
                        attacker.deeds.requests.add(1);
                        attacker.next_status().await;
                    }
                };
                let (_, ()) = tokio::join!(timeout(2 * TURN, turn), sleep(TURN));
            }
        }
    })
}

pub(crate) fn json(aim: &Aim) -> JoinSet<()> {
    let deep = "[".repeat(16_000);
    let bodies = [
        "",
        "{",
        "[",
        "null",
        "1e999",
        "\"",
        "{\"count\":0}",
        "{\"count\":-1}",
        "{\"count\":9223372036854775808}",
        "{\"count\":1,\"count\":2}",
        "{\"count\":1}x",
        "{\"count\":\"1\"}",
        "\u{feff}{}",
        "{\"coun\\u0000t\":1}",
        &deep,
    ];
    let targets = [
        "/ids/snowflake",
        "/decode",
        "/ids/conjunction",
        "/ledgers",
        "/ids/evently",
    ];
    let mut requests: Vec<Vec<u8>> = Vec::new();
    for target in targets {
        requests.extend(
            bodies
                .iter()
                .filter(|body| !body.is_empty())
                .map(|body| post_json(target, "", body).into_bytes()),
        );
        let not_text = request(
            &format!("POST {target}"),
            "content-type: application/json\r\ncontent-length: 4\r\n",
            "",
        );
        requests.push([not_text.as_bytes(), b"[\"\xff\xfe"].concat());
    }
    again_and_again(aim, requests)
}

pub(crate) fn headers(aim: &Aim) -> JoinSet<()> {
    let many: String = (0..10_000)
        .map(|number| format!("x-{number}: y\r\n"))
        .collect();
    let long = format!("x-long: {}\r\n", "y".repeat(1024 * 1024));
    let heads = [
        &many,
        &long,
        "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
        "content-length: 5\r\ncontent-length: 6\r\n",
        "content-length: -1\r\n",
        "x-a: b\rx-c: d\r\n",
        "x a: b\r\n",
        "host: other\r\n",
    ];
    again_and_again(
        aim,
        heads
            .iter()
            .map(|headers| request("POST /ids/snowflake", headers, "").into_bytes())
            .collect(),
    )
}
