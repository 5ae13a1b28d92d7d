//! The socket below TLS. The socket limits the number of bytes that a client may send in a
//! handshake.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The maximum number of bytes that a client may send in a handshake. Most of them are the client's
/// certificates.
///
/// The TLS library reassembles a message before it checks the message, and would buffer 64 KiB for
/// any client.
const HANDSHAKE_LEN_MAX: usize = 24 * 1024;

/// The socket that carries the encrypted bytes of a connection.
#[derive(Debug)]
pub(crate) struct TlsWire {
    socket: TcpStream,
    /// The number of handshake bytes that may still arrive, or `None` once the handshake is done.
    handshake_left: Option<usize>,
}

impl TlsWire {
    pub(crate) fn before_handshake(socket: TcpStream) -> TlsWire {
        TlsWire {
            socket,
            handshake_left: Some(HANDSHAKE_LEN_MAX),
        }
    }

    /// Removes the limit on bytes, because the handshake is done.
    pub(crate) fn end_handshake(&mut self) {
        self.handshake_left = None;
    }
}

impl AsyncRead for TlsWire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled_before = buf.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(context, buf))?;
        if let Some(left) = &mut self.handshake_left {
            let came = buf.filled().len() - filled_before;
            *left = left
                .checked_sub(came)
                .ok_or_else(|| io::Error::other("the TLS handshake is too long"))?;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TlsWire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

/// The stream that carries the bytes of HTTP: a plain socket, or TLS over a socket.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// `true` if the stream buffers written bytes until it is flushed, as TLS does. It is a
    /// constant, so that a plain socket needs no check at run time.
    const KEEPS_BYTES: bool;
}

impl Socket for TcpStream {
    const KEEPS_BYTES: bool = false;
}

impl Socket for tokio_rustls::server::TlsStream<TlsWire> {
    const KEEPS_BYTES: bool = true;
}
