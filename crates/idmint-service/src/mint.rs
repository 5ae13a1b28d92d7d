//! Mints the requested number of ids. A request first reserves its ids. The response is then held
//! until the ids are due, which means that the clock is close enough to their times. See the
//! setting `mint.lead_max`.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use super::formats::ServedFormat;
use super::service::Service;
use idmint_core::minting::{Batch, BatchRequest, Denied, Granted, Minter, Refusal};
use idmint_core::time::UnixNanos;

/// The maximum time that a mint request waits while this node reserves more time for ids.
///
/// A node that was idle has no reserved time left. A reservation takes as long as a write to the
/// disk or the coordinator, and is independent of the time in the ids. This limit is therefore
/// separate from `mint.wait_max`, which limits how long a request waits for its ids to be due.
const RESERVING_MAX: Duration = Duration::from_secs(2);

/// The maximum time that a mint request waits, after a start of the node, until the first
/// reservation of time for ids is durable.
const START_MAX: Duration = Duration::from_secs(5);

/// The pause after which a waiting mint request checks again if a minting session has begun.
const LOOK_EVERY: Duration = Duration::from_millis(5);

impl Service {
    /// `true` until the first minting session has begun.
    #[inline]
    pub fn is_starting(&self) -> bool {
        if self.has_begun.load(Ordering::Relaxed) {
            return false;
        }
        let has_begun = self.session().is_ok();
        self.has_begun.store(has_begun, Ordering::Relaxed);
        !has_begun
    }

    /// Waits for at most 5 s until the first reservation of time after a start is durable. Returns
    /// at once if the start waits for something else, such as a correct clock, or if waiting mints
    /// already take half of the allowed requests in flight. A mint that is attempted before minting
    /// has begun is then refused with the reason.
    pub async fn wait_for_start(&self) {
        let most = self.load().requests.in_flight_max() / 2;
        let waiting = StartWaiter::count(&self.waiting_for_start);
        if waiting.before >= most {
            return;
        }
        let begun = tokio::time::Instant::now();
        while self.is_starting() && !self.is_draining() {
            let refusal = self.session().err();
            let waits = refusal.is_some_and(|refusal| refusal.ends_with_the_start(START_MAX));
            if !waits || begun.elapsed() > START_MAX {
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Reserves the ids of a request, and holds the response until the ids may be sent.
    ///
    /// # Errors
    /// Returns [`Refusal`] if no id was minted.
    #[inline]
    pub fn mint(
        self: &Arc<Self>,
        minter: &Arc<Minter>,
        request: &BatchRequest,
    ) -> MaybeReady<Result<Batch, Refusal>> {
        match minter.reserve(request) {
            Ok(granted) => self.release(granted).map(Ok),
            Err(Denied::Refused(refusal)) => MaybeReady::ready(Err(refusal)),
            Err(Denied::Horizon { needed }) => {
                let (service, minter, request) = (Arc::clone(self), Arc::clone(minter), *request);
                MaybeReady::pending(async move {
                    let granted = service
                        .reserve_above_horizon(&minter, &request, needed)
                        .await?;
                    Ok(service.release(granted).await)
                })
            }
        }
    }

    /// Mints a large batch. Without this method, requests for single ids would have to wait for all
    /// large batches.
    ///
    /// At most one large batch per lane runs at a time, or only one in total if each uses every
    /// lane. The next large batch reserves its ids only after the ids of an earlier one are due. A
    /// small request therefore waits for at most one large batch per lane.
    ///
    /// # Errors
    /// Returns [`Refusal`] if no id was minted.
    pub async fn mint_many(
        self: &Arc<Self>,
        served: &ServedFormat,
        minter: &Arc<Minter>,
        request: &BatchRequest,
    ) -> Result<Batch, Refusal> {
        let held = self.load().requests.hold();
        let wait_max = self.limits().wait_max;
        let turn = tokio::time::timeout(wait_max, served.turn()).await;
        drop(held);
        let Ok(_turn) = turn else {
            return Err(minter.refuse_late(wait_max));
        };
        self.mint(minter, request).await
    }

    /// Returns the reserved ids as soon as they are due, which means that they may be sent.
    #[inline]
    fn release(self: &Arc<Self>, granted: Granted) -> MaybeReady<Batch> {
        let Granted { batch, due, refill } = granted;
        // With a clock that stands still, as in tests, do not reserve time in advance, but only
        // when a request needs it. Every run of a test then reserves time at the same points.
        let is_early = refill && !self.clock().is_standing();
        if let Some(reserver) = self.reserver().filter(|_| is_early) {
            reserver.refill();
        }
        let Some(due) = due else {
            return MaybeReady::ready(batch);
        };
        let service = Arc::clone(self);
        MaybeReady::pending(async move {
            let _held = service.load().requests.hold();
            let waiting = service.counters().mint_wait_seconds.start_timer();
            service.wait_until(due).await;
            waiting.observe_duration();
            batch
        })
    }

    /// Reserves more time until the times of the requested ids are within the reserved time, whose
    /// end is the horizon.
    ///
    /// One reservation may not be enough, because other callers mint in the meantime and time
    /// passes. All reservations together have one timeout.
    async fn reserve_above_horizon(
        &self,
        minter: &Minter,
        request: &BatchRequest,
        needed: UnixNanos,
    ) -> Result<Granted, Refusal> {
        let _held = self.load().requests.hold();
        let reserver = self
            .reserver()
            .expect("it comes before a session with a horizon");
        let extended = async {
            let mut needed = needed;
            loop {
                if !reserver.raise_to(needed).await {
                    return Err(Refusal::StorageFailed);
                }
                match minter.reserve(request) {
                    Ok(granted) => return Ok(granted),
                    Err(Denied::Refused(refusal)) => return Err(refusal),
                    Err(Denied::Horizon { needed: more }) => needed = more,
                }
            }
        };
        let reserved = tokio::time::timeout(RESERVING_MAX, extended).await;
        reserved.unwrap_or(Err(Refusal::HorizonReached {
            retry_after: RESERVING_MAX,
        }))
    }

    /// Waits until the clock of the service shows the time `due`.
    ///
    /// After the wall clock was set back, the clock of the service runs slower than the timer, so
    /// one sleep may be too short. A clock that stands still, as in a test service, does not reach
    /// `due` by itself, so it is set forward to `due` at once. The ids before `due` are already
    /// used up.
    async fn wait_until(&self, due: UnixNanos) {
        if self.clock().let_pass_to(due) {
            return;
        }
        loop {
            let left = due.since(self.clock().now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

/// Counts a mint that waits for the start of minting. Dropping the value ends the count.
struct StartWaiter<'a> {
    count: &'a AtomicUsize,
    /// The number of other mints that were already waiting for the start of minting when this mint
    /// began to wait.
    before: usize,
}

impl StartWaiter<'_> {
    fn count(count: &AtomicUsize) -> StartWaiter<'_> {
        let before = count.fetch_add(1, Ordering::Relaxed);
        StartWaiter { count, before }
    }
}

impl Drop for StartWaiter<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A value, or a future that yields the value. A value that is already available needs no
/// allocation, which a boxed future would need.
#[must_use]
pub enum MaybeReady<T> {
    /// The available value, or `None` once it was taken.
    Ready(Option<T>),
    /// A future that yields the value.
    Pending(Pin<Box<dyn Future<Output = T> + Send>>),
}

impl<T: Send + Unpin + 'static> MaybeReady<T> {
    /// Wraps a value that is already available.
    #[inline]
    pub fn ready(value: T) -> Self {
        Self::Ready(Some(value))
    }

    /// Wraps a future that yields the value.
    pub fn pending(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self::Pending(Box::pin(work))
    }

    /// Applies `change` to the value, now or when the value becomes available.
    #[inline]
    pub fn map<U: Send + Unpin + 'static>(
        self,
        change: impl FnOnce(T) -> U + Send + 'static,
    ) -> MaybeReady<U> {
        match self {
            Self::Ready(value) => MaybeReady::Ready(value.map(change)),
            Self::Pending(work) => MaybeReady::pending(async move { change(work.await) }),
        }
    }
}

impl<T: Unpin> Future for MaybeReady<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match self.get_mut() {
            Self::Ready(value) => Poll::Ready(
                value
                    .take()
                    .expect("a future that is ready is not polled again"),
            ),
            Self::Pending(work) => work.as_mut().poll(context),
        }
    }
}
