//! What a connection is doing, as far as it matters for closing it.
//!
//! hyper has one timeout for a head, and it runs between requests too: an idle connection would be closed after the
//! 5 s that a head may take. So that timeout is off, and this is watched instead: bytes at the [stream](super::stream),
//! requests and answers around the service.

use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// One look at a connection; two equal looks mean that nothing moved in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) doing: Doing,
    moves: u64,
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// Nothing: the next request has not begun.
    Waiting,
    /// Reading a head that has begun. HTTP/1 only; in HTTP/2 a head cannot be told from other frames here.
    ReadingHead,
    /// Working on at least one request, up to the last byte of its answer.
    Answering,
}

/// What a connection is doing, told by those who see it happen.
// Ordering of all four: `Relaxed`. They decide only when an idle connection is closed; whoever sees an old value
// looks again when its timer fires.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Requests whose answers are not complete.
    /// Written by: `Answer` when made and dropped. Read by: `look`, `bytes_came`.
    /// Tested by: `a_connection_is_answering_until_the_last_answer_is_dropped`.
    answers: AtomicUsize,
    /// Whether bytes came since the last answer was complete.
    /// Written by: `bytes_came`, `Answer`. Read by: `look`. Tested by: as above.
    head_begun: AtomicBool,
    /// Only grows: by one for whatever moves, except the bytes of a head, which must not prolong it.
    /// Written by: `moved`. Read by: `look`. Tested by: as above.
    moves: AtomicU64,
    /// Whether answers must say `Connection: close`; once true, it stays so.
    /// Written by: `make_next_answer_the_last`. Read by: `is_next_answer_the_last`.
    /// Tested by: `a_busy_connection_loses_no_request_while_draining`.
    next_is_last: AtomicBool,
}

impl Activity {
    pub(super) fn look(&self) -> Look {
        let doing = if self.answers.load(Ordering::Relaxed) > 0 {
            Doing::Answering
        } else if self.head_begun.load(Ordering::Relaxed) {
            Doing::ReadingHead
        } else {
            Doing::Waiting
        };
        Look { doing, moves: self.moves.load(Ordering::Relaxed) }
    }

    /// Bytes came from the caller.
    pub(super) fn bytes_came(&self) {
        if self.answers.load(Ordering::Relaxed) > 0 {
            self.moved();
        } else {
            self.head_begun.store(true, Ordering::Relaxed);
        }
    }

    /// Something went on that shows the connection is in use.
    pub(super) fn moved(&self) {
        self.moves.fetch_add(1, Ordering::Relaxed);
    }

    /// The connection is to be closed after one more answer.
    pub(super) fn make_next_answer_the_last(&self) {
        self.next_is_last.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_next_answer_the_last(&self) -> bool {
        self.next_is_last.load(Ordering::Relaxed)
    }

    /// A head is complete; keep the answer until its last byte is on its way.
    pub(super) fn answer(self: &Arc<Self>) -> Answer {
        self.head_begun.store(false, Ordering::Relaxed);
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.moved();
        Answer { activity: Arc::clone(self) }
    }
}

/// One answer in the making, until it is dropped.
#[derive(Debug)]
pub(super) struct Answer {
    activity: Arc<Activity>,
}

impl Deref for Answer {
    type Target = Activity;

    fn deref(&self) -> &Activity {
        &self.activity
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // The head of a next request may be begun already, read together with this one. It then counts as not begun
        // until more of it comes: at worst it has the idle timeout first, as any connection has.
        self.activity.head_begun.store(false, Ordering::Relaxed);
        self.activity.answers.fetch_sub(1, Ordering::Relaxed);
        self.activity.moved();
    }
}

/// A body that tells when a piece of it moves: that of a request the activity, that of an answer its [`Answer`].
pub(super) struct Watched<B, A> {
    pub(super) body: B,
    pub(super) activity: A,
}

impl<B, A> Body for Watched<B, A>
where
    B: Body<Data = Bytes> + Unpin,
    A: Deref<Target = Activity> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_ready() {
            self.activity.moved();
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
    fn a_connection_is_answering_until_the_last_answer_is_dropped() {
        let activity = Arc::new(Activity::default());
        assert_eq!(activity.look().doing, Doing::Waiting);
        activity.bytes_came();
        let begun = activity.look();
        assert_eq!(begun.doing, Doing::ReadingHead);
        activity.bytes_came();
        assert_eq!(activity.look(), begun, "more bytes of a head do not prolong it");

        let (first, second) = (activity.answer(), activity.answer());
        let answering = activity.look();
        assert_eq!(answering.doing, Doing::Answering);
        activity.bytes_came();
        assert_ne!(activity.look(), answering, "a body that comes in is a move");
        drop(first);
        assert_eq!(activity.look().doing, Doing::Answering);
        drop(second);
        assert_eq!(activity.look().doing, Doing::Waiting);
    }
}
