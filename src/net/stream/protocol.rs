//! Which version of HTTP a connection speaks, told by its first bytes.

use std::io;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::begun_stream::{BegunStream, FIRST_LEN};

/// What an HTTP/2 connection begins with (RFC 9113 section 3.4).
const HTTP2_PREFACE: &[u8; FIRST_LEN] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A version of HTTP that is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::net) enum Protocol {
    Http1,
    Http2,
}

/// Detects the protocol by the first bytes, which the stream gives again; `None` if the caller closes first.
///
/// They are read, not looked at: the kernel says "readable" for as long as anything is unread, so it could not be asked to
/// wait for more, nor for the end.
pub(in crate::net) async fn detect_protocol(
    mut socket: TcpStream,
) -> io::Result<Option<(Protocol, BegunStream)>> {
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
        return Ok(Some((protocol, BegunStream::new(socket, first, len))));
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

    /// Both ends of a connection: the caller's, and the one that is served.
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
        let (protocol, mut stream) = detecting
            .await
            .expect("it goes on")
            .expect("the caller has closed its half only");
        let mut given = Vec::new();
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
                detected.expect("no error").map(|(protocol, _)| protocol),
                protocol,
                "{sent:?}"
            );
        }
    }
}
