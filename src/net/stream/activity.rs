//! What a connection is doing, as far as it matters for closing it.
//!
//! hyper has one timeout for a head, and it runs between requests too: an idle connection would be closed after the
//! 5 s that a head may take. So that timeout is off, and this is tracked instead: bytes at the [stream](super::tracked_stream),
//! requests and answers around the [handler](crate::net::connection).

use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::receipts::Receipts;
use crate::http::AnswerBody;

/// The activity at one moment; two equal snapshots mean that nothing moved in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::net) struct Snapshot {
    pub(in crate::net) state: State,
    progress: u64,
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::net) enum State {
    /// Nothing: the next request has not begun.
    Idle,
    /// Reading a head that has begun. HTTP/1 only; in HTTP/2 a head cannot be told from other frames here.
    ReadingHead,
    /// Working on at least one request, up to the last byte of its answer.
    Answering,
}

/// What a connection is doing, recorded by its stream, its handler and its bodies.
// Ordering of all five: `Relaxed`. They decide only when an idle connection is closed; whoever sees an old value
// looks again when its timer fires.
#[derive(Debug, Default)]
pub(in crate::net) struct Activity {
    /// Requests whose answers are not complete.
    /// Written by: `RequestGuard` when made and dropped. Read by: `snapshot`, `record_bytes_read`.
    /// Tested by: `a_connection_is_answering_until_the_last_request_is_done`.
    requests_in_flight: AtomicUsize,
    /// Whether bytes came since the last answer was complete.
    /// Written by: `record_bytes_read`, `RequestGuard`. Read by: `snapshot`. Tested by: as above.
    has_begun_head: AtomicBool,
    /// Only grows: by one for whatever moves, except the bytes of a head, which must not prolong it.
    /// Written by: `record_progress`. Read by: `snapshot`. Tested by: as above.
    progress: AtomicU64,
    /// Whether answers must say `Connection: close`; once true, it stays so.
    /// Written by: `close_after_next_answer`. Read by: `closes_after_next_answer`.
    /// Tested by: `a_busy_connection_loses_no_request_while_draining`.
    closes_after_next: AtomicBool,
    /// Whether the body of the last request, in HTTP/1, is still being sent.
    /// Written by: `begin_request`, `RequestBody`. Read by: `leaves_body_unread`.
    /// Tested by: `an_answer_that_leaves_a_body_unread_says_so_on_every_route`.
    has_unread_body: AtomicBool,
    /// What is owed for ids that the kernel does not have yet.
    pub(in crate::net) receipts: Receipts,
}

impl Activity {
    pub(in crate::net) fn snapshot(&self) -> Snapshot {
        let state = if self.requests_in_flight.load(Ordering::Relaxed) > 0 {
            State::Answering
        } else if self.has_begun_head.load(Ordering::Relaxed) {
            State::ReadingHead
        } else {
            State::Idle
        };
        Snapshot { state, progress: self.progress.load(Ordering::Relaxed) }
    }

    /// Bytes came from the caller.
    pub(in crate::net) fn record_bytes_read(&self) {
        if self.requests_in_flight.load(Ordering::Relaxed) > 0 {
            self.record_progress();
        } else {
            self.has_begun_head.store(true, Ordering::Relaxed);
        }
    }

    /// Something moved that shows the connection is in use.
    pub(in crate::net) fn record_progress(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks for the connection to be closed after one more answer.
    pub(in crate::net) fn close_after_next_answer(&self) {
        self.closes_after_next.store(true, Ordering::Relaxed);
    }

    pub(in crate::net) fn closes_after_next_answer(&self) -> bool {
        self.closes_after_next.load(Ordering::Relaxed)
    }

    /// Whether an answer that begins now leaves bytes of its request on the connection, which then cannot be used again.
    pub(in crate::net) fn leaves_body_unread(&self) -> bool {
        self.has_unread_body.load(Ordering::Relaxed)
    }

    /// A head is complete. The guard is kept until the last byte of the answer is on its way.
    pub(in crate::net) fn begin_request(self: &Arc<Self>, has_body: bool) -> RequestGuard {
        self.has_unread_body.store(has_body, Ordering::Relaxed);
        self.has_begun_head.store(false, Ordering::Relaxed);
        self.requests_in_flight.fetch_add(1, Ordering::Relaxed);
        self.record_progress();
        RequestGuard { activity: Arc::clone(self) }
    }
}

/// One request whose answer is not complete, until it is dropped.
#[derive(Debug)]
pub(in crate::net) struct RequestGuard {
    activity: Arc<Activity>,
}

impl Deref for RequestGuard {
    type Target = Activity;

    fn deref(&self) -> &Activity {
        &self.activity
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        // The head of a next request may be begun already, read together with this one. It then counts as not begun
        // until more of it comes: at worst it has the idle timeout first, as any connection has.
        self.activity.has_begun_head.store(false, Ordering::Relaxed);
        self.activity.requests_in_flight.fetch_sub(1, Ordering::Relaxed);
        self.activity.record_progress();
    }
}

/// The body of a request: records each piece that comes, and the end.
pub(in crate::net) struct RequestBody<B> {
    pub(in crate::net) body: B,
    pub(in crate::net) activity: Arc<Activity>,
}

impl<B: Body<Data = Bytes> + Unpin> Body for RequestBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.activity.record_progress();
        if frame.is_none() || self.body.is_end_stream() {
            self.activity.has_unread_body.store(false, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer: records each piece that goes, and what is owed for it. The request is in flight until it is
/// dropped.
pub(in crate::net) struct TrackedAnswer {
    pub(in crate::net) body: AnswerBody,
    pub(in crate::net) request: RequestGuard,
}

impl Body for TrackedAnswer {
    type Data = Bytes;
    type Error = <AnswerBody as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        this.request.record_progress();
        if let Some(receipt) = this.body.take_receipt() {
            this.request.receipts.take(receipt);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_answering_until_the_last_request_is_done() {
        let activity = Arc::new(Activity::default());
        assert_eq!(activity.snapshot().state, State::Idle);
        activity.record_bytes_read();
        let begun = activity.snapshot();
        assert_eq!(begun.state, State::ReadingHead);
        activity.record_bytes_read();
        assert_eq!(activity.snapshot(), begun, "more bytes of a head do not prolong it");

        let (first, second) = (activity.begin_request(false), activity.begin_request(false));
        let answering = activity.snapshot();
        assert_eq!(answering.state, State::Answering);
        activity.record_bytes_read();
        assert_ne!(activity.snapshot(), answering, "a body that comes in is progress");
        drop(first);
        assert_eq!(activity.snapshot().state, State::Answering);
        drop(second);
        assert_eq!(activity.snapshot().state, State::Idle);
    }
}
