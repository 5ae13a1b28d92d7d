//! What every handler works with: the mint, the decoder, the keeper of the horizon, and the limits of a request.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::counters::ServiceMetrics;
use super::maybe_ready::Soon;
use crate::id::{Decoder, DomainHash, Format};
use crate::minting::{Batch, Denied, Granted, Mint, Order, Refusal};
use crate::storage::{HorizonKeeper, RecordKeeper};
use crate::time::UnixNanos;
use crate::wire::AnswerParts;

/// The service behind the routes.
pub struct Service {
    /// Mints.
    pub mint: Mint,
    /// Reads ids.
    pub decoder: Decoder,
    /// What is said of the ids that it reads.
    pub answer_parts: AnswerParts,
    /// Serves ids with memory, once the tenure has begun. Before the horizon's keeper: that one closes the store, and the
    /// fields are dropped in their order.
    pub records: OnceLock<RecordKeeper>,
    /// How reports find their ids.
    pub conjunctions: Conjunctions,
    /// Serves the horizon, once the tenure has begun.
    pub keeper: OnceLock<HorizonKeeper>,
    /// What one request may ask for.
    pub limits: RequestLimits,
    /// The domains that ids can belong to, and the type they have by default.
    pub siq: SiqDefaults,
    /// The slot this node holds.
    pub slot: u32,
    /// Whether the process is about to end: what has arrived is answered, but no more should come.
    pub draining: AtomicBool,
    /// What is counted where it happens.
    pub metrics: ServiceMetrics,
}

/// How reports find their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conjunctions {
    /// Each by its own time; nothing is stored.
    Pure,
    /// They join conjunctions that are stored.
    Stored {
        /// How long after its time a conjunction is kept; for ever if that is not said.
        retention: Option<Duration>,
    },
}

/// What one request may ask for.
#[derive(Debug, Clone, Copy)]
pub struct RequestLimits {
    /// How many ids at once, 1 to 10 000 000.
    pub batch_max: u32,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// How long an answer may wait for the horizon.
    pub horizon_wait_max: Duration,
}

/// What the configuration says of SIQs.
#[derive(Debug, Clone, Default)]
pub struct SiqDefaults {
    /// The type of a request that names none.
    pub default_type: Option<String>,
    /// The domain of a request that names none; `None` where no domain is configured, which is for development.
    pub default_domain: Option<DomainHash>,
    /// Every domain that a request may name.
    pub domains: HashMap<String, DomainHash>,
}

impl Service {
    /// Reserves the ids of an order and holds them until they are due.
    ///
    /// # Errors
    /// [`Refusal`]: nothing was minted.
    pub fn mint(self: &Arc<Self>, format: usize, order: &Order) -> Soon<Result<Outgoing, Refusal>> {
        match self.mint.reserve(format, order) {
            Ok(granted) => self.release(format, granted).map(Ok),
            Err(Denied::Refused(refusal)) => Soon::now(Err(refusal)),
            Err(Denied::Horizon { needed }) => {
                let (service, order) = (Arc::clone(self), *order);
                Soon::later(async move {
                    let granted = service.reserve_above_horizon(format, &order, needed).await?;
                    Ok(service.release(format, granted).await)
                })
            }
        }
    }

    /// Lets ids go when they are due.
    fn release(self: &Arc<Self>, format: usize, granted: Granted) -> Soon<Outgoing> {
        let Granted { batch, due, refill } = granted;
        let outgoing = self.outgoing(format, batch);
        if let Some(keeper) = self.keeper.get().filter(|_| refill) {
            keeper.refill();
        }
        let Some(due) = due else { return Soon::now(outgoing) };
        let service = Arc::clone(self);
        Soon::later(async move {
            let held = service.metrics.mint_wait_seconds.start_timer();
            service.wait_until(due).await;
            held.observe_duration();
            outgoing
        })
    }

    /// Ids of a format on their way to whoever asked for them.
    pub(crate) fn outgoing(self: &Arc<Self>, format: usize, batch: Batch) -> Outgoing {
        Outgoing { batch, format, service: Arc::clone(self) }
    }

    /// Has the horizon raised until the order fits below it. Another caller may take the room meanwhile, so more than
    /// one extension may be needed; all of them share one wait.
    async fn reserve_above_horizon(&self, format: usize, order: &Order, needed: UnixNanos) -> Result<Granted, Refusal> {
        let keeper = self.keeper.get().expect("only a tenure that has begun has a horizon");
        let extended = async {
            let mut needed = needed;
            loop {
                if !keeper.raise_to(needed).await {
                    return Err(Refusal::StorageFailed);
                }
                match self.mint.reserve(format, order) {
                    Ok(granted) => return Ok(granted),
                    Err(Denied::Refused(refusal)) => return Err(refusal),
                    Err(Denied::Horizon { needed: more }) => needed = more,
                }
            }
        };
        let wait_max = self.limits.horizon_wait_max;
        tokio::time::timeout(wait_max, extended).await.unwrap_or(Err(Refusal::HorizonReached { retry_after: wait_max }))
    }

    /// Waits until the clock shows `due`. It runs slower than the timer while the wall clock is behind it.
    async fn wait_until(&self, due: UnixNanos) {
        loop {
            let left = due.since(self.mint.clock().now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

/// Ids on their way to a caller. Those that are not taken before it is dropped stay gaps, and are counted.
pub struct Outgoing {
    /// What is left of them.
    pub batch: Batch,
    format: usize,
    service: Arc<Service>,
}

impl Outgoing {
    /// What they are ids of.
    pub(crate) fn format(&self) -> &Format {
        self.service.mint.format_at(self.format)
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        if self.batch.count() > 0 {
            self.service.mint.stats(self.format).count_unsent(self.batch.count());
        }
    }
}
