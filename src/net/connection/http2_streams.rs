//! Streams of HTTP/2, each with a time of its own: one that does not take its answer is reset, and its neighbours go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper::rt::Executor;
use tokio::time::sleep;
use tracing::debug;

use crate::net::turns::PeerTurns;

/// How often an idle timeout a stream is looked at.
const LOOKS: u32 = 4;

tokio::task_local! {
    /// That of the stream that this task answers.
    static PROGRESS: StreamProgress;
}

/// Runs the task of each stream, as hyper asks for it; a task that is dropped resets its stream.
#[derive(Debug, Clone)]
pub(super) struct StreamExecutor {
    /// How long a stream with something to send may not move.
    pub(super) idle_timeout: Duration,
    /// Those of the peer.
    pub(super) turns: PeerTurns,
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let progress = StreamProgress {
            steps: Arc::default(),
            idle_timeout: self.idle_timeout,
        };
        let stalled = progress.clone().stalled();
        tokio::spawn(self.turns.take(PROGRESS.scope(progress, async {
            tokio::select! {
                _ = stream => {}
                () = stalled => debug!("a stream is reset: it did not take its answer"),
            }
        })));
    }
}

/// How far the answer of a stream has come.
#[derive(Debug, Clone)]
pub(super) struct StreamProgress {
    /// Pieces given to h2; 0 while there is nothing to send.
    /// Written by: `record`. Read by: `stalled`. Ordering: `Relaxed`, it guards nothing.
    /// Tested by: `a_stream_that_is_not_read_is_reset_and_its_neighbour_goes_on`.
    steps: Arc<AtomicUsize>,
    idle_timeout: Duration,
}

impl StreamProgress {
    /// That of the stream whose task this is.
    pub(super) fn current() -> Option<StreamProgress> {
        PROGRESS.try_with(Clone::clone).ok()
    }

    pub(super) fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }

    /// Something was given to h2, which takes more only when the other side makes room.
    pub(super) fn record(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends when the stream has something to send and has not moved for an idle timeout.
    async fn stalled(self) {
        let (mut seen, mut looks) = (0, 0);
        while looks < LOOKS {
            sleep(self.idle_timeout / LOOKS).await;
            let steps = self.steps.load(Ordering::Relaxed);
            looks = if steps == seen && steps > 0 {
                looks + 1
            } else {
                0
            };
            seen = steps;
        }
    }
}
