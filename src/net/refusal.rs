//! The answer to a connection that is not served.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::stream::{LINGER_MAX, TrackedStream, Tracking};

/// How long [`refuse`] may take: once to write, once to let the caller read.
pub(super) const REFUSAL_MAX: Duration = LINGER_MAX.saturating_mul(2);

/// The whole answer where there is no room: too early for a problem document.
pub(super) const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncache-control: no-store\r\n\
    connection: close\r\ncontent-length: 0\r\n\r\n";

/// The same of a service to test against.
pub(super) const REFUSAL_OF_TEST: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncache-control: no-store\r\n\
    idmint-test: true\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Gives this whole answer and closes.
pub(super) async fn refuse(stream: TcpStream, answer: Bytes) -> io::Result<()> {
    let mut stream = TrackedStream::new(stream, Tracking::Nothing);
    stream.write_all(&answer).await?;
    stream.shutdown().await
}
