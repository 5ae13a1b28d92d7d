//! Coalesces writes. Short responses are sent in one system call when the connection has no other
//! work.
//!
//! For a short response, the system call costs more than all other work. A caller that pipelines
//! requests gets all its responses with one call. hyper has `pipeline_flush` for this purpose. In
//! version 1.12, however, that option holds responses back while unread bytes are buffered. The
//! responses 400 and 431 are then never sent, and the write buffer is unbounded.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::activity::Activity;
use super::tls_wire::Socket;
use idmint_service::{BudgetOwner, MemoryReservation};

/// The maximum number of bytes per read from an idle connection, which has released its buffers.
const FIRST_LEN: usize = 64;
/// The maximum length of a write that is copied into the buffer, in bytes.
const SHORT_LEN_MAX: usize = 8 * 1024;
/// The maximum number of bytes that are buffered before they are sent.
const BUFFERED_LEN_MAX: usize = 64 * 1024;
/// The additional memory, in bytes, that a connection needs while its caller does not read the
/// responses. The memory holds the bytes in this outbox, short responses in hyper, and the next
/// requests, which wait for those responses to be sent.
const UNREAD_LEN: usize = 32 * 1024;
/// A write that is longer than this, in bytes, is part of a long response, for which memory was
/// already reserved.
const PAID_LEN_MIN: usize = 16 * 1024;
/// The maximum number of bytes of long responses that a connection writes in one poll. Without this
/// limit, the kernel would accept megabytes for a caller that does not read, while other tasks of
/// this thread wait.
const LEN_AT_ONCE_MAX: usize = 64 * 1024;
/// The number of bytes after which an HTTP/1 connection reads no more in one poll. Without this
/// limit, a caller that sends a long body could keep this thread busy for milliseconds.
const READ_AT_ONCE_MAX: usize = 32 * 1024;

/// The socket of a connection, with its write buffer.
// The socket is behind a lock, because hyper's stream and the connection around it both write to
// the socket. Both are in one task, so the lock is never contended.
#[derive(Debug)]
pub(crate) struct Outbox<S> {
    contents: Mutex<Contents<S>>,
    activity: Arc<Activity>,
}

#[derive(Debug)]
struct Contents<S> {
    socket: S,
    buffered: Vec<u8>,
    /// The number of bytes at the start of `buffered` that are already sent.
    sent: usize,
    /// The number of bytes of long responses that the connection may still write in the current
    /// poll. At most [`LEN_AT_ONCE_MAX`].
    left_at_once: usize,
    /// The number of bytes that the connection may still read in the current poll. At most
    /// [`READ_AT_ONCE_MAX`].
    left_to_read: usize,
    /// The memory reservation for more than `SHORT_LEN_MAX` buffered bytes. `None` until that many
    /// bytes are buffered.
    reservation: Option<MemoryReservation>,
    /// The memory reservation for the bytes that the connection holds while the socket accepts no
    /// more data.
    unread: Option<MemoryReservation>,
    /// `true` if no memory for `unread` could be reserved, so that the connection must end.
    is_given_up: bool,
    /// `true` if the last write could not complete, so hyper still holds unwritten bytes.
    is_stalled: bool,
    /// `true` once the stream is shut down.
    is_closing: bool,
}

impl<S: Socket> Outbox<S> {
    /// Returns an empty outbox.
    pub(crate) fn new(socket: S, activity: Arc<Activity>) -> Arc<Outbox<S>> {
        let contents = Contents {
            socket,
            buffered: Vec::new(),
            sent: 0,
            left_at_once: LEN_AT_ONCE_MAX,
            left_to_read: READ_AT_ONCE_MAX,
            reservation: None,
            unread: None,
            is_given_up: false,
            is_stalled: false,
            is_closing: false,
        };
        Arc::new(Outbox {
            contents: Mutex::new(contents),
            activity,
        })
    }

    /// Sends all buffered bytes. Called at the end of each poll of the connection. If the socket
    /// does not accept all bytes, the task is woken later and the next call continues.
    pub(crate) fn poll_send_all(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut contents = self.contents();
        contents.left_at_once = LEN_AT_ONCE_MAX;
        contents.left_to_read = READ_AT_ONCE_MAX;
        contents.poll_send_all(context, &self.activity.owner)
    }

    /// `true` if all written bytes are sent, the stream is open, and no request body is left
    /// unread.
    pub(crate) fn has_nothing_to_do(&self) -> bool {
        let contents = self.contents();
        let is_sent = contents.buffered.is_empty() && !contents.is_stalled;
        let is_open = !contents.is_closing && !contents.is_given_up;
        is_sent && is_open && !self.activity.leaves_body_unread()
    }

    /// Releases the write buffer, and waits for the first bytes that the caller sends. Returns an
    /// empty vector if the caller has closed the connection.
    pub(crate) async fn read_some(&self) -> io::Result<Vec<u8>> {
        self.contents().buffered = Vec::new();
        let mut first = [0; FIRST_LEN];
        poll_fn(|context| {
            let mut buf = ReadBuf::new(&mut first);
            ready!(Pin::new(&mut self.contents().socket).poll_read(context, &mut buf))?;
            Poll::Ready(Ok(buf.filled().to_vec()))
        })
        .await
    }

    fn contents(&self) -> MutexGuard<'_, Contents<S>> {
        self.contents.lock().expect("no holder of this lock panics")
    }
}

impl<S: Socket> Contents<S> {
    fn poll_send_all(
        &mut self,
        context: &mut Context<'_>,
        owner: &BudgetOwner,
    ) -> Poll<io::Result<()>> {
        self.check()?;
        while self.sent < self.buffered.len() {
            let unsent = &self.buffered[self.sent..];
            match Pin::new(&mut self.socket).poll_write(context, unsent)? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(sent) => self.sent += sent,
                Poll::Pending => return self.wait(context, owner),
            }
        }
        if S::KEEPS_BYTES {
            ready!(Pin::new(&mut self.socket).poll_flush(context))?;
        }
        self.sent = 0;
        self.buffered.clear();
        // Release most of the memory, because thousands of connections may be idle from now on.
        self.buffered.shrink_to(SHORT_LEN_MAX);
        (self.reservation, self.unread) = (None, None);
        Poll::Ready(Ok(()))
    }

    /// Returns `Pending`, because the socket accepts no more bytes for now. First reserves memory
    /// for the bytes that the connection holds in the meantime. If that fails, the connection ends.
    fn wait<T>(&mut self, context: &Context<'_>, owner: &BudgetOwner) -> Poll<io::Result<T>> {
        if self.unread.is_none() {
            self.unread = owner.reserve_now(UNREAD_LEN).ok();
            self.is_given_up = self.unread.is_none();
            if self.is_given_up {
                // A flush ignores the error of this method. So wake the task, because its next read
                // or write then returns the error.
                context.waker().wake_by_ref();
            }
            self.check()?;
        }
        Poll::Pending
    }

    /// Checks that the connection was not given up for lack of memory.
    ///
    /// # Errors
    /// Returns an error if the connection was given up.
    fn check(&self) -> io::Result<()> {
        if self.is_given_up {
            Err(io::Error::other(
                "the connection was closed, because memory is short and its client does not read the response",
            ))
        } else {
            Ok(())
        }
    }

    /// `true` if `len` more bytes may be buffered. Up to `SHORT_LEN_MAX` bytes are covered by the
    /// connection's own memory reservation.
    fn has_room_for(&mut self, len: usize, owner: &BudgetOwner) -> bool {
        let buffered = self.buffered.len() + len;
        if buffered > SHORT_LEN_MAX && buffered <= BUFFERED_LEN_MAX && self.reservation.is_none() {
            self.reservation = owner.try_reserve(BUFFERED_LEN_MAX);
        }
        buffered <= SHORT_LEN_MAX || buffered <= BUFFERED_LEN_MAX && self.reservation.is_some()
    }

    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
        owner: &BudgetOwner,
    ) -> Poll<io::Result<usize>> {
        let len = bufs.iter().map(|buf| buf.len()).sum();
        if len > SHORT_LEN_MAX || !self.has_room_for(len, owner) {
            ready!(self.poll_send_all(context, owner))?;
        }
        if len > SHORT_LEN_MAX {
            if self.left_at_once == 0 {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            return match self.poll_write_long(context, bufs, len) {
                Poll::Pending if len <= PAID_LEN_MIN => self.wait(context, owner),
                polled => polled,
            };
        }
        bufs.iter()
            .for_each(|buf| self.buffered.extend_from_slice(buf));
        Poll::Ready(Ok(len))
    }

    fn poll_write_long(
        &mut self,
        context: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
        len: usize,
    ) -> Poll<io::Result<usize>> {
        let socket = Pin::new(&mut self.socket);
        let written = ready!(if len <= self.left_at_once {
            socket.poll_write_vectored(context, bufs)
        } else {
            socket.poll_write_vectored(context, &beginning_of(bufs, self.left_at_once))
        })?;
        self.left_at_once -= written;
        Poll::Ready(Ok(written))
    }
}

/// Returns slices of the first `len` bytes of `bufs`, or of all bytes if `bufs` has fewer.
fn beginning_of<'a>(bufs: &'a [IoSlice<'_>], mut len: usize) -> Vec<IoSlice<'a>> {
    let beginning = |buf: &'a IoSlice<'_>| {
        let taken = &buf[..buf.len().min(len)];
        len -= taken.len();
        IoSlice::new(taken)
    };
    bufs.iter().map(beginning).collect()
}

/// A stream that writes to an `Outbox`, the write buffer of a connection. Short writes stay in the
/// buffer until they are sent together.
pub(crate) struct CoalescingStream<S>(pub(crate) Arc<Outbox<S>>);

impl<S: Socket> AsyncRead for CoalescingStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let contents = &mut *self.0.contents();
        contents.check()?;
        if contents.left_to_read == 0 {
            // Reset the limit here as well, because a closing connection does not call
            // `poll_send_all`. Its stream only discards the rest of a request body.
            contents.left_to_read = READ_AT_ONCE_MAX;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let filled_before = buf.filled().len();
        ready!(Pin::new(&mut contents.socket).poll_read(context, buf))?;
        let read = buf.filled().len() - filled_before;
        contents.left_to_read = contents.left_to_read.saturating_sub(read);
        Poll::Ready(Ok(()))
    }
}

impl<S: Socket> AsyncWrite for CoalescingStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let contents = &mut *self.0.contents();
        let written = contents.poll_write(context, bufs, &self.0.activity.owner);
        contents.is_stalled = written.is_pending();
        written
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Returns `Ready` at once, because [`FlushWhenPending`] sends the bytes when the connection
    /// has no other work.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.contents().is_closing = true;
        ready!(self.0.poll_send_all(context))?;
        Pin::new(&mut self.0.contents().socket).poll_shutdown(context)
    }
}

pin_project! {
    /// A connection over a [`CoalescingStream`]. Whenever the connection has no other work, the
    /// bytes in its write buffer, the outbox, are sent.
    pub(crate) struct FlushWhenPending<C, S> {
        #[pin]
        pub(crate) connection: C,
        pub(crate) outbox: Arc<Outbox<S>>,
    }
}

impl<C: Future, S: Socket> Future for FlushWhenPending<C, S> {
    type Output = C::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<C::Output> {
        let this = self.project();
        let polled = this.connection.poll(context);
        if polled.is_pending() {
            // Ignore an error here. If the socket has failed or the connection was given up, the
            // next read of the connection returns the error.
            let _ = this.outbox.poll_send_all(context);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::task::Waker;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;
    use idmint_service::Load;

    impl Socket for DuplexStream {
        const KEEPS_BYTES: bool = false;
    }

    #[tokio::test]
    async fn a_long_answer_whose_socket_takes_all_of_it_is_written_in_parts_between_which_others_go_on()
     {
        const LEN: usize = 5 * LEN_AT_ONCE_MAX / 2;
        let (socket, mut caller) = tokio::io::duplex(2 * LEN);
        let owner = Load::default()
            .memory
            .owner(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let outbox = Outbox::new(socket, Activity::begin(owner));
        let mut stream = CoalescingStream(Arc::clone(&outbox));
        let (answer, mut context) = (vec![7; LEN], Context::from_waker(Waker::noop()));
        let (mut written, mut polls) = (0, Vec::new());
        while written < LEN {
            let begun = written;
            while written < LEN
                && let Poll::Ready(more) = {
                    let (first, second) = answer[written..].split_at((LEN - written).min(9_000));
                    let bufs = [IoSlice::new(first), IoSlice::new(second)];
                    Pin::new(&mut stream).poll_write_vectored(&mut context, &bufs)
                }
            {
                written += more.expect("the socket takes it");
            }
            polls.push(written - begun);
            assert!(outbox.poll_send_all(&mut context).is_ready());
        }
        assert_eq!(
            polls,
            [LEN_AT_ONCE_MAX, LEN_AT_ONCE_MAX, LEN_AT_ONCE_MAX / 2]
        );
        let mut received = vec![0; LEN];
        caller
            .read_exact(&mut received)
            .await
            .expect("it is all there");
        assert!(received == answer);
    }

    #[tokio::test]
    async fn a_long_body_is_read_in_parts_between_which_others_go_on() {
        const LEN: usize = 5 * READ_AT_ONCE_MAX / 2;
        let (socket, mut caller) = tokio::io::duplex(LEN);
        caller.write_all(&vec![7; LEN]).await.expect("it fits");
        let owner = Load::default()
            .memory
            .owner(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let outbox = Outbox::new(socket, Activity::begin(owner));
        let mut stream = CoalescingStream(Arc::clone(&outbox));
        let mut context = Context::from_waker(Waker::noop());
        let mut polls = Vec::new();
        for _ in 0..3 {
            let mut read = 0;
            loop {
                let mut buffer = [0; 8 * 1024];
                let mut buf = ReadBuf::new(&mut buffer);
                match Pin::new(&mut stream).poll_read(&mut context, &mut buf) {
                    Poll::Ready(polled) => polled.expect("the socket works"),
                    Poll::Pending => break,
                }
                read += buf.filled().len();
            }
            polls.push(read);
        }
        let half = READ_AT_ONCE_MAX / 2;
        assert_eq!(polls, [READ_AT_ONCE_MAX, READ_AT_ONCE_MAX, half]);
    }
}
