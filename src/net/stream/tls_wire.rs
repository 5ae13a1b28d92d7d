//! The socket below TLS, which reads no more than is paid for until the handshake is done.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// No handshake is longer on the way in, in bytes: most of one is the certificates of the client.
///
/// The TLS library joins the parts of a message before it looks at it, and would keep 64 KiB for anybody.
const HANDSHAKE_LEN_MAX: usize = 24 * 1024;

/// The encrypted side of a connection.
#[derive(Debug)]
pub(in crate::net) struct TlsWire {
    socket: TcpStream,
    /// How much of the handshake may still come; `None` once it is done.
    handshake_left: Option<usize>,
}

impl TlsWire {
    pub(in crate::net) fn before_handshake(socket: TcpStream) -> TlsWire {
        TlsWire {
            socket,
            handshake_left: Some(HANDSHAKE_LEN_MAX),
        }
    }

    /// The handshake is done: any number of bytes may come.
    pub(in crate::net) fn end_handshake(&mut self) {
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
                .ok_or_else(|| io::Error::other("the handshake is too long"))?;
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
