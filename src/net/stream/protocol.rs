//! Which version of HTTP a connection speaks, told by its first bytes.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::sleep;

/// What an HTTP/2 connection begins with (RFC 9113 section 3.4).
const HTTP2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long to wait for more when what came might be the beginning of the preface.
const PREFACE_PAUSE: Duration = Duration::from_millis(10);

/// A version of HTTP that is served.
pub(in crate::net) enum Protocol {
    Http1,
    Http2,
}

/// Detects the protocol by the first bytes, which stay unread; `None` if the caller closes first.
pub(in crate::net) async fn detect_protocol(stream: &TcpStream) -> io::Result<Option<Protocol>> {
    let mut first = [0; HTTP2_PREFACE.len()];
    loop {
        let len = stream.peek(&mut first).await?;
        if len == 0 {
            return Ok(None);
        }
        if !HTTP2_PREFACE.starts_with(&first[..len]) {
            return Ok(Some(Protocol::Http1));
        }
        if len == HTTP2_PREFACE.len() {
            return Ok(Some(Protocol::Http2));
        }
        // The kernel says "readable" for as long as anything is unread, so it cannot be asked to wait for more. This
        // happens only when the preface, or a POST, comes in pieces.
        sleep(PREFACE_PAUSE).await;
    }
}
