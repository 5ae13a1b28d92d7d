//! What the bytes of a connection go through: the kernel's socket, or TLS on top of it.

use tokio::io::{AsyncRead, AsyncWrite};

use super::tls_wire::TlsWire;

/// The lowest stream of a connection.
pub(in crate::net) trait Socket:
    AsyncRead + AsyncWrite + Unpin + Send + 'static
{
    /// Whether it keeps bytes that it has taken until it is flushed. A constant, so that a plain socket is never asked.
    const KEEPS_BYTES: bool;
}

impl Socket for tokio_rustls::server::TlsStream<TlsWire> {
    const KEEPS_BYTES: bool = true;
}
