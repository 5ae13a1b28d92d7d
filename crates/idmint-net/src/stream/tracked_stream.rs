//! The byte stream of a connection. The stream records what is read and written, for the
//! connection's timeouts. When the stream closes, the caller can still read the last response.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::activity::Activity;
use super::frame_allowance::FrameAllowance;
use super::head_reservation::HeadPayment;

/// The maximum time for which a closed connection still reads and discards incoming bytes, so that
/// the caller can read the response.
pub(crate) const LINGER_MAX: Duration = Duration::from_secs(2);

/// A stream that records its reads and writes in the connection's activity, or limits its HTTP/2
/// frames.
///
/// Shutting the stream down also reads and discards the bytes that the caller still sends. If a
/// socket is closed with unread bytes, the kernel resets the connection. The reset could destroy a
/// response such as 413 before the caller has read it.
pub(crate) struct TrackedStream<S> {
    stream: S,
    /// Bytes that were already read from the stream, for example to detect the protocol. The next
    /// reads return them again.
    unread: Bytes,
    tracking: Tracking,
    lingering: Option<Pin<Box<Sleep>>>,
}

/// The way in which a stream tracks its bytes.
pub(crate) enum Tracking {
    /// No tracking.
    Nothing,
    /// HTTP/2: counts frames that carry no request, such as PING. Bytes are not recorded, because
    /// in HTTP/2 they are no sign of progress.
    Frames(FrameAllowance),
    /// HTTP/1: records read and written bytes, and reserves more memory for a long request head.
    Bytes(Arc<Activity>, HeadPayment),
}

impl<S> TrackedStream<S> {
    /// Returns a stream that reads `unread` and then the bytes of `stream`.
    pub(crate) fn new(stream: S, unread: Bytes, tracking: Tracking) -> Self {
        Self {
            stream,
            unread,
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
        let this = &mut *self;
        if this.unread.is_empty() {
            ready!(Pin::new(&mut this.stream).poll_read(context, buf))?;
        } else {
            let len = this.unread.len().min(buf.remaining());
            buf.put_slice(&this.unread.split_to(len));
            // Append more bytes if the stream has some ready. If the connection failed, the next
            // read returns the error.
            let _ = Pin::new(&mut this.stream).poll_read(context, buf);
        }
        let came = &buf.filled()[filled_before..];
        Poll::Ready(match &mut this.tracking {
            Tracking::Bytes(activity, payment) if !came.is_empty() => {
                activity.record_bytes_read(came.len());
                let reserved = payment.reserve_for(activity.head_len(), &activity.owner);
                if reserved.is_err() && activity.refuse_head() {
                    // The connection ends after this poll. After an error, hyper could close the
                    // stream before the refusal is written.
                    return Poll::Pending;
                }
                reserved
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
        let mut discarded = [0; 16 * 1024];
        loop {
            let mut buf = ReadBuf::new(&mut discarded);
            match ready!(Pin::new(&mut this.stream).poll_read(context, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => {}
                // The caller has closed its side as well, or has disconnected.
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
