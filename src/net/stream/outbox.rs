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

use super::activity::Activity;
use super::socket::Socket;
use crate::service::{Charge, Payer};

/// Longer writes than this are not copied into the buffer.
const SHORT_LEN_MAX: usize = 8 * 1024;
/// The most that is buffered before it is sent.
const BUFFERED_LEN_MAX: usize = 64 * 1024;
/// What a connection holds, beyond what it has paid for, while its caller takes nothing: what is buffered here, short answers
/// that hyper has, and requests that came behind them.
const UNREAD_LEN: usize = 32 * 1024;
/// A longer write is part of an answer that is paid for by itself.
const PAID_LEN_MIN: usize = 16 * 1024;
/// The most that a connection writes of long answers each time it is polled. The kernel takes megabytes at once for a caller
/// who reads nothing, and whoever else is on this thread waits.
const LEN_AT_ONCE_MAX: usize = 128 * 1024;

/// The socket of a connection, and what is buffered for it.
// Locked, since both the stream, which hyper owns, and the connection around it write here; always in one task, so
// nobody waits for the lock.
#[derive(Debug)]
pub(in crate::net) struct Outbox<S> {
    contents: Mutex<Contents<S>>,
    activity: Arc<Activity>,
}

#[derive(Debug)]
struct Contents<S> {
    socket: S,
    buffered: Vec<u8>,
    /// How much of it is sent.
    sent: usize,
    /// How much more may be written before the connection is polled again.
    left_at_once: usize,
    /// For more than a short answer; without it no more is buffered.
    charge: Option<Charge>,
    /// For what is held while the socket takes nothing.
    unread: Option<Charge>,
    /// Whether that could not be paid for: the connection ends.
    is_given_up: bool,
}

impl<S: Socket> Outbox<S> {
    /// An empty one.
    pub(in crate::net) fn new(socket: S, activity: Arc<Activity>) -> Arc<Outbox<S>> {
        let contents = Contents {
            socket,
            buffered: Vec::new(),
            sent: 0,
            left_at_once: LEN_AT_ONCE_MAX,
            charge: None,
            unread: None,
            is_given_up: false,
        };
        Arc::new(Outbox {
            contents: Mutex::new(contents),
            activity,
        })
    }

    /// Sends all that is buffered, at the end of each poll of its connection. Whatever the socket does not take now, the same
    /// call sends when it wakes the task.
    pub(in crate::net) fn poll_send_all(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut contents = self.contents();
        contents.left_at_once = LEN_AT_ONCE_MAX;
        contents.poll_send_all(context, &self.activity.payer)
    }

    fn contents(&self) -> MutexGuard<'_, Contents<S>> {
        self.contents.lock().expect("no holder of this lock panics")
    }
}

impl<S: Socket> Contents<S> {
    fn poll_send_all(&mut self, context: &mut Context<'_>, payer: &Payer) -> Poll<io::Result<()>> {
        self.check()?;
        while self.sent < self.buffered.len() {
            let unsent = &self.buffered[self.sent..];
            match Pin::new(&mut self.socket).poll_write(context, unsent)? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(sent) => self.sent += sent,
                Poll::Pending => return self.wait(context, payer),
            }
        }
        if S::KEEPS_BYTES {
            ready!(Pin::new(&mut self.socket).poll_flush(context))?;
        }
        self.sent = 0;
        self.buffered.clear();
        // Thousands of connections may be idle from now on.
        self.buffered.shrink_to(SHORT_LEN_MAX);
        (self.charge, self.unread) = (None, None);
        Poll::Ready(Ok(()))
    }

    /// The socket takes nothing now. What is held until it does is paid for, or the connection ends.
    fn wait<T>(&mut self, context: &Context<'_>, payer: &Payer) -> Poll<io::Result<T>> {
        if self.unread.is_none() {
            self.unread = payer.pay_now(UNREAD_LEN).ok();
            self.is_given_up = self.unread.is_none();
            if self.is_given_up {
                // Whoever flushes does not look at errors: the next read or write has this one.
                context.waker().wake_by_ref();
            }
            self.check()?;
        }
        Poll::Pending
    }

    /// # Errors
    /// The connection was given up.
    fn check(&self) -> io::Result<()> {
        if self.is_given_up {
            Err(io::Error::other(
                "too little memory for what its caller does not read",
            ))
        } else {
            Ok(())
        }
    }

    /// Whether so much more may be buffered. The connection itself pays for a short answer.
    fn has_room_for(&mut self, len: usize, payer: &Payer) -> bool {
        let buffered = self.buffered.len() + len;
        if buffered > SHORT_LEN_MAX && buffered <= BUFFERED_LEN_MAX && self.charge.is_none() {
            self.charge = payer.try_pay(BUFFERED_LEN_MAX);
        }
        buffered <= SHORT_LEN_MAX || buffered <= BUFFERED_LEN_MAX && self.charge.is_some()
    }

    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
        payer: &Payer,
    ) -> Poll<io::Result<usize>> {
        let len = bufs.iter().map(|buf| buf.len()).sum();
        if len > SHORT_LEN_MAX || !self.has_room_for(len, payer) {
            ready!(self.poll_send_all(context, payer))?;
        }
        if len > SHORT_LEN_MAX {
            if self.left_at_once == 0 {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            return match self.poll_write_long(context, bufs, len) {
                Poll::Pending if len <= PAID_LEN_MIN => self.wait(context, payer),
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

/// The first bytes of what is to be written, at most `len`.
fn beginning_of<'a>(bufs: &'a [IoSlice<'_>], mut len: usize) -> Vec<IoSlice<'a>> {
    let beginning = |buf: &'a IoSlice<'_>| {
        let taken = &buf[..buf.len().min(len)];
        len -= taken.len();
        IoSlice::new(taken)
    };
    bufs.iter().map(beginning).collect()
}

/// The stream of an outbox: short writes stay there until they are sent together.
pub(in crate::net) struct CoalescingStream<S>(pub(in crate::net) Arc<Outbox<S>>);

impl<S: Socket> AsyncRead for CoalescingStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let contents = &mut *self.0.contents();
        contents.check()?;
        Pin::new(&mut contents.socket).poll_read(context, buf)
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
        self.0
            .contents()
            .poll_write(context, bufs, &self.0.activity.payer)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Ready at once: whoever drives the stream sends when it has nothing more to do.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.0.poll_send_all(context))?;
        Pin::new(&mut self.0.contents().socket).poll_shutdown(context)
    }
}

pin_project! {
    /// A connection over a [`CoalescingStream`] that sends what is in the outbox whenever it has to wait.
    pub(in crate::net) struct FlushWhenPending<C, S> {
        #[pin]
        pub(in crate::net) connection: C,
        pub(in crate::net) outbox: Arc<Outbox<S>>,
    }
}

impl<C: Future, S: Socket> Future for FlushWhenPending<C, S> {
    type Output = C::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<C::Output> {
        let this = self.project();
        let polled = this.connection.poll(context);
        if polled.is_pending() {
            // A socket that fails here fails the connection's next read, which it is waiting for; so does one that is given up.
            let _ = this.outbox.poll_send_all(context);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::task::Waker;

    use tokio::io::{AsyncReadExt, DuplexStream};

    use super::*;
    use crate::service::Load;

    impl Socket for DuplexStream {
        const KEEPS_BYTES: bool = false;
    }

    #[tokio::test]
    async fn a_long_answer_whose_socket_takes_all_of_it_is_written_in_parts_between_which_others_go_on()
     {
        const LEN: usize = 5 * LEN_AT_ONCE_MAX / 2;
        let (socket, mut caller) = tokio::io::duplex(2 * LEN);
        let payer = Load::default()
            .memory
            .payer(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let outbox = Outbox::new(socket, Activity::begin(payer));
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
}
