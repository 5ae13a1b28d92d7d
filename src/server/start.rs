//! How a session begins: not before the clock can be right, and not below anything that was minted before.

use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::assembly::kept_formats;
use crate::minting::Refusal;
use crate::service::{Conjunctions, Keepers, Service};
use crate::storage::{
    DatabaseError, FormatsError, FoundHorizon, HorizonError, HorizonKeeper, RecordKeeper, Store, make_durable,
};
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
    /// The database cannot be used.
    #[error(transparent)]
    Records(#[from] DatabaseError),
}

/// Begins to mint: waits until the clock can be right, makes the first horizon durable, and opens the mint.
///
/// Meanwhile callers are refused with the reason, and ids are decoded.
///
/// # Errors
/// [`StartError`]: the process should end.
pub async fn begin(service: &Arc<Service>, mut store: Store, rule: StartRule) -> Result<(), StartError> {
    let formats = kept_formats(service);
    if let FoundHorizon::At(_) = rule.found {
        store.agree_on_formats(rule.slots, &formats)?;
    }
    let start = wait_for_start(service, rule).await;
    let clock = service.clock();
    let session = service.prepare(start);
    let plan = session.plan_extension(clock.now(), start);
    let durable = make_durable(&mut store, plan)?;
    session.raise(&durable, clock.now());
    if rule.found == FoundHorizon::None {
        // Only now: a database without a horizon beside it means that the horizon was lost.
        store.agree_on_formats(rule.slots, &formats)?;
    }
    let retention = match service.conjunctions() {
        Conjunctions::Pure => None,
        Conjunctions::Stored { retention } => retention,
    };
    let records = RecordKeeper::start(store.records()?, Arc::clone(clock), retention);
    let horizon = HorizonKeeper::start(Arc::clone(&session), Arc::clone(clock), store);
    service.begin(session, Keepers { records, horizon });
    info!(start = %start, "minting begins at {start}");
    Ok(())
}

/// The first instant that may be used.
async fn wait_for_start(service: &Service, rule: StartRule) -> UnixNanos {
    let clock = service.clock();
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
        service.wait_for(refusal);
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
    service.counters().horizon_cold_starts.inc();
    let clock = service.clock();
    if rule.slots == 1 {
        warn!(
            "no record of earlier ids: a first start, or a lost data directory; minting begins at the next whole second"
        );
        return clock.now().ceil_to_second();
    }
    warn!("no record of earlier ids: a first start, or a lost data directory; minting begins in {:?}", rule.max_ahead);
    service.wait_for(Refusal::HorizonReached { retry_after: rule.max_ahead });
    tokio::time::sleep(rule.max_ahead).await;
    clock.now()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::path::Path;

    use prometheus::Registry;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::minting::{Denied, Minter, Randomness};
    use crate::server::assembly::assemble;
    use crate::server::config::Config;
    use crate::storage::EmbeddedStore;
    use crate::time::ManualClock;

    const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);
    const RULE: StartRule =
        StartRule { found: FoundHorizon::None, slots: 1, max_ahead: Duration::from_secs(5), run_ahead: false };

    /// A service that has begun to mint on `dir`, as after a kill: nothing of an earlier one is closed.
    async fn begun(dir: &Path, hand: &ManualClock) -> Arc<Service> {
        let (service, starting) = beginning(dir, hand);
        starting.await.expect("no panic").expect("a start");
        service
    }

    /// A service that is beginning to mint on `dir`, and may have to wait.
    fn beginning(dir: &Path, hand: &ManualClock) -> (Arc<Service>, JoinHandle<Result<(), StartError>>) {
        let (store, found) = EmbeddedStore::open(dir, 0, None).expect("the folder is usable");
        let service = assemble(&Config::default(), Arc::new(hand.clock()), &Randomness::Thread, &Registry::new());
        let service = service.expect("the defaults are sound");
        let begins = Arc::clone(&service);
        let rule = StartRule { found, ..RULE };
        (service, tokio::spawn(async move { begin(&begins, Store::Embedded(store), rule).await }))
    }

    fn minter<'a>(service: &'a Service, name: &str) -> &'a Arc<Minter> {
        service.formats().named(name).expect("a built-in format").minter().expect("it is minted by count")
    }

    async fn mint(service: &Arc<Service>, name: &str, count: u32) -> Vec<u128> {
        let minter = minter(service, name);
        let request = minter.request(NonZeroU32::new(count).expect("not zero"), None).expect("a sound request");
        let mut outgoing = service.mint(minter, &request).await.expect("ids");
        let mut ids = vec![0; usize::try_from(count).expect("small")];
        assert_eq!(outgoing.batch.fill(&mut ids), ids.len());
        ids
    }

    #[tokio::test]
    async fn a_restart_behind_the_horizon_begins_at_the_horizon() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let hand = ManualClock::at(NOON);
        let service = begun(folder.path(), &hand).await;
        let before = mint(&service, "snowflake", 10).await;
        drop(service);
        hand.set_wall(NOON.before(Duration::from_secs(3)));
        let after = mint(&begun(folder.path(), &hand).await, "snowflake", 10).await;
        assert!(after[0] > before[9], "{} does not come after {}", after[0], before[9]);
    }

    #[tokio::test]
    async fn a_first_start_begins_at_the_next_whole_second_and_is_counted() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let hand = ManualClock::at(NOON.after(Duration::from_millis(1)));
        let service = begun(folder.path(), &hand).await;
        let id = mint(&service, "snowflake", 1).await[0];
        let time = minter(&service, "snowflake").counted().format.split(id).expect("an id").time.expect("has a time");
        assert_eq!(time, NOON.after(Duration::from_secs(1)).into());
        assert_eq!(service.counters().horizon_cold_starts.get(), 1);
    }

    #[tokio::test]
    async fn a_clock_far_behind_the_horizon_is_waited_for_and_then_followed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let hand = ManualClock::at(NOON);
        drop(begun(folder.path(), &hand).await);
        hand.set_wall(NOON.before(Duration::from_secs(3600)));
        let (service, starting) = beginning(folder.path(), &hand);
        while !matches!(service.session(), Err(Refusal::ClockBehind { .. })) {
            tokio::task::yield_now().await;
        }
        let minter = minter(&service, "snowflake");
        let request = minter.request(NonZeroU32::MIN, None).expect("a sound request");
        assert!(matches!(minter.reserve(&request), Err(Denied::Refused(Refusal::ClockBehind { .. }))));
        hand.set_wall(NOON);
        starting.await.expect("no panic").expect("a start");
        assert!(service.readiness().horizon.is_ok());
    }

    #[tokio::test]
    async fn a_clock_from_before_the_build_is_waited_for() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let hand = ManualClock::at(UnixNanos::from_seconds(86_400));
        let (service, starting) = beginning(folder.path(), &hand);
        while !matches!(service.session(), Err(Refusal::ClockJumped { .. })) {
            tokio::task::yield_now().await;
        }
        let minter = minter(&service, "flax");
        let request = minter.request(NonZeroU32::MIN, None).expect("a sound request");
        assert!(minter.reserve(&request).is_err(), "a random id carries the time too");
        hand.set_wall(NOON);
        starting.await.expect("no panic").expect("a start");
        assert!(minter.reserve(&request).is_ok());
    }
}
