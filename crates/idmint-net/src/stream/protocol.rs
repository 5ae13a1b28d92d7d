//! Detects the HTTP version of a connection from its first bytes.

use std::io;

use bytes::Bytes;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// The number of bytes needed to detect the protocol.
const FIRST_LEN: usize = 24;

/// The first bytes of an HTTP/2 connection, as defined by RFC 9113 section 3.4.
const HTTP2_PREFACE: &[u8; FIRST_LEN] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A supported version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// Detects the protocol by the first bytes, and returns the protocol, the socket and those bytes.
/// Returns `None` if the caller closes the connection before it sends enough bytes.
///
/// The bytes are read rather than peeked. A socket with unread bytes stays readable, so a task that
/// peeks could not wait for more bytes or for the end of the stream.
pub(crate) async fn detect_protocol(
    mut socket: TcpStream,
) -> io::Result<Option<(Protocol, TcpStream, Bytes)>> {
    let (mut first, mut len) = ([0; FIRST_LEN], 0);
    loop {
        len += match socket.read(&mut first[len..]).await? {
            0 => return Ok(None),
            came => came,
        };
        let protocol = if !HTTP2_PREFACE.starts_with(&first[..len]) {
            Protocol::Http1
        } else if len == FIRST_LEN {
            Protocol::Http2
        } else {
            continue;
        };
        let first = Bytes::copy_from_slice(&first[..len]);
        return Ok(Some((protocol, socket, first)));
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::time::Duration;

    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;
    use crate::stream::{TrackedStream, Tracking};

    /// Returns both ends of a connection: the caller's end, and the end that the service reads.
    async fn connect() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let caller = TcpStream::connect(listener.local_addr().expect("bound"))
            .await
            .expect("it listens");
        (caller, listener.accept().await.expect("it was connected").0)
    }

    #[tokio::test]
    async fn what_may_begin_a_preface_is_waited_for_and_not_asked_about() {
        let (mut caller, served) = connect().await;
        let (mut polls, mut detecting) = (0, pin!(detect_protocol(served)));
        caller.write_all(b"P").await.expect("connected");
        let detected = poll_fn(|context| {
            polls += 1;
            detecting.as_mut().poll(context)
        });
        assert!(
            timeout(Duration::from_millis(500), detected).await.is_err(),
            "it may be either protocol"
        );
        assert!(polls <= 5, "{polls} looks at one byte");
        caller
            .write_all(&HTTP2_PREFACE[1..])
            .await
            .expect("connected");
        caller.write_all(b"frames").await.expect("connected");
        caller.shutdown().await.expect("connected");
        let (protocol, stream, first) = detecting
            .await
            .expect("it goes on")
            .expect("the caller has closed its half only");
        let mut given = Vec::new();
        let mut stream = TrackedStream::new(stream, first, Tracking::Nothing);
        stream
            .read_to_end(&mut given)
            .await
            .expect("all of it came");
        assert_eq!(
            (protocol, given),
            (Protocol::Http2, [HTTP2_PREFACE, &b"frames"[..]].concat())
        );
    }

    #[tokio::test]
    async fn a_caller_who_has_closed_is_noticed_behind_any_beginning() {
        for (sent, protocol) in [
            ("", None),
            ("PRI * ", None),
            ("PR", None),
            ("PRO", Some(Protocol::Http1)),
        ] {
            let (mut caller, served) = connect().await;
            caller.write_all(sent.as_bytes()).await.expect("connected");
            drop(caller);
            let detected = timeout(Duration::from_secs(60), detect_protocol(served))
                .await
                .expect("noticed at once");
            assert_eq!(
                detected.expect("no error").map(|(protocol, ..)| protocol),
                protocol,
                "{sent:?}"
            );
        }
    }
}
