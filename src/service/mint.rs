//! Minting by count: reserve, and hold the ids until they are due.

use std::sync::Arc;
use std::time::Duration;

use super::formats::ServedFormat;
use super::maybe_ready::MaybeReady;
use super::service::Service;
use crate::minting::{Batch, BatchRequest, Denied, Granted, Minter, Refusal};
use crate::time::UnixNanos;

/// How long a request may wait until time is reserved for its ids: a node that was idle has none left, and reserving some takes
/// as long as the disk does, or the coordinator, whatever callers are willing to wait for the time itself.
const RESERVING_MAX: Duration = Duration::from_secs(2);

impl Service {
    /// Reserves the ids of a request and holds them until they are due.
    ///
    /// # Errors
    /// [`Refusal`]: nothing was minted.
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

    /// Mints so many ids that single ones would wait behind them. Of those who want as many, each waits for its turn until
    /// the ids before are due, and only then reserves: so nobody waits behind more than one of them in a lane.
    ///
    /// # Errors
    /// [`Refusal`]: nothing was minted.
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
            return Err(minter.refuse_late(request, wait_max));
        };
        self.mint(minter, request).await
    }

    /// Lets ids go when they are due.
    #[inline]
    fn release(self: &Arc<Self>, granted: Granted) -> MaybeReady<Batch> {
        let Granted { batch, due, refill } = granted;
        // Where the clock stands, time is reserved while a request waits for it, and so at the same point of every run.
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

    /// Has the horizon raised until the request fits below it. Another caller may take the room meanwhile, and time goes on, so
    /// more than one extension may be needed; all of them share one wait.
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

    /// Waits until the clock shows `due`. It runs slower than the timer while the wall clock is behind it. One that stands goes on
    /// at once: the tick is used up.
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
