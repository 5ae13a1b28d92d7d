//! The answer to a connection for which there is no room.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::stream::{LINGER_MAX, TrackedStream, Tracking};

/// How long [`refuse`] may take: once to write, once to let the caller read.
pub(super) const REFUSAL_MAX: Duration = LINGER_MAX.saturating_mul(2);

/// The whole answer: too early for a problem document.
pub(super) const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncache-control: no-store\r\n\
    connection: close\r\ncontent-length: 0\r\n\r\n";

/// Answers 503 and closes.
pub(super) async fn refuse(stream: TcpStream) -> io::Result<()> {
    let mut stream = TrackedStream::new(stream, Tracking::Nothing);
    stream.write_all(REFUSAL).await?;
    stream.shutdown().await
}
