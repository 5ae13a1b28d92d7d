//! Sends long request bodies: bodies of the maximum length, longer bodies, and bodies that never
//! end.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::aim::Aim;
use super::attacker::Attacker;
use idmint_testing::http1::request;

pub(super) const MIB: usize = 1024 * 1024;
pub(super) const DECODE_LEN: usize = 8 * MIB;
pub(super) const REPORTS_LEN: usize = 16 * MIB;
const UNKNOWN_KEYS: usize = 1_000_000;
const REPORTS: usize = 99_999;

/// The time for one body and its response. After this time, the attacker starts again on a new
/// connection.
const TURN: Duration = Duration::from_secs(4);

/// Starts `callers` attackers. Every [`TURN`], each attacker opens a new connection, sends this
/// body and reads the response.
fn in_turns(aim: &Aim, callers: usize, target: &str, body: &[u8]) -> JoinSet<()> {
    let headers = format!(
        "content-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    let head = request(&format!("POST {target}"), &headers, "");
    in_turns_as_they_are(aim, callers, [head.as_bytes(), body].concat())
}

fn in_turns_as_they_are(aim: &Aim, callers: usize, whole: Vec<u8>) -> JoinSet<()> {
    let whole = Arc::new(whole);
    aim.attackers(callers, move |aim, number| {
        let whole = Arc::clone(&whole);
        async move {
            loop {
                let turn = async {
                    let mut attacker = Attacker::connect(&aim, number).await;
                    attacker.deeds.requests.add(1);
                    attacker.send(&whole).await;
                    // The server may have refused the request before the whole body was sent.
                    attacker.read_answers().await;
                };
                let (_, ()) = tokio::join!(timeout(TURN, turn), sleep(TURN));
            }
        }
    })
}

pub(crate) fn unknown_keys(aim: &Aim) -> JoinSet<()> {
    let mut body = r#"{"tca":"2030-01-01T00:00:00Z","primary":25544,"secondary":48274"#.to_owned();
    (0..UNKNOWN_KEYS).for_each(|key| write!(body, r#","k{key}":0"#).unwrap());
    in_turns(aim, 32, "/ids/conjunction", (body + "}").as_bytes())
}

/// Returns a JSON array of ids that is slightly shorter than `len` bytes.
pub(super) fn ids(len: usize) -> Vec<u8> {
    let mut body = "[\"1587974656345886720\"".to_owned();
    while body.len() < len - 30 {
        body.push_str(",\"1587974656345886720\"");
    }
    (body + "]").into_bytes()
}

pub(crate) fn decodes(aim: &Aim) -> JoinSet<()> {
    in_turns(aim, 64, "/decode", &ids(DECODE_LEN))
}

/// Sends the same bodies as `decodes`, but in chunks. The service then knows the length of a body
/// only at its end.
pub(crate) fn chunked_decodes(aim: &Aim) -> JoinSet<()> {
    let chunks: Vec<u8> = ids(DECODE_LEN)
        .chunks(64 * 1024)
        .flat_map(|piece| [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat())
        .collect();
    let head = request(
        "POST /decode",
        "content-type: application/json\r\ntransfer-encoding: chunked\r\n",
        "",
    );
    in_turns_as_they_are(aim, 64, [head.as_bytes(), &chunks, b"0\r\n\r\n"].concat())
}

/// Returns a body with the maximum number of valid reports. White space fills it up to the maximum
/// length. Every second report is about one pair of objects, a minute after the previous one. The
/// other reports are about different pairs.
pub(super) fn many_reports() -> String {
    let report = |number: usize| {
        let (minute, primary) = match number % 2 {
            0 => (number / 2, 1_000_000),
            _ => (0, number + 2),
        };
        let (day, hour) = (minute / 1_440, minute / 60 % 24);
        let tca = format!(
            "2030-{:02}-{:02}T{hour:02}:{:02}:00Z",
            day / 28 + 1,
            day % 28 + 1,
            minute % 60
        );
        let report = format!(r#"{{"tca":"{tca}","primary":{primary},"secondary":1}}"#);
        format!("{report:0$}", report.len() + 90)
    };
    let mut body = format!("[{}", report(0));
    (1..REPORTS).for_each(|number| write!(body, ",{}", report(number)).unwrap());
    body.push_str(&" ".repeat(REPORTS_LEN - 1 - body.len()));
    body + "]"
}

pub(crate) fn reports(aim: &Aim) -> JoinSet<()> {
    in_turns(aim, 32, "/ids/conjunction", many_reports().as_bytes())
}

/// Announces a body far above the limit of every route, and sends it until the server stops
/// reading.
pub(crate) fn too_long(aim: &Aim) -> JoinSet<()> {
    let head = request(
        "POST /decode",
        "content-type: application/json\r\ncontent-length: 1073741824\r\n",
        "",
    );
    without_end(aim, head, vec![b' '; 64 * 1024])
}

pub(crate) fn chunks_without_end(aim: &Aim) -> JoinSet<()> {
    let head = request(
        "POST /decode",
        "content-type: application/json\r\ntransfer-encoding: chunked\r\n",
        "",
    );
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    without_end(aim, head, chunk.into_bytes())
}

/// Starts attackers that send this request head, and then up to 64 MiB of chunks. Responses are
/// read at the same time. Each attacker repeats this on a new connection every [`TURN`].
fn without_end(aim: &Aim, head: String, piece: Vec<u8>) -> JoinSet<()> {
    const CALLERS: usize = 32;
    const PIECES: usize = 1_024;
    aim.attackers(CALLERS, move |aim, number| {
        let (head, piece) = (head.clone(), piece.clone());
        async move {
            loop {
                let turn = async {
                    let mut attacker = Attacker::connect(&aim, number).await;
                    let mut is_sent = attacker.send(head.as_bytes()).await;
                    attacker.deeds.requests.add(usize::from(is_sent));
                    for _ in 0..PIECES {
                        is_sent = is_sent && attacker.send(&piece).await;
                    }
                    attacker.read_answers().await;
                };
                let (_, ()) = tokio::join!(timeout(TURN, turn), sleep(TURN));
            }
        }
    })
}
