//! How a tenure begins: not before the clock can be right, and not below anything that was minted before.

use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::assembly::kept_formats;
use crate::http::Service;
use crate::minting::Refusal;
use crate::storage::{FormatsError, FoundHorizon, HorizonError, HorizonKeeper, Store, make_durable};
use crate::time::{Clock, UnixNanos};

/// How often a start that waits for its clock looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What a start needs to know.
#[derive(Debug, Clone, Copy)]
pub struct StartRule {
    /// What the store holds of this slot.
    pub found: FoundHorizon,
    /// How many slots there can be.
    pub slots: u32,
    /// How far the horizon may be ahead of the clock.
    pub max_ahead: Duration,
    /// Begin at the horizon however far it is ahead: an operator's decision.
    pub run_ahead: bool,
}

/// Nothing was minted, and nothing can be: the process ends.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A format, or the number of slots, differs from what was minted before.
    #[error(transparent)]
    Formats(#[from] FormatsError),
    /// The first horizon could not be made durable.
    #[error(transparent)]
    Horizon(#[from] HorizonError),
}

/// Begins to mint: waits until the clock can be right, makes the first horizon durable, and opens the mint.
///
/// Meanwhile callers are refused with the reason, and ids are decoded.
///
/// # Errors
/// [`StartError`]: the process should end.
pub async fn begin(service: &Arc<Service>, mut store: Store, rule: StartRule) -> Result<(), StartError> {
    let mint = &service.mint;
    let formats = kept_formats(service);
    if let FoundHorizon::At(_) = rule.found {
        store.agree_on_formats(rule.slots, &formats)?;
    }
    let start = wait_for_start(service, rule).await;
    let tenure = mint.prepare(start);
    let plan = tenure.plan_extension(mint.clock().now(), start);
    let durable = make_durable(&mut store, plan)?;
    tenure.raise(&durable, mint.clock().now());
    if rule.found == FoundHorizon::None {
        // Only now: a database without a horizon beside it means that the horizon was lost.
        store.agree_on_formats(rule.slots, &formats)?;
    }
    let tenure = Arc::new(tenure);
    let keeper = HorizonKeeper::start(Arc::clone(&tenure), Arc::clone(mint.clock()), store);
    assert!(service.keeper.set(keeper).is_ok(), "a program begins once");
    mint.begin(tenure);
    info!(start = %start, "minting begins at {start}");
    Ok(())
}

/// The first instant that may be used.
async fn wait_for_start(service: &Service, rule: StartRule) -> UnixNanos {
    let clock = service.mint.clock();
    let mut said = None;
    loop {
        // Nothing was minted yet, so the estimate may follow the wall clock wherever it is set.
        clock.anchor_to_wall();
        let refusal = match obstacle(clock, &rule) {
            Some(refusal) => refusal,
            None => break,
        };
        if said.replace(std::mem::discriminant(&refusal)) != Some(std::mem::discriminant(&refusal)) {
            warn!("not minting yet: {refusal}");
        }
        service.mint.wait_for(refusal);
        tokio::time::sleep(LOOK_EVERY).await;
    }
    match rule.found {
        FoundHorizon::At(horizon) => clock.now().max(UnixNanos::new(horizon)),
        FoundHorizon::None => cold_start(service, &rule).await,
    }
}

/// Why the clock cannot be right.
fn obstacle(clock: &Clock, rule: &StartRule) -> Option<Refusal> {
    let now = clock.now();
    if clock.is_before_build() {
        return Some(Refusal::ClockJumped { shown: now.into() });
    }
    match rule.found {
        FoundHorizon::At(horizon) if !rule.run_ahead => {
            let behind = UnixNanos::new(horizon).since(now.after(rule.max_ahead));
            (!behind.is_zero()).then_some(Refusal::ClockBehind { behind })
        }
        FoundHorizon::At(_) | FoundHorizon::None => None,
    }
}

/// Without a record nothing is known of what was minted before; whoever minted was not far ahead of the clock.
async fn cold_start(service: &Service, rule: &StartRule) -> UnixNanos {
    service.metrics.horizon_cold_starts.inc();
    let clock = service.mint.clock();
    if rule.slots == 1 {
        warn!(
            "no record of earlier ids: a first start, or a lost data directory; minting begins at the next whole second"
        );
        return clock.now().ceil_to_second();
    }
    warn!("no record of earlier ids: a first start, or a lost data directory; minting begins in {:?}", rule.max_ahead);
    service.mint.wait_for(Refusal::HorizonReached { retry_after: rule.max_ahead });
    tokio::time::sleep(rule.max_ahead).await;
    clock.now()
}
