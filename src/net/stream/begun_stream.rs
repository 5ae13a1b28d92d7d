//! A socket whose first bytes were read to tell the protocol, and are read once more.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::socket::Socket;

/// How many bytes tell the protocol.
pub(super) const FIRST_LEN: usize = 24;

/// A socket that gives its first bytes again.
pub(in crate::net) struct BegunStream {
    socket: TcpStream,
    first: [u8; FIRST_LEN],
    /// How many of the first bytes have come.
    len: usize,
    /// How many of them were given again.
    given: usize,
}

impl BegunStream {
    /// A socket of which the `len` bytes of `first` were read.
    pub(super) fn new(socket: TcpStream, first: [u8; FIRST_LEN], len: usize) -> BegunStream {
        BegunStream {
            socket,
            first,
            len,
            given: 0,
        }
    }
}

impl AsyncRead for BegunStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let again = (self.len - self.given).min(buf.remaining());
        if again == 0 {
            return Pin::new(&mut self.socket).poll_read(context, buf);
        }
        buf.put_slice(&self.first[self.given..][..again]);
        self.given += again;
        // Together with what came behind them, if that is there; a connection that has failed is at its end at the next read.
        let _ = Pin::new(&mut self.socket).poll_read(context, buf);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for BegunStream {
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
        bufs: &[IoSlice<'_>],
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

impl Socket for BegunStream {
    const KEEPS_BYTES: bool = false;
}
