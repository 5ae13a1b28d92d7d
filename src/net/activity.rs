//! What a connection is doing, as far as it matters for closing it.
//!
//! hyper has one timeout for a head, and it runs between requests too: an idle connection would be closed after the
//! 5 s that a head may take. So that timeout is off, and this is tracked instead: bytes at the [stream](super::stream),
//! requests and answers around the [handler](super::handler).

use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The activity at one moment; two equal snapshots mean that nothing moved in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) state: State,
    progress: u64,
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing: the next request has not begun.
    Idle,
    /// Reading a head that has begun. HTTP/1 only; in HTTP/2 a head cannot be told from other frames here.
    ReadingHead,
    /// Working on at least one request, up to the last byte of its answer.
    Answering,
}

/// What a connection is doing, recorded by its stream, its handler and its bodies.
// Ordering of all four: `Relaxed`. They decide only when an idle connection is closed; whoever sees an old value
// looks again when its timer fires.
#[derive(Debug, Default)]
pub(super) struct Activity {
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
}

impl Activity {
    pub(super) fn snapshot(&self) -> Snapshot {
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
    pub(super) fn record_bytes_read(&self) {
        if self.requests_in_flight.load(Ordering::Relaxed) > 0 {
            self.record_progress();
        } else {
            self.has_begun_head.store(true, Ordering::Relaxed);
        }
    }

    /// Something moved that shows the connection is in use.
    pub(super) fn record_progress(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks for the connection to be closed after one more answer.
    pub(super) fn close_after_next_answer(&self) {
        self.closes_after_next.store(true, Ordering::Relaxed);
    }

    pub(super) fn closes_after_next_answer(&self) -> bool {
        self.closes_after_next.load(Ordering::Relaxed)
    }

    /// A head is complete. The guard is kept until the last byte of the answer is on its way.
    pub(super) fn begin_request(self: &Arc<Self>) -> RequestGuard {
        self.has_begun_head.store(false, Ordering::Relaxed);
        self.requests_in_flight.fetch_add(1, Ordering::Relaxed);
        self.record_progress();
        RequestGuard { activity: Arc::clone(self) }
    }
}

/// One request whose answer is not complete, until it is dropped.
#[derive(Debug)]
pub(super) struct RequestGuard {
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

/// A body that records each piece that moves: that of a request holds the activity, that of an answer its guard.
pub(super) struct TrackedBody<B, A> {
    pub(super) body: B,
    pub(super) activity: A,
}

impl<B, A> Body for TrackedBody<B, A>
where
    B: Body<Data = Bytes> + Unpin,
    A: Deref<Target = Activity> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_ready() {
            self.activity.record_progress();
        }
        frame
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

        let (first, second) = (activity.begin_request(), activity.begin_request());
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
