//! Coalesced writes: short answers leave in one system call when the connection has nothing more to do.
//!
//! A caller that asks many things at once, without waiting for each answer, is then answered with one system call for
//! all of them, which costs more than everything else about a short answer. hyper can do that too (`pipeline_flush`),
//! but version 1.12 then holds answers back for as long as unread bytes are buffered, so that 400 and 431 are never
//! sent, and lifts the bound on its write buffer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Longer writes than this are not copied into the buffer.
const SHORT_LEN_MAX: usize = 8 * 1024;
/// The most that is buffered before it is sent.
const BUFFERED_LEN_MAX: usize = 64 * 1024;

/// What is buffered, and the socket it goes to.
// Locked, since both the stream, which hyper owns, and the connection around it write here; always in one task, so
// nobody waits for the lock.
#[derive(Debug)]
pub(super) struct Outbox(Mutex<Contents>);

#[derive(Debug)]
struct Contents {
    socket: OwnedWriteHalf,
    buffered: Vec<u8>,
    /// How much of it is sent.
    sent: usize,
}

impl Outbox {
    /// Sends all that is buffered. Whatever the socket does not take now, the same call sends when it wakes the task.
    pub(super) fn poll_send_all(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.contents().poll_send_all(context)
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

impl Contents {
    fn poll_send_all(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.buffered.len() {
            let unsent = &self.buffered[self.sent..];
            match ready!(Pin::new(&mut self.socket).poll_write(context, unsent))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.sent += sent,
            }
        }
        self.sent = 0;
        self.buffered.clear();
        // Thousands of connections may be idle from now on.
        self.buffered.shrink_to(SHORT_LEN_MAX);
        Poll::Ready(Ok(()))
    }

    fn poll_write(&mut self, context: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let len = bufs.iter().map(|buf| buf.len()).sum();
        if len > SHORT_LEN_MAX || self.buffered.len() + len > BUFFERED_LEN_MAX {
            ready!(self.poll_send_all(context))?;
        }
        if len > SHORT_LEN_MAX {
            return Pin::new(&mut self.socket).poll_write_vectored(context, bufs);
        }
        bufs.iter().for_each(|buf| self.buffered.extend_from_slice(buf));
        Poll::Ready(Ok(len))
    }
}

/// A socket whose short writes go to an outbox.
pub(super) struct CoalescingStream {
    incoming: OwnedReadHalf,
    outbox: Arc<Outbox>,
}

impl CoalescingStream {
    /// The stream, and the outbox that whoever drives it has to send from.
    pub(super) fn new(socket: TcpStream) -> (Self, Arc<Outbox>) {
        let (incoming, socket) = socket.into_split();
        let outbox = Arc::new(Outbox(Mutex::new(Contents { socket, buffered: Vec::new(), sent: 0 })));
        (Self { incoming, outbox: Arc::clone(&outbox) }, outbox)
    }
}

impl AsyncRead for CoalescingStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.incoming).poll_read(context, buf)
    }
}

impl AsyncWrite for CoalescingStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.outbox.contents().poll_write(context, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Ready at once: whoever drives the stream sends when it has nothing more to do.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut contents = self.outbox.contents();
        ready!(contents.poll_send_all(context))?;
        Pin::new(&mut contents.socket).poll_shutdown(context)
    }
}

pin_project! {
    /// A connection over a [`CoalescingStream`] that sends what is in the outbox whenever it has to wait.
    pub(super) struct FlushWhenPending<C> {
        #[pin]
        pub(super) connection: C,
        pub(super) outbox: Arc<Outbox>,
    }
}

impl<C: Future> Future for FlushWhenPending<C> {
    type Output = C::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<C::Output> {
        let this = self.project();
        let polled = this.connection.poll(context);
        if polled.is_pending() {
            // A socket that fails here fails the connection's next read, which it is waiting for.
            let _ = this.outbox.poll_send_all(context);
        }
        polled
    }
}
