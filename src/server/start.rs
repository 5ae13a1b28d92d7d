//! Starts minting. The start first waits until the clock is plausible. New ids then get later times
//! than all ids that were minted before.

use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::assembly::kept_formats;
use super::config::{Assignment, Config, EngineChoice};
use super::other_generator::{OtherGeneratorError, check_start_after, exclude_ids};
use idmint_core::minting::{HorizonPlan, Randomness, Refusal, Session, SessionStart};
use idmint_core::time::{Clock, UnixNanos};
use idmint_service::{Conjunctions, Service};
use idmint_storage::{
    AgreedRules, FailureKind, FormatsError, HorizonWriterHandle, NextStart, Opened, OwnEngine,
    RecordWriterHandle, Records, Reserver, StatedFloor, StoreError,
};

/// The interval at which a waiting start checks its clock.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A start that finds no record of an earlier run waits for `lead_max` plus this time.
///
/// The lead is the time by which ids may be ahead of the clock. The lead is at least one tick, so
/// it can exceed `lead_max`. Only formats with ticks shorter than 100 ms have a lead, so the excess
/// is less than 100 ms. The rest of this time allows for two runs that read the same clock slightly
/// differently.
const BEYOND_THE_LEAD: Duration = Duration::from_millis(200);

/// A start logs a warning if the clock is further than this ahead of the end of the time that
/// earlier runs reserved. A wrong clock is then more likely than a node that was idle for a month.
const FAR_AHEAD: Duration = Duration::from_secs(30 * 86_400);

/// The options that an operator sets for a single start.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunOptions {
    /// A time later than the times in all ids that were ever minted. It is used only if the stored
    /// end of the reserved time is damaged, missing or belongs to another slot.
    pub floor: Option<UnixNanos>,
    /// A time later than the times in all ids that were ever minted, for a node restored from a
    /// backup. The option may stay set, because only the first start after the restore uses it.
    pub restore_floor: Option<UnixNanos>,
    /// `true` to begin minting at the horizon (the end of the time that earlier runs reserved),
    /// however far it is ahead of the clock.
    pub run_ahead: bool,
    /// `true` to serve requests from other machines although callers need neither a token nor a
    /// certificate.
    pub insecure_public: bool,
    /// `true` if the operator states that no id was ever minted in this etcd namespace. Used only
    /// if the namespace has no fleet yet.
    pub new_fleet: bool,
    /// The settings of a test service, in which repeated requests return the same ids in every run.
    pub test: Option<TestRun>,
}

/// The settings of a test service, which keeps its state in memory: the time of its clock and the
/// seed of its random bits.
#[derive(Debug, Clone, Copy)]
pub struct TestRun {
    /// The time that the clock shows when the service starts. The clock stands still until minted
    /// ids advance it.
    pub at: UnixNanos,
    /// The seed of the random bits.
    pub seed: u64,
}

impl RunOptions {
    /// Returns the floor that the operator stated: a time later than the times in all ids that were
    /// ever minted.
    pub(super) fn stated_floor(&self) -> StatedFloor {
        match (self.floor, self.restore_floor) {
            (Some(floor), _) => StatedFloor::ForThisStart(floor),
            (None, Some(floor)) => StatedFloor::OfARestore(floor),
            (None, None) => StatedFloor::None,
        }
    }

    /// Returns the clock of the process.
    pub(super) fn clock(&self) -> Clock {
        self.test
            .map_or_else(Clock::system, |test| Clock::standing_at(test.at))
    }

    /// Returns the source of random bits.
    pub(super) fn randomness(&self) -> Randomness {
        self.test
            .map_or(Randomness::Thread, |test| Randomness::seeded(test.seed))
    }
}

/// The settings of a start.
#[derive(Debug, Clone, Copy)]
pub struct StartRule {
    /// The number of slots, which limits the number of nodes (`worker.slots`).
    pub slots: u32,
    /// The maximum time by which the horizon (the end of the time that earlier runs reserved) may
    /// be ahead of the clock.
    pub max_ahead: Duration,
    /// The maximum time by which the time in an id may be ahead of the clock: `mint.lead_max`.
    pub lead_max: Duration,
    /// The maximum difference between this node's clock and the median of all clocks in the fleet.
    pub skew_max: Duration,
    /// `true` if the operator decided to begin minting at the horizon (the end of the time that
    /// earlier runs reserved), however far it is ahead of the clock.
    pub run_ahead: bool,
}

impl StartRule {
    pub(super) fn of(config: &Config, options: RunOptions, slots: u32) -> StartRule {
        StartRule {
            slots,
            max_ahead: config.clock.max_ahead,
            lead_max: config.mint.lead_max,
            skew_max: config.clock.skew_max,
            run_ahead: options.run_ahead,
        }
    }
}

/// The reason why a node must end: its start failed permanently, or its records or formats became
/// unusable while it was minting.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A format, or the range of slots (places for nodes), differs from what earlier starts or
    /// other nodes have stored.
    #[error(transparent)]
    Formats(#[from] FormatsError),
    /// Time for the first ids could not be reserved durably, or the records cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ids of another generator cannot be excluded from minting, because they are too far ahead
    /// of the clock or cannot be read.
    #[error(transparent)]
    OtherGenerator(#[from] OtherGeneratorError),
    /// The records could no longer be read or written. This can happen at any time after they were
    /// opened, even while the node waits for a plausible clock.
    #[error(
        "the ledgers, numbers and conjunctions cannot be read or written any more; see the log"
    )]
    RecordsFailed(FailureKind),
}

impl StartError {
    /// Returns the kind of this failure.
    pub fn failure_kind(&self) -> FailureKind {
        match self {
            StartError::Formats(error) => error.failure_kind(),
            StartError::Store(error) => error.failure_kind(),
            StartError::OtherGenerator(_) => FailureKind::Disagrees,
            StartError::RecordsFailed(kind) => *kind,
        }
    }
}

/// Starts minting: waits until the clock is plausible, makes the first reservation of time durable,
/// and then lets requests mint. The end of the reserved time is the horizon.
///
/// Until then, mint requests are refused with the reason, but ids can be decoded. If the store has
/// a horizon, its records are served without waiting for the clock, because they do not depend on
/// the current time: new events of a ledger come after its last event, and reports are grouped by
/// the times in them.
///
/// # Errors
/// Returns [`StartError`] if the start fails permanently. The process should then end.
pub async fn begin(
    service: &Arc<Service>,
    opened: Opened,
    rule: StartRule,
) -> Result<Arc<HorizonWriterHandle>, StartError> {
    let formats = kept_formats(service);
    let (store, session, start) = match opened {
        Opened::First(first) => {
            wait_for_clock(service, rule, None).await;
            keep_clear(service, &rule, service.clock().now()).await?;
            let start = cold_start(service, &rule).await;
            let (session, plan) =
                prepare(service, SessionStart::at(start).above_floor(Some(start)));
            let (reserved, durable) = first.reserve(plan)?;
            session.raise(&durable, service.clock().now());
            let store = reserved.agree_on_formats(rule.slots, &formats)?;
            serve_records(service, store.records()?)?;
            (store, session, start)
        }
        Opened::Again(restart) => {
            let (horizon, floor) = (restart.horizon(), restart.floor());
            if obstacle(service.clock(), &rule, Some(horizon)).is_none() {
                // Make this check before the start changes the store, so that a refused start
                // leaves the store unchanged.
                check_start_after(service, rule.max_ahead)?;
            }
            let agreed = restart.agree_on_formats(rule.slots, &formats)?;
            serve_records(service, agreed.records()?)?;
            tokio::select! {
                () = wait_for_clock(service, rule, Some(horizon)) => {}
                kind = records_failed(service) => return Err(StartError::RecordsFailed(kind)),
            }
            keep_clear(service, &rule, service.clock().now()).await?;
            let now = service.clock().now();
            warn_of_a_clock_far_ahead(now, horizon);
            let start = now.max(horizon);
            let (session, plan) = prepare(service, SessionStart::at(start).above_floor(floor));
            let (store, durable) = agreed.reserve(plan)?;
            session.raise(&durable, service.clock().now());
            (store, session, start)
        }
    };
    let writer =
        HorizonWriterHandle::start(Arc::clone(&session), Arc::clone(service.clock()), store);
    let writer = Arc::new(writer);
    service.begin(session, Arc::clone(&writer) as Arc<dyn Reserver>);
    info!(start = %start, "minting begins at {start}");
    Ok(writer)
}

/// Compares the configuration with the data of this node, as the next start will do.
/// `restore_floor` is the floor (time below which no id is minted) of a restore. No file is
/// written, and the node may be running. Returns the result as text, and a line for each change in
/// how numbers of series are written. The result is `None` if this node has no data directory of
/// its own.
///
/// # Errors
/// Returns the [`StartError`] that would end the next start.
pub fn check_data_dir(
    config: &Config,
    service: &Service,
    restore_floor: Option<UnixNanos>,
) -> Result<Option<(String, Vec<String>)>, StartError> {
    let EngineChoice::Own(OwnEngine::Embedded { data_dir }) = config.engine_choice() else {
        return Ok(None);
    };
    let Assignment { slot, slots, .. } = config.worker.assignment();
    let (formats, rules) = (kept_formats(service), service.number_rules());
    let floor = restore_floor.map_or(StatedFloor::None, StatedFloor::OfARestore);
    let next = NextStart::on(&data_dir, slot, floor, slots, &formats, rules)?;
    let data_dir = data_dir.display();
    let alone = |result: String| (result, Vec::new());
    Ok(Some(match next {
        NextStart::First => alone(format!("{data_dir}, no ids were minted yet")),
        NextStart::Again(horizon, changes) => (
            format!("{data_dir}, matches the configuration, reserved until {horizon}"),
            changes.iter().map(ToString::to_string).collect(),
        ),
        NextStart::Unreadable => alone(format!(
            "{data_dir}, not checked: this user may not read it"
        )),
    }))
}

/// Makes the minters skip ids that other programs have made. Only such ids with the time `from` or
/// later are skipped, so minting must not begin before `from`.
pub(super) async fn keep_clear(
    service: &Service,
    rule: &StartRule,
    from: UnixNanos,
) -> Result<(), StartError> {
    check_start_after(service, rule.max_ahead)?;
    Ok(exclude_ids(service, from).await?)
}

/// Checks that the stored numbers of series conform to the configured rules. Then serves the
/// records of ledgers, conjunctions and numbers.
fn serve_records(service: &Service, records: Records) -> Result<(), StoreError> {
    let agreed = records.agree_on_rules(service.number_rules())?;
    serve_agreed_records(service, records, agreed);
    Ok(())
}

pub(super) fn serve_agreed_records(service: &Service, records: Records, agreed: AgreedRules) {
    for change in &agreed.changes {
        info!("{change}");
    }
    let retention = match service.conjunctions() {
        Conjunctions::Pure => None,
        Conjunctions::Stored { retention, .. } => retention,
    };
    let writer = RecordWriterHandle::start(records, Arc::clone(service.clock()), retention);
    service.serve_records(writer, agreed.first);
}

/// Waits until the records of ledgers, conjunctions and numbers can no longer be served. Returns
/// the kind of the failure.
pub(super) async fn records_failed(service: &Service) -> FailureKind {
    service
        .record_writer_handle()
        .expect("they are served")
        .failed()
        .await
}

/// Creates a minting session that begins at `start`, and plans to reserve time for its first ids.
fn prepare(service: &Service, start: SessionStart) -> (Arc<Session>, HorizonPlan) {
    let session = service.prepare(start);
    let plan = session.plan_extension(service.clock().now(), session.horizon());
    (session, plan)
}

/// Waits until the clock is plausible: after the build of this program, and at most `max_ahead`
/// behind `found`, the end of the time that earlier runs reserved (ignored with `run_ahead`).
pub(super) async fn wait_for_clock(service: &Service, rule: StartRule, found: Option<UnixNanos>) {
    let clock = service.clock();
    let mut said = None;
    loop {
        // Set the clock estimate to the wall clock, even if it moves backwards, because no id was
        // minted yet.
        clock.anchor_to_wall();
        let Some(refusal) = obstacle(clock, &rule, found) else {
            return;
        };
        if said.replace(std::mem::discriminant(&refusal)) != Some(std::mem::discriminant(&refusal))
        {
            warn!("this node does not mint yet: {refusal}");
            if let (Refusal::ClockBehind { .. }, Some(horizon)) = (&refusal, found) {
                service
                    .counters()
                    .count_regression(horizon.since(clock.now()));
            }
        }
        service.wait_for(refusal);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Returns the reason to wait for the clock: it shows a time before the build of this program, or
/// is too far behind the stored horizon `found`. Returns `None` if the start need not wait.
fn obstacle(clock: &Clock, rule: &StartRule, found: Option<UnixNanos>) -> Option<Refusal> {
    let now = clock.now();
    if clock.is_before_build() {
        return Some(Refusal::ClockJumped { shown: now.into() });
    }
    let horizon = found.filter(|_| !rule.run_ahead)?;
    let behind = horizon.since(now.after(rule.max_ahead));
    (!behind.is_zero()).then_some(Refusal::ClockBehind { behind })
}

/// Logs a warning if the clock is much later than the last record of this node. The node cannot
/// know if such a clock is right. The warning comes before the time of the clock is made durable,
/// because ids that contain this time cannot be revoked.
fn warn_of_a_clock_far_ahead(now: UnixNanos, horizon: UnixNanos) {
    let ahead = now.since(horizon);
    if ahead > FAR_AHEAD {
        warn!(
            ahead_s = ahead.as_secs(),
            "the clock shows {now}, {} days after the last record of this node ({horizon}); if that is wrong, stop this node \
             now and see docs/OPERATIONS.md, \"A clock years ahead\": once ids carry that time, no earlier ones are minted",
            ahead.as_secs() / 86_400
        );
    }
}

/// Waits until the time in every id that an earlier run may have minted has passed. The store has
/// no record of such a run. Returns the time at which to begin.
///
/// With one slot, the earlier run minted only slightly ahead of this clock, so a short wait is
/// enough. With several slots, another node may have minted up to `max_ahead` ahead of the clock,
/// so the wait is `max_ahead`.
///
/// With one slot, the returned time is a whole second that the clock has reached. If minting began
/// ahead of the clock instead, the next start without a record could begin at the same time.
async fn cold_start(service: &Service, rule: &StartRule) -> UnixNanos {
    service.counters().horizon_cold_starts.inc();
    let clock = service.clock();
    let (wait, begin) = match rule.slots {
        1 => (
            rule.lead_max + BEYOND_THE_LEAD,
            "at the next whole second after",
        ),
        _ => (rule.max_ahead, "in"),
    };
    warn!(
        "the data directory has no record of earlier ids, so this is a first start, or the directory was \
         lost; minting begins {begin} {wait:?}"
    );
    if !clock.is_standing() {
        service.wait_for(Refusal::NoRecord { retry_after: wait });
        tokio::time::sleep(wait).await;
    }
    if rule.slots > 1 {
        return clock.now();
    }
    // The start is a whole second, because then a new tick begins in every format whose tick
    // divides a second, such as 1 ms or 10 ms.
    let start = clock.now().ceil_to_second();
    loop {
        let left = start.since(clock.now());
        if left.is_zero() {
            return start;
        }
        service.wait_for(Refusal::NoRecord { retry_after: left });
        tokio::time::sleep(left.min(LOOK_EVERY)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::path::Path;

    use prometheus::Registry;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::server::assembly::assemble;
    use crate::server::config::OnExhausted;
    use idmint_core::minting::{Denied, Minter};
    use idmint_core::time::{ManualClock, UnixTime};
    use idmint_records::conjunction::{GroupRequest, Report, SentReport};
    use idmint_records::ledger::{
        Event, KeyHash, LedgerId, LedgerRequest, RequestMark, SeriesName, digest_of,
    };
    use idmint_service::{IdSource, ServedFormat, ServiceError};
    use idmint_storage::{Appended, RecordError, SimulatedDisk, SimulatedHorizon};

    const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);
    const RULE: StartRule = StartRule {
        slots: 1,
        max_ahead: Duration::from_secs(5),
        lead_max: Duration::from_millis(5),
        skew_max: Duration::from_secs(5),
        run_ahead: false,
    };

    /// Starts a service with the data folder `dir`, waits until it mints, and returns it. An
    /// earlier service with this folder is not shut down first, as after a crash.
    async fn begun(dir: &Path, hand: &ManualClock) -> Arc<Service> {
        let (service, starting) = beginning(dir, hand);
        starting.await.expect("no panic").expect("a start");
        service
    }

    /// Starts a service with the data folder `dir`, without waiting until it mints. Returns the
    /// service and the task of its start.
    fn beginning(
        dir: &Path,
        hand: &ManualClock,
    ) -> (
        Arc<Service>,
        JoinHandle<Result<Arc<HorizonWriterHandle>, StartError>>,
    ) {
        beginning_at(dir, hand, None, RULE)
    }

    /// Starts a service with the data folder `dir`, the operator's floor (earliest time for new
    /// ids) and the start settings `rule`. Returns the service and the task of its start.
    fn beginning_at(
        dir: &Path,
        hand: &ManualClock,
        floor: Option<UnixNanos>,
        rule: StartRule,
    ) -> (
        Arc<Service>,
        JoinHandle<Result<Arc<HorizonWriterHandle>, StartError>>,
    ) {
        let engine = OwnEngine::Embedded {
            data_dir: dir.to_owned(),
        };
        let opened = engine.open(0, floor).expect("the folder is usable");
        let service = assemble(
            &Config::default(),
            Arc::new(hand.clock()),
            &Randomness::Thread,
            &Registry::new(),
        );
        let service = service.expect("the defaults are sound");
        let begins = Arc::clone(&service);
        (
            service,
            tokio::spawn(async move { begin(&begins, opened, rule).await }),
        )
    }

    fn minter<'a>(service: &'a Service, name: &str) -> &'a Arc<Minter> {
        service
            .formats()
            .named(name)
            .expect("a built-in format")
            .minter()
            .expect("it is minted by count")
    }

    async fn mint(service: &Arc<Service>, name: &str, count: u32) -> Vec<u128> {
        let minter = minter(service, name);
        let request = minter
            .request(NonZeroU32::new(count).expect("not zero"), None)
            .expect("a sound request");
        let mut batch = service.mint(minter, &request).await.expect("ids");
        let mut ids = vec![0; usize::try_from(count).expect("small")];
        assert_eq!(batch.fill(&mut ids), ids.len());
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
        assert!(
            after[0] > before[9],
            "{} does not come after {}",
            after[0],
            before[9]
        );
    }

    #[tokio::test]
    async fn a_first_start_waits_for_the_next_whole_second_and_is_counted() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let hand = ManualClock::at(NOON.after(Duration::from_millis(1)));
        let (service, mut starting) = beginning(folder.path(), &hand);
        while service.counters().horizon_cold_starts.get() == 0 {
            tokio::task::yield_now().await;
        }
        hand.advance(Duration::from_millis(998));
        let waited = tokio::time::timeout(3 * BEYOND_THE_LEAD, &mut starting).await;
        assert!(waited.is_err(), "the second has not passed");
        let refusal = service.session().expect_err("it is still waiting");
        assert!(
            matches!(refusal, Refusal::NoRecord { retry_after } if retry_after <= Duration::from_millis(1))
        );
        hand.advance(Duration::from_millis(1));
        starting.await.expect("no panic").expect("a start");
        let id = mint(&service, "snowflake", 1).await[0];
        let time = minter(&service, "snowflake")
            .counted()
            .format
            .split(id)
            .expect("an id")
            .time
            .expect("has a time");
        assert_eq!(time, NOON.after(Duration::from_secs(1)).into());
        assert_eq!(service.counters().horizon_cold_starts.get(), 1);
    }

    /// Another node may have used this slot and its worker numbers, and minted ids up to
    /// `max_ahead` ahead of its clock. A node without a record of those ids must wait as long.
    #[tokio::test]
    async fn a_first_start_among_several_slots_waits_for_as_long_as_a_node_may_be_ahead() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let hand = ManualClock::at(NOON);
        let never = StartRule {
            slots: 2,
            max_ahead: Duration::from_secs(3600),
            ..RULE
        };
        let (service, starting) = beginning_at(folder.path(), &hand, None, never);
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        let refusal = service.session().expect_err("it is still waiting");
        assert!(
            matches!(refusal, Refusal::NoRecord { retry_after } if retry_after == never.max_ahead),
            "{refusal}"
        );
        assert!(
            !folder.path().join("horizon").exists(),
            "nothing is reserved before the wait is over"
        );
        starting.abort();
        assert!(starting.await.is_err(), "the store is closed");
        drop(service);

        let soon = StartRule {
            max_ahead: Duration::from_millis(1),
            ..never
        };
        let (service, starting) = beginning_at(folder.path(), &hand, None, soon);
        hand.advance(Duration::from_secs(7));
        starting.await.expect("no panic").expect("a start");
        let id = mint(&service, "snowflake", 1).await[0];
        let time = minter(&service, "snowflake")
            .counted()
            .format
            .split(id)
            .expect("an id")
            .time
            .expect("has a time");
        assert!(
            time >= NOON.after(Duration::from_secs(7)).into(),
            "it begins where the clock stands after the wait"
        );
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
        let request = minter
            .request(NonZeroU32::MIN, None)
            .expect("a sound request");
        assert!(matches!(
            minter.reserve(&request),
            Err(Denied::Refused(Refusal::ClockBehind { .. }))
        ));
        hand.set_wall(NOON);
        starting.await.expect("no panic").expect("a start");
        assert!(service.readiness().horizon.is_ok());
    }

    #[tokio::test]
    async fn from_a_false_year_the_way_back_repeats_no_id() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let hand = ManualClock::at(NOON);
        let service = begun(folder.path(), &hand).await;
        let mut all = mint(&service, "payment", 100).await;
        let last_record = service.session().expect("it has begun").horizon();
        drop(service);

        let ten_years = Duration::from_secs(10 * 365 * 86_400);
        hand.set_wall(NOON.after(ten_years));
        let service = begun(folder.path(), &hand).await;
        all.extend(mint(&service, "payment", 100).await);
        drop(service);

        hand.set_wall(NOON.after(Duration::from_secs(1)));
        let (service, starting) = beginning(folder.path(), &hand);
        while !matches!(service.session(), Err(Refusal::ClockBehind { .. })) {
            tokio::task::yield_now().await;
        }
        let (count, seconds) = service.counters().clock_regressions();
        assert_eq!(count, 1, "a start that finds it counts it");
        // The step back leads from the horizon (end of the reserved time), a few seconds after noon
        // in ten years, to the clock, one second after noon.
        let back = seconds - (ten_years.as_secs_f64() - 1.0);
        assert!((0.0..10.0).contains(&back), "{seconds} s");
        starting.abort();
        assert!(starting.await.is_err(), "the store is closed");
        drop(service);

        std::fs::remove_file(folder.path().join("horizon")).expect("it is moved away");
        let (service, starting) = beginning_at(folder.path(), &hand, Some(last_record), RULE);
        starting.await.expect("no panic").expect("a start");
        hand.advance(Duration::from_secs(1));
        all.extend(mint(&service, "payment", 100).await);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 300, "no id twice");
    }

    #[tokio::test]
    async fn a_clock_from_before_the_build_is_waited_for() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let hand = ManualClock::at(UnixNanos::from_seconds(86_400));
        let (service, starting) = beginning(folder.path(), &hand);
        let minter = minter(&service, "flax");
        let request = minter
            .request(NonZeroU32::MIN, None)
            .expect("a sound request");
        for _ in 0..3 {
            assert!(
                minter.reserve(&request).is_err(),
                "a random id carries the time too, even before the start has looked at the clock"
            );
            tokio::task::yield_now().await;
        }
        assert!(matches!(
            service.session(),
            Err(Refusal::ClockJumped { .. })
        ));
        hand.set_wall(NOON);
        starting.await.expect("no panic").expect("a start");
        assert!(minter.reserve(&request).is_ok());
    }

    fn event(json: &str) -> Event {
        Event::from_json(json.as_bytes()).expect("an event")
    }

    fn served<'a>(service: &'a Service, name: &str) -> &'a ServedFormat {
        service.formats().named(name).expect("a built-in format")
    }

    /// Appends one event with its own idempotency key.
    async fn append(
        service: &Service,
        ledger: LedgerId,
        name: &str,
    ) -> Result<Appended, ServiceError> {
        let events = vec![event(&format!(r#"{{"event":"{name}","entities":{{}}}}"#))];
        let mark = RequestMark {
            key: KeyHash::of(Some(ledger), name),
            digest: digest_of(&events, None),
        };
        let request = LedgerRequest::Append {
            ledger,
            events,
            expected_previous: None,
            mark,
            import: None,
        };
        service.append(served(service, "evently"), request).await
    }

    async fn create_ledger(service: &Service) -> LedgerId {
        let genesis =
            event(r#"{"event":"Begun","entities":{},"timestamp":"2030-03-17T17:00:00Z"}"#);
        let (_, summary) = service
            .create_ledger(genesis, None, None)
            .await
            .expect("it is the first");
        summary.head.id.ledger()
    }

    /// Lets the service assign an id to a report of a close approach at `second`. Returns the id.
    async fn group(service: &Service, second: i64) -> u128 {
        let served = served(service, "conjunction");
        let IdSource::Reports(minter) = served.source() else {
            panic!("it is minted from reports")
        };
        let report = Report::new(
            UnixTime::from_nanos(i128::from(second) * 1_000_000_000),
            5,
            9,
        )
        .expect("catalogue numbers");
        let sent_report = SentReport {
            report,
            noted: None,
        };
        let request = GroupRequest::new(Arc::clone(minter), &[sent_report]).expect("has an id");
        service
            .group(served, minter, request, &[sent_report], &[], false)
            .await
            .expect("grouped")
            .grouped[0]
            .id
    }

    #[tokio::test]
    async fn a_clock_behind_its_horizon_holds_back_no_ids_with_memory() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let hand = ManualClock::at(NOON);
        let service = begun(folder.path(), &hand).await;
        let ledger = create_ledger(&service).await;
        let first = append(&service, ledger, "first").await.expect("appended");
        let known = group(&service, 1_900_000_000).await;
        let rows = SeriesName::from_text("rows").expect("a name");
        let ten = NonZeroU32::new(10).expect("not zero");
        let block = async |service: &Service| service.give_block(&rows, NonZeroU32::MIN, ten).await;
        assert_eq!(block(&service).await.expect("a number"), 1);
        drop(service);

        hand.set_wall(NOON.before(Duration::from_secs(3600)));
        let (service, starting) = beginning(folder.path(), &hand);
        while !matches!(service.session(), Err(Refusal::ClockBehind { .. })) {
            tokio::task::yield_now().await;
        }
        assert_eq!(service.readiness().records, Ok(()));
        assert_eq!(block(&service).await.expect("it contains no time"), 11);
        let replayed = append(&service, ledger, "first")
            .await
            .expect("answered before");
        assert_eq!(
            replayed,
            Appended {
                is_replayed: true,
                ..first.clone()
            }
        );
        let next = append(&service, ledger, "next")
            .await
            .expect("a chain goes on above its last event");
        assert_eq!(next.links[0].previous, first.links[0].id);
        assert_eq!(
            next.links[0].id.timestamp().micros(),
            first.links[0].id.timestamp().micros() + 1
        );
        assert_eq!(
            service
                .events(ledger, None, 10)
                .expect("readable")
                .items
                .len(),
            3
        );
        assert_eq!(group(&service, 1_900_000_000).await, known);
        assert_ne!(group(&service, 1_900_000_500).await, known);
        assert!(
            matches!(service.session(), Err(Refusal::ClockBehind { .. })),
            "no sequenced id is minted"
        );

        assert!(
            OwnEngine::Embedded {
                data_dir: folder.path().to_owned()
            }
            .open(0, None)
            .is_err(),
            "it is locked"
        );
        starting.abort();
        assert!(starting.await.is_err(), "the start has ended");
        let engine = OwnEngine::Embedded {
            data_dir: folder.path().to_owned(),
        };
        assert!(
            engine.open(0, None).is_err(),
            "it is locked for as long as records are served"
        );
        drop(service);
        assert!(engine.open(0, None).is_ok());
    }

    #[tokio::test]
    async fn under_a_clock_from_before_the_build_nothing_is_appended_and_what_was_is_replayed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let hand = ManualClock::at(NOON);
        let service = begun(folder.path(), &hand).await;
        let ledger = create_ledger(&service).await;
        let first = append(&service, ledger, "first").await.expect("appended");
        drop(service);

        hand.set_wall(UnixNanos::from_seconds(86_400));
        let (service, starting) = beginning(folder.path(), &hand);
        while service.record_writer_handle().is_none() {
            tokio::task::yield_now().await;
        }
        let refused = |outcome| {
            matches!(
                outcome,
                Err(ServiceError::Records(RecordError::Clock(
                    Refusal::ClockJumped { .. }
                )))
            )
        };
        assert!(refused(append(&service, ledger, "next").await.map(drop)));
        assert!(refused(service.readiness().records));
        assert_eq!(
            append(&service, ledger, "first").await,
            Ok(Appended {
                is_replayed: true,
                ..first
            })
        );
        assert_eq!(
            service
                .events(ledger, None, 10)
                .expect("readable")
                .items
                .len(),
            2
        );
        group(&service, 1_900_000_000).await;

        hand.set_wall(NOON);
        starting.await.expect("no panic").expect("a start");
        append(&service, ledger, "next")
            .await
            .expect("the clock is right");
    }

    /// The duration of a sync on the slow disk.
    const SYNC: Duration = Duration::from_millis(40);
    /// The `mint.wait_max` of some nodes in this test. It is shorter than a sync of the slow disk,
    /// and far shorter than the time limit for storing a reservation of more time.
    const WAIT_MAX: Duration = Duration::from_millis(10);
    const NODES: usize = 100;
    const MINTS: usize = 10;

    /// Runs a node that mints one id every five seconds, and returns the number of ids. Each sync
    /// of its disk takes 40 ms, during which the node's clock advances too.
    async fn mint_now_and_then(config: &Config) -> usize {
        let hand = ManualClock::at(NOON);
        let passing = hand.clone();
        let disk = SimulatedDisk::holding(&[], 0).slowed_by(move || {
            std::thread::sleep(SYNC);
            passing.advance(SYNC);
        });
        let service = assemble(
            config,
            Arc::new(hand.clock()),
            &Randomness::Thread,
            &Registry::new(),
        );
        let service = service.expect("a sound configuration");
        begin(&service, SimulatedHorizon::on(disk), RULE)
            .await
            .expect("a first start");
        let minter = minter(&service, "snowflake");
        let one = minter
            .request(NonZeroU32::MIN, None)
            .expect("a sound request");
        let mut ids = Vec::new();
        for _ in 0..MINTS {
            hand.advance(Duration::from_secs(5));
            let mut id = [0];
            service
                .mint(minter, &one)
                .await
                .expect("an id")
                .fill(&mut id);
            ids.push(id[0]);
        }
        assert!(ids.is_sorted_by(|before, after| before < after), "{ids:?}");
        ids.len()
    }

    /// A node that mints rarely has no time reserved when a request arrives, so each of its ids
    /// waits for two syncs. This wait is longer than `mint.wait_max`. Still no id is refused,
    /// because waiting for the disk has its own time limit.
    #[test]
    fn a_thousand_lone_ids_are_all_minted_though_each_waits_for_a_slow_disk() {
        let minted: usize = std::thread::scope(|scope| {
            let node = |number: usize| {
                let mut config = Config::default();
                match number % 3 {
                    0 => config.mint.wait_max = WAIT_MAX,
                    1 => config.mint.wait_max = Duration::ZERO,
                    _ => config.mint.on_exhausted = OnExhausted::Refuse,
                }
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_time()
                    .build()
                    .expect("a runtime");
                scope.spawn(move || runtime.block_on(mint_now_and_then(&config)))
            };
            let nodes: Vec<_> = (0..NODES).map(node).collect();
            nodes
                .into_iter()
                .map(|node| node.join().expect("nothing was refused"))
                .sum()
        });
        assert_eq!(minted, NODES * MINTS);
    }
}
