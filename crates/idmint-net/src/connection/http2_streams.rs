//! HTTP/2 streams, each with its own idle timeout. A stream whose response is not read is reset,
//! while the connection's other streams continue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper::rt::Executor;
use tokio::time::sleep;
use tracing::debug;

use crate::fair_share::PeerShare;

/// The number of times that a stream's progress is checked within one idle timeout.
const LOOKS: u32 = 4;

tokio::task_local! {
    /// The progress of the stream that the current task serves.
    static PROGRESS: StreamProgress;
}

/// The executor that spawns hyper's tasks for HTTP/2 streams. Dropping a task resets its stream.
#[derive(Debug, Clone)]
pub(super) struct StreamExecutor {
    /// The maximum time that a stream may go without progress while it has data to send. After this
    /// time, the stream is reset.
    pub(super) idle_timeout: Duration,
    /// The peer's share of the processor time. The tasks of the streams run within this share.
    pub(super) turns: PeerShare,
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
                () = stalled => debug!("resetting a stream: its caller did not read the response"),
            }
        })));
    }
}

/// The progress of a stream's response.
#[derive(Debug, Clone)]
pub(super) struct StreamProgress {
    /// The number of response chunks given to the library h2, plus one for the response head. 0
    /// until the response head is ready.
    /// Written by: `record`. Read by: `stalled`. Ordering: `Relaxed`, because the counter guards no
    /// other data.
    /// Tested by: `a_stream_that_is_not_read_is_reset_and_its_neighbour_goes_on`.
    steps: Arc<AtomicUsize>,
    idle_timeout: Duration,
}

impl StreamProgress {
    /// Returns the progress of the stream that the current task serves.
    pub(super) fn current() -> Option<StreamProgress> {
        PROGRESS.try_with(Clone::clone).ok()
    }

    pub(super) fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }

    /// Records that the library h2 took a chunk of the response. h2 takes the next chunk only when
    /// the caller has read enough data to make room for that chunk.
    pub(super) fn record(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Completes once the response has stalled. A response is stalled if it has begun, and the
    /// library h2 has taken no further chunk during the idle timeout.
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
