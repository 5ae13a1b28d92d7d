//! A connection's byte stream: tracks what moves, and closes so that the last answer arrives.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::activity::Activity;
use super::frame_allowance::FrameAllowance;
use super::head_payment::HeadPayment;

/// How long a closed connection is still read from, so that the caller can read the answer.
pub(in crate::net) const LINGER_MAX: Duration = Duration::from_secs(2);

/// A stream that records what moves in the connection's activity.
///
/// Shutting it down also reads, and throws away, what the caller still sends: closing a socket with unread bytes makes
/// the kernel reset the connection, and the reset destroys an answer such as 413 before the caller has read it.
pub(in crate::net) struct TrackedStream<S> {
    stream: S,
    tracking: Tracking,
    lingering: Option<Pin<Box<Sleep>>>,
}

/// What is recorded of the bytes of a stream.
pub(in crate::net) enum Tracking {
    /// Nothing.
    Nothing,
    /// HTTP/2: how many frames ask for nothing. That bytes move says nothing there.
    Frames(FrameAllowance),
    /// HTTP/1: that bytes move.
    Bytes(Arc<Activity>, HeadPayment),
}

impl<S> TrackedStream<S> {
    pub(in crate::net) fn new(stream: S, tracking: Tracking) -> Self {
        Self {
            stream,
            tracking,
            lingering: None,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TrackedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled_before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buf))?;
        let came = &buf.filled()[filled_before..];
        Poll::Ready(match &mut self.tracking {
            Tracking::Bytes(activity, payment) if !came.is_empty() => {
                activity.record_bytes_read(came.len());
                payment.pay_for(activity.head_len(), &activity.payer)
            }
            Tracking::Frames(allowance) => allowance.spend_on(came),
            Tracking::Nothing | Tracking::Bytes(..) => Ok(()),
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TrackedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, buf));
        self.record_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, bufs));
        self.record_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.lingering.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
        }
        let end = this
            .lingering
            .get_or_insert_with(|| Box::pin(sleep(LINGER_MAX)));
        if end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut discarded = [0; 4096];
        loop {
            let mut buf = ReadBuf::new(&mut discarded);
            match ready!(Pin::new(&mut this.stream).poll_read(context, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => {}
                // The caller has closed as well, or has gone.
                Ok(()) | Err(_) => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl<S> TrackedStream<S> {
    fn record_write(&mut self, written: io::Result<usize>) -> Poll<io::Result<usize>> {
        match (&written, &mut self.tracking) {
            (Ok(len @ 1..), Tracking::Bytes(activity, _)) => activity.record_bytes_written(*len),
            (Ok(len @ 1..), Tracking::Frames(allowance)) => allowance.refill_for_bytes(*len),
            _ => {}
        }
        Poll::Ready(written)
    }
}
