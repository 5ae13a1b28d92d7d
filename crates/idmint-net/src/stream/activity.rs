//! The current activity of a connection. The activity determines when the connection times out.
//!
//! hyper has only one timeout for a request head, which also runs between requests. With that
//! timeout, an idle connection would be closed after the 5 s that a head may take. It is therefore
//! disabled. Instead, bytes are tracked at the [stream](super::tracked_stream), and requests and
//! responses at the [handler](crate::connection).

use std::mem;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use idmint_service::BudgetOwner;

/// A snapshot of a connection's activity. If two snapshots are equal, the connection made no
/// progress between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) state: State,
    progress: u64,
}

/// The current state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// No request has begun.
    Idle,
    /// Reading a request head, whose first bytes have arrived. This state exists in HTTP/1 only,
    /// because this module cannot distinguish an HTTP/2 head from other frames.
    ReadingHead,
    /// Waiting for the handler of a request that has arrived completely. The caller can only wait,
    /// so this state has no timeout. The handler limits its own time.
    Handling,
    /// Working on at least one request, up to the last byte of its response.
    Answering,
}

/// The current activity of a connection. It is recorded by the byte stream, by the request handler,
/// and by the bodies of requests and responses.
// Ordering of all fields: `Relaxed`. The fields only determine when a connection is closed. A
// reader that sees an old value reads again when its timer fires.
#[derive(Debug)]
pub(crate) struct Activity {
    /// The owner of the memory budget for the connection. Its requests use the same budget, except
    /// for health probes and for requests that a trusted proxy forwards for another caller.
    pub(crate) owner: BudgetOwner,
    /// The number of requests whose responses are not complete.
    /// Written by: `RequestGuard` when made and dropped. Read by: `snapshot`, `record_bytes_read`.
    /// Tested by: `a_connection_is_answering_until_the_last_request_is_done`.
    requests_in_flight: AtomicUsize,
    /// The number of requests whose handler is still working.
    /// Written by: `RequestGuard` when made, and in `begin_answer`. Read by: `snapshot`.
    /// Tested by: `a_connection_is_handling_until_the_head_of_the_answer_is_ready`.
    requests_handled: AtomicUsize,
    /// `true` while a request head is being read. Bytes during an earlier request do not count.
    /// Written by: `record_bytes_read`, `begin_request`, `RequestGuard`. Read by: `snapshot`.
    /// Tested by: `a_connection_is_answering_until_the_last_request_is_done`.
    has_begun_head: AtomicBool,
    /// The number of progress steps so far. A step is, for example, a chunk of a body or 1 KiB of
    /// written bytes. The bytes of a request head are not progress, because they must not extend
    /// the head's deadline.
    /// Written by: `record_progress`. Read by: `snapshot`.
    /// Tested by: `a_connection_is_answering_until_the_last_request_is_done`.
    progress: AtomicU64,
    /// `true` if responses must have `Connection: close`. Once true, it stays true.
    /// Written by: `close_after_next_answer`. Read by: `closes_after_next_answer`.
    /// Tested by: `a_busy_connection_loses_no_request_while_draining`.
    closes_after_next: AtomicBool,
    /// `true` while the body of the last request is still arriving. In HTTP/2, it becomes `false`
    /// once the handler drops the body.
    /// Written by: `begin_request`, `RequestBody`. Read by: `leaves_body_unread`.
    /// Tested by: `an_answer_that_leaves_a_body_unread_says_so_on_every_route`.
    has_unread_body: AtomicBool,
    /// The number of bytes of the next request head that were read. Bytes that arrived in one read
    /// together with the end of the last head do not count.
    /// Written by: `record_bytes_read`, `begin_request`. Read by: `head_len`.
    /// Tested by: `a_long_head_is_paid_for`.
    head_len: AtomicUsize,
    /// `true` if too little memory is free for the request head that is being read.
    /// Written by: `refuse_head`. Read by: `is_head_refused`.
    /// Tested by: `a_long_head_without_memory_is_refused_with_a_response`.
    is_head_refused: AtomicBool,
    /// The number of written bytes, below [`PROGRESS_LEN`], that do not count as progress yet.
    /// Written by: `record_bytes_written`. Tested by: `a_drip_of_bytes_is_no_progress`.
    written: AtomicUsize,
    /// The time at which the connection became idle, in milliseconds on a clock that all
    /// connections of the process share.
    /// Written by: `record_idle`. Read by: `idle_since`.
    /// Tested by: `a_full_table_gives_up_the_one_idle_longest_and_none_that_works`.
    idle_since: AtomicU64,
    /// `true` if the connection was evicted to make room for another connection.
    /// Written by: `give_up`. Read by: `is_given_up`.
    /// Tested by: `a_full_table_gives_up_the_one_idle_longest_and_none_that_works`.
    given_up: AtomicBool,
}

/// The minimum number of bytes that the caller must take within an idle timeout while data waits to
/// be sent.
pub(crate) const PROGRESS_LEN: usize = 1024;

impl Activity {
    /// Returns the activity of a connection that was just accepted.
    pub(crate) fn begin(owner: BudgetOwner) -> Arc<Activity> {
        Arc::new(Activity::idle_since_then(owner, millis()))
    }

    pub(crate) fn idle_since_then(owner: BudgetOwner, millis: u64) -> Activity {
        Activity {
            owner,
            requests_in_flight: AtomicUsize::default(),
            requests_handled: AtomicUsize::default(),
            has_begun_head: AtomicBool::default(),
            progress: AtomicU64::default(),
            closes_after_next: AtomicBool::default(),
            has_unread_body: AtomicBool::default(),
            head_len: AtomicUsize::default(),
            is_head_refused: AtomicBool::default(),
            written: AtomicUsize::default(),
            idle_since: AtomicU64::new(millis),
            given_up: AtomicBool::default(),
        }
    }

    /// Returns the time at which the connection became idle, in milliseconds on a clock of this
    /// process. The time can be compared with the idle time of another connection, or passed to
    /// [`idle_for`].
    pub(crate) fn idle_since(&self) -> u64 {
        self.idle_since.load(Ordering::Relaxed)
    }

    /// Records that the connection is idle from now on.
    pub(crate) fn record_idle(&self) {
        self.idle_since.store(millis(), Ordering::Relaxed);
    }

    /// Marks the connection as evicted, because another connection needs its place.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes of the next request head that have been read. Bytes that came in
    /// one read together with the end of the previous head are not counted.
    pub(crate) fn head_len(&self) -> usize {
        self.head_len.load(Ordering::Relaxed)
    }

    /// Makes the connection end with a refusal, because too little memory is free for the request
    /// head. Does nothing and returns `false` if an earlier request is in flight, because the
    /// refusal would look like the response to that request.
    pub(crate) fn refuse_head(&self) -> bool {
        let is_refused = self.requests_in_flight.load(Ordering::Relaxed) == 0;
        self.is_head_refused.store(is_refused, Ordering::Relaxed);
        is_refused
    }

    pub(crate) fn is_head_refused(&self) -> bool {
        self.is_head_refused.load(Ordering::Relaxed)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let is_handling = self.requests_handled.load(Ordering::Relaxed) > 0;
        let state = if is_handling && !self.leaves_body_unread() {
            State::Handling
        } else if self.requests_in_flight.load(Ordering::Relaxed) > 0 {
            State::Answering
        } else if self.has_begun_head.load(Ordering::Relaxed) {
            State::ReadingHead
        } else {
            State::Idle
        };
        Snapshot {
            state,
            progress: self.progress.load(Ordering::Relaxed),
        }
    }

    /// Records that `len` bytes arrived from the caller.
    pub(crate) fn record_bytes_read(&self, len: usize) {
        if self.requests_in_flight.load(Ordering::Relaxed) == 0 {
            self.has_begun_head.store(true, Ordering::Relaxed);
        } else if self.has_unread_body.load(Ordering::Relaxed) {
            return self.record_progress();
        }
        self.head_len.fetch_add(len, Ordering::Relaxed);
    }

    /// Records that `len` bytes were written to the caller. Every [`PROGRESS_LEN`] bytes are one
    /// step of progress.
    pub(crate) fn record_bytes_written(&self, len: usize) {
        let written = self.written.fetch_add(len, Ordering::Relaxed) + len;
        if written >= PROGRESS_LEN {
            self.written.fetch_sub(written, Ordering::Relaxed);
            self.record_progress();
        }
    }

    pub(crate) fn record_progress(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    /// Requests that the connection be closed after one more response.
    pub(crate) fn close_after_next_answer(&self) {
        self.closes_after_next.store(true, Ordering::Relaxed);
    }

    pub(crate) fn closes_after_next_answer(&self) -> bool {
        self.closes_after_next.load(Ordering::Relaxed)
    }

    /// `true` if a response that begins now would leave bytes of the request unread. The connection
    /// cannot be reused then.
    pub(crate) fn leaves_body_unread(&self) -> bool {
        self.has_unread_body.load(Ordering::Relaxed)
    }

    /// Records that a request head is complete. Keep the returned guard until the last byte of the
    /// response has been handed to hyper.
    pub(crate) fn begin_request(self: &Arc<Self>, has_body: bool) -> RequestGuard {
        self.has_unread_body.store(has_body, Ordering::Relaxed);
        self.head_len.store(0, Ordering::Relaxed);
        self.has_begun_head.store(false, Ordering::Relaxed);
        self.requests_in_flight.fetch_add(1, Ordering::Relaxed);
        self.requests_handled.fetch_add(1, Ordering::Relaxed);
        self.record_progress();
        RequestGuard {
            activity: Arc::clone(self),
            is_handled: true,
        }
    }
}

/// The guard of a request whose response is not complete. Dropping the guard records that the
/// response is complete.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    activity: Arc<Activity>,
    /// `true` while the handler of the request is working.
    is_handled: bool,
}

impl RequestGuard {
    /// Records that the handler is done, and that its response is sent from now on.
    pub(crate) fn begin_answer(&mut self) {
        if mem::take(&mut self.is_handled) {
            self.requests_handled.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Deref for RequestGuard {
    type Target = Activity;

    fn deref(&self) -> &Activity {
        &self.activity
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.begin_answer();
        // The head of the next request may already have been read together with this request. Such
        // a head counts as begun only once more bytes of it arrive. Until then, the idle timeout
        // applies instead of the head timeout.
        self.activity.has_begun_head.store(false, Ordering::Relaxed);
        self.activity
            .requests_in_flight
            .fetch_sub(1, Ordering::Relaxed);
        self.activity.record_progress();
    }
}

/// The body of a request, wrapped to record each chunk that arrives and the end of the body.
pub(crate) struct RequestBody<B> {
    pub(crate) body: B,
    pub(crate) activity: Arc<Activity>,
    pub(crate) is_http1: bool,
}

impl<B> Drop for RequestBody<B> {
    fn drop(&mut self) {
        // In HTTP/2, the unread rest of a body is discarded with its stream, so clear the flag.
        // Otherwise the connection could time out while its other streams wait for their handlers.
        // In HTTP/1, the rest still precedes the next request, so the flag stays set.
        if !self.is_http1 {
            self.activity
                .has_unread_body
                .store(false, Ordering::Relaxed);
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for RequestBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.activity.record_progress();
        if frame.is_none() || self.body.is_end_stream() {
            self.activity
                .has_unread_body
                .store(false, Ordering::Relaxed);
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

/// Returns the time that has passed since `since`, which is a value of [`Activity::idle_since`].
pub(crate) fn idle_for(since: u64) -> Duration {
    Duration::from_millis(millis().saturating_sub(since))
}

/// Returns the current time on the clock of [`Activity::idle_since`].
fn millis() -> u64 {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(BEGAN.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use idmint_service::Load;

    fn begin() -> Arc<Activity> {
        Activity::begin(
            Load::default()
                .memory
                .owner(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        )
    }

    #[test]
    fn a_connection_is_answering_until_the_last_request_is_done() {
        let activity = begin();
        assert_eq!(activity.snapshot().state, State::Idle);
        activity.record_bytes_read(1);
        let begun = activity.snapshot();
        assert_eq!(begun.state, State::ReadingHead);
        activity.record_bytes_read(1);
        assert_eq!(
            activity.snapshot(),
            begun,
            "more bytes of a head do not prolong it"
        );

        let (first, second) = (activity.begin_request(false), activity.begin_request(true));
        let answering = activity.snapshot();
        assert_eq!(answering.state, State::Answering);
        activity.record_bytes_read(1);
        assert_ne!(
            activity.snapshot(),
            answering,
            "a body that comes in is progress"
        );
        drop(first);
        assert_eq!(activity.snapshot().state, State::Answering);
        drop(second);
        assert_eq!(activity.snapshot().state, State::Idle);
    }

    #[test]
    fn a_connection_is_handling_until_the_head_of_the_answer_is_ready() {
        let activity = begin();
        let (mut first, second) = (activity.begin_request(false), activity.begin_request(false));
        first.begin_answer();
        assert_eq!(activity.snapshot().state, State::Handling, "the second");
        drop(second);
        assert_eq!(activity.snapshot().state, State::Answering);
        drop(first);
        assert_eq!(activity.snapshot().state, State::Idle);
        let _request = activity.begin_request(true);
        assert_eq!(
            activity.snapshot().state,
            State::Answering,
            "its body can stall"
        );
    }

    #[test]
    fn a_refused_body_in_http2_does_not_end_the_handling_of_other_streams() {
        for (is_http1, state) in [(true, State::Answering), (false, State::Handling)] {
            let activity = begin();
            let _mint = activity.begin_request(false);
            let _refused = activity.begin_request(true);
            let body = RequestBody {
                body: (),
                activity: Arc::clone(&activity),
                is_http1,
            };
            assert_eq!(activity.snapshot().state, State::Answering);
            drop(body);
            assert_eq!(activity.snapshot().state, state);
        }
    }

    #[test]
    fn a_drip_of_bytes_is_no_progress() {
        let activity = begin();
        let _request = activity.begin_request(false);
        let begun = activity.snapshot();
        (1..PROGRESS_LEN).for_each(|_| activity.record_bytes_written(1));
        activity.record_bytes_read(1);
        assert_eq!(activity.snapshot(), begun, "neither a KiB nor a body");
        activity.record_bytes_written(1);
        assert_ne!(activity.snapshot(), begun);
    }
}
