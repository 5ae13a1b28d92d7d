//! A minimal writer of HTTP/2 frames (RFC 9113), which can also write invalid frames.

use tokio::io::AsyncReadExt;

use super::aim::{Aim, Protocol};
use super::attacker::{Attacker, READ_LEN};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADER_LEN: usize = 9;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

const INITIAL_WINDOW_SIZE: u16 = 4;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A request method, given as its index in the static table (RFC 7541, appendix A).
#[derive(Clone, Copy)]
pub(crate) enum Field {
    Get = 0x82,
    Post = 0x83,
}

/// Encodes the header fields `:method`, `:scheme`, `:path` and `:authority` without compression.
fn head(method: Field, target: &str) -> Vec<u8> {
    let text = |index: u8, text: &str| {
        [&[index, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
    };
    [
        &[method as u8, 0x86][..],
        &text(4, target),
        &text(1, "localhost"),
    ]
    .concat()
}

pub(crate) fn head_of_post(target: &str) -> Vec<u8> {
    head(Field::Post, target)
}

/// Encodes a complete request that has no body.
pub(crate) fn bodiless(stream: u32, method: Field, target: &str) -> Vec<u8> {
    frame(
        HEADERS,
        END_STREAM | END_HEADERS,
        stream,
        &head(method, target),
    )
}

pub(crate) fn post(stream: u32, target: &str) -> Vec<u8> {
    bodiless(stream, Field::Post, target)
}

/// Encodes the headers of a request with `content-type` and `content-length`. The announced body is
/// never sent.
pub(crate) fn post_without_its_body(stream: u32, target: &str) -> Vec<u8> {
    let field = |index: u8, text: &str| {
        [
            &[0x0F, index - 15, u8::try_from(text.len()).unwrap()],
            text.as_bytes(),
        ]
        .concat()
    };
    let fields = [field(31, "application/json"), field(28, "10")].concat();
    frame(
        HEADERS,
        END_HEADERS,
        stream,
        &[head_of_post(target), fields].concat(),
    )
}

pub(crate) fn window_update(stream: u32, by: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &by.to_be_bytes())
}

/// Returns the first bytes of a connection. They set the initial flow-control window of each stream
/// to `window` bytes.
pub(crate) fn beginning(window: u32) -> Vec<u8> {
    let setting = [
        &INITIAL_WINDOW_SIZE.to_be_bytes()[..],
        &window.to_be_bytes(),
    ]
    .concat();
    [PREFACE, &frame(SETTINGS, 0, 0, &setting)].concat()
}

impl Attacker {
    /// Connects, and starts HTTP/2. The initial flow-control window of each stream is `window`
    /// bytes.
    pub(crate) async fn connect_http2(aim: &Aim, number: usize, window: u32) -> Attacker {
        let mut attacker = Attacker::connect_encrypted(aim, number).await;
        attacker.begin_http2(window).await;
        attacker
    }

    /// Sends the HTTP/2 preface. The initial flow-control window of each stream is `window` bytes.
    pub(crate) async fn begin_http2(&mut self, window: u32) {
        self.send_frames(1, &beginning(window)).await;
    }

    /// Sends bytes that are not a request: a PRIORITY frame in HTTP/2, or an empty line in
    /// HTTP/1.1. Returns `false` if the server has closed the connection.
    pub(crate) async fn send_nothing(&mut self, aim: &Aim) -> bool {
        match aim.protocol {
            Protocol::Http1 | Protocol::Tls => self.send(b"\r\n").await,
            Protocol::Http2 => {
                self.send_frames(1, &frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 16]))
                    .await
            }
        }
    }

    /// Sends `bytes`, which contain `frames` frames, and counts the frames.
    pub(crate) async fn send_frames(&mut self, frames: usize, bytes: &[u8]) -> bool {
        let is_sent = self.send(bytes).await;
        self.deeds.frames.add(if is_sent { frames } else { 0 });
        is_sent
    }

    /// Reads frames until the server closes the connection, and counts RST_STREAM and GOAWAY
    /// frames.
    ///
    /// SETTINGS and PING frames are acknowledged, because a client that ignores them may lose its
    /// connection. The function is cancel safe.
    pub(crate) async fn read_frames(&mut self) {
        let mut buffer = vec![0; READ_LEN];
        while let Ok(len @ 1..) = self.stream.read(&mut buffer).await {
            self.unread.extend_from_slice(&buffer[..len]);
            let answers = self.take_frames();
            if !answers.is_empty() && !self.send(&answers.concat()).await {
                return;
            }
        }
        self.deeds.cut.add(1);
    }

    /// Removes the complete frames from the received bytes, and returns the acknowledgements to
    /// send.
    fn take_frames(&mut self) -> Vec<Vec<u8>> {
        let (mut at, mut answers) = (0, Vec::new());
        while let Some(header) = self.unread.get(at..at + HEADER_LEN) {
            let len = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
            let (kind, is_ack) = (header[3], header[4] & ACK != 0);
            let Some(payload) = self.unread.get(at + HEADER_LEN..at + HEADER_LEN + len) else {
                break;
            };
            match kind {
                SETTINGS if !is_ack => answers.push(frame(SETTINGS, ACK, 0, &[])),
                PING if !is_ack => answers.push(frame(PING, ACK, 0, payload)),
                RST_STREAM | GOAWAY => drop(self.deeds.resets.add(1)),
                _ => {}
            }
            at += HEADER_LEN + len;
        }
        self.unread.drain(..at);
        answers
    }
}
