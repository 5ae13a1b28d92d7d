//! What a connection is doing, as far as it matters for closing it.
//!
//! hyper has one timeout for a head, and it runs between requests too: an idle connection would be closed after the
//! 5 s that a head may take. So that timeout is off, and this is tracked instead: bytes at the [stream](super::tracked_stream),
//! requests and answers around the [handler](crate::net::connection).

use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use crate::service::Payer;

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
// Ordering of all of them: `Relaxed`. They decide only when a connection is closed; whoever sees an old value
// looks again when its timer fires.
#[derive(Debug)]
pub(in crate::net) struct Activity {
    /// Pays for the connection, and for its requests where its peer speaks for itself.
    pub(in crate::net) payer: Payer,
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
    /// Bytes that came since the last request began: of a head, or of the next one.
    /// Written by: `record_bytes_read`, `begin_request`. Read by: `head_len`. Tested by: `a_long_head_is_paid_for`.
    head_len: AtomicUsize,
    /// Bytes written that do not make a step of progress yet.
    /// Written by: `record_bytes_written`. Tested by: `a_drip_of_bytes_is_no_progress`.
    written: AtomicUsize,
    /// Since when nothing has been going on, in milliseconds since this process began to look.
    /// Written by: `record_idle`. Read by: `idle_since`. Tested by: `a_full_table_gives_up_the_one_idle_longest_and_none_that_works`.
    idle_since: AtomicU64,
    /// Whether it was given up to make room for another.
    /// Written by: `give_up`. Read by: `is_given_up`. Tested by: as above.
    given_up: AtomicBool,
}

/// What must move within an idle timeout while there is something to send, in bytes.
pub(in crate::net) const PROGRESS_LEN: usize = 1024;

impl Activity {
    /// That of a connection just accepted.
    pub(in crate::net) fn begin(payer: Payer) -> Arc<Activity> {
        Arc::new(Activity::idle_since_then(payer, millis()))
    }

    pub(in crate::net) fn idle_since_then(payer: Payer, millis: u64) -> Activity {
        Activity {
            payer,
            requests_in_flight: AtomicUsize::default(),
            has_begun_head: AtomicBool::default(),
            progress: AtomicU64::default(),
            closes_after_next: AtomicBool::default(),
            has_unread_body: AtomicBool::default(),
            head_len: AtomicUsize::default(),
            written: AtomicUsize::default(),
            idle_since: AtomicU64::new(millis),
            given_up: AtomicBool::default(),
        }
    }

    /// Since when nothing has been going on; to be compared with that of others, or for [`idle_for`].
    pub(in crate::net) fn idle_since(&self) -> u64 {
        self.idle_since.load(Ordering::Relaxed)
    }

    /// From now on nothing is going on.
    pub(in crate::net) fn record_idle(&self) {
        self.idle_since.store(millis(), Ordering::Relaxed);
    }

    /// Another connection needs its place.
    pub(in crate::net) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    pub(in crate::net) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// How many bytes of a head, or of what came after the last one, are kept at most.
    pub(in crate::net) fn head_len(&self) -> usize {
        self.head_len.load(Ordering::Relaxed)
    }

    pub(in crate::net) fn snapshot(&self) -> Snapshot {
        let state = if self.requests_in_flight.load(Ordering::Relaxed) > 0 {
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

    /// So many bytes came from the caller.
    pub(in crate::net) fn record_bytes_read(&self, len: usize) {
        if self.requests_in_flight.load(Ordering::Relaxed) == 0 {
            self.has_begun_head.store(true, Ordering::Relaxed);
        } else if self.has_unread_body.load(Ordering::Relaxed) {
            return self.record_progress();
        }
        self.head_len.fetch_add(len, Ordering::Relaxed);
    }

    /// So many bytes went to the caller. It is progress as often as there are enough of them.
    pub(in crate::net) fn record_bytes_written(&self, len: usize) {
        let written = self.written.fetch_add(len, Ordering::Relaxed) + len;
        if written >= PROGRESS_LEN {
            self.written.fetch_sub(written, Ordering::Relaxed);
            self.record_progress();
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
        self.head_len.store(0, Ordering::Relaxed);
        self.has_begun_head.store(false, Ordering::Relaxed);
        self.requests_in_flight.fetch_add(1, Ordering::Relaxed);
        self.record_progress();
        RequestGuard {
            activity: Arc::clone(self),
        }
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
        self.activity
            .requests_in_flight
            .fetch_sub(1, Ordering::Relaxed);
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

/// How long it is since that moment of [`Activity::idle_since`].
pub(in crate::net) fn idle_for(since: u64) -> Duration {
    Duration::from_millis(millis().saturating_sub(since))
}

/// The clock of [`Activity::idle_since`].
fn millis() -> u64 {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(BEGAN.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::service::Load;

    fn begin() -> Arc<Activity> {
        Activity::begin(
            Load::default()
                .memory
                .payer(IpAddr::V4(Ipv4Addr::LOCALHOST)),
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
