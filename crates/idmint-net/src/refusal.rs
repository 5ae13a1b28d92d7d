//! The response to a connection that cannot be served.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::stream::{LINGER_MAX, TrackedStream, Tracking};

/// The maximum time that [`refuse`] takes. The first half is for writing the response, and the
/// second half for the caller to read it.
pub(super) const REFUSAL_MAX: Duration = LINGER_MAX.saturating_mul(2);

/// The complete response to a connection that is refused for lack of memory or because a limit is
/// reached. The body is empty, because the error documents of the API are defined in another crate.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncache-control: no-store\r\n\
    connection: close\r\ncontent-length: 0\r\n\r\n";

/// [`REFUSAL`] with the header that marks a test service.
const REFUSAL_OF_TEST: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncache-control: no-store\r\n\
    idmint-test: true\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Returns the complete response to a connection that is refused for lack of memory or because a
/// limit is reached.
pub(super) fn refusal(is_test: bool) -> &'static [u8] {
    if is_test { REFUSAL_OF_TEST } else { REFUSAL }
}

/// Writes the complete response `answer` and closes the connection.
pub(super) async fn refuse(stream: TcpStream, answer: Bytes) -> io::Result<()> {
    let mut stream = TrackedStream::new(stream, Bytes::new(), Tracking::Nothing);
    stream.write_all(&answer).await?;
    stream.shutdown().await
}
