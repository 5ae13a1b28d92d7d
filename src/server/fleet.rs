//! The start of a node in a fleet. The node leases a slot from the coordinator of the fleet, which
//! is an etcd, and mints while it holds the slot.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::assembly::kept_formats;
use super::start::{
    RunOptions, StartError, StartRule, keep_clear, records_failed, serve_agreed_records,
    wait_for_clock,
};
use crate::server::config::Config;
use idmint_core::time::built_at;
use idmint_fleet::{AppendJournal, Coordinator, FleetRecords, KnownFleet, Revision, Room};
use idmint_fleet::{
    ClockLimits, Entropy, FleetKeys, Founding, KeptHighWater, LeaseRule, NodeName, SlotKeeper,
};
use idmint_service::Service;
use idmint_storage::{
    AgreedRules, EtcdSettings, FailureKind, FleetFolder, Namespace, Records, Reserver, SlotShare,
    StoreError,
};

/// The interval at which the members of the coordinator (etcd) are asked how much space they use.
const ASK_EVERY: Duration = Duration::from_secs(10);

/// The interval at which a starting node checks if the coordinator (etcd) has responded, and
/// repeats failed requests.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A fleet from which this node may lease a slot.
pub(super) struct Fleet {
    coordinator: Arc<dyn Coordinator>,
    namespace: Namespace,
    share: SlotShare,
    high_water: KeptHighWater,
    /// The data folder of the node, and the lock that keeps other processes from using the folder.
    data_dir: Option<(PathBuf, FleetFolder)>,
    /// The assumed limit of the database size, in bytes, of an etcd member that reports no limit.
    quota: u64,
    /// The operator's statement about whether ids were ever minted in this namespace
    /// (`--new-fleet`). The statement is used only if the namespace has no fleet yet.
    founding: Founding,
}

impl Fleet {
    /// Prepares the connection to the fleet in this etcd. No request is sent yet, because a node
    /// may start before its etcd does.
    ///
    /// # Errors
    /// Returns [`StoreError`] if another process uses the node's folder, if the folder belongs to a
    /// single node, if a file in it cannot be read or was written by a later version, or if this
    /// build has no etcd.
    pub(super) fn of_etcd(
        settings: &EtcdSettings,
        config: &Config,
        options: RunOptions,
    ) -> Result<Fleet, StoreError> {
        let (dir, namespace) = (&config.storage.data_dir, settings.namespace.clone());
        let folder = FleetFolder::open(dir, &namespace.to_string())?;
        let coordinator = idmint_fleet::connect(settings)?;
        let high_water = KeptHighWater::of(dir, &namespace).locked_by(folder.lock());
        high_water.check_version()?;
        let (share, data_dir) = (config.slot_share(), Some((dir.clone(), folder)));
        Ok(Fleet {
            coordinator,
            namespace,
            share,
            high_water,
            data_dir,
            quota: settings.quota,
            founding: match options.new_fleet {
                true => Founding::First,
                false => Founding::Again(config.storage.window()),
            },
        })
    }

    /// Waits until the clock is plausible, then starts to look for a free slot. From then on, the
    /// node mints sequenced ids while it holds a slot. Returns when this node's formats and series
    /// agree with the fleet's, so that the fleet's records are served.
    ///
    /// # Errors
    /// Returns [`StartError`] if this node may not mint in this fleet.
    pub(super) async fn begin(
        self,
        service: &Service,
        rule: StartRule,
        listen: SocketAddr,
    ) -> Result<Arc<SlotKeeper>, StartError> {
        wait_for_clock(service, rule, None).await;
        // Skip all ids of other generators whose time is after the build of this program, and not
        // only those whose time is in the future. While the node looks for a slot, the clock may
        // step back, but a clock before the build time is not accepted.
        keep_clear(service, &rule, built_at()).await?;
        let machine = rustix::system::uname();
        let node = machine.nodename().to_string_lossy().into_owned();
        let instance = Entropy::of_kernel().nonce();
        let node = NodeName {
            instance,
            node,
            addr: listen.to_string(),
        };
        let keys = FleetKeys::below(self.namespace.key_prefix());
        let clock = ClockLimits {
            max_ahead: rule.max_ahead,
            skew_max: rule.skew_max,
        };
        let lease_rule = LeaseRule::new(
            keys,
            self.share,
            kept_formats(service),
            node,
            clock,
            self.founding,
        );
        let (known, room) = (Arc::<KnownFleet>::default(), Arc::new(Room::default()));
        tokio::spawn(watch_room(
            service,
            Arc::clone(&self.coordinator),
            Arc::clone(&room),
            self.quota,
        ));
        let cold_starts = service.counters().horizon_cold_starts.clone();
        let keeper = Arc::new(SlotKeeper::start(
            Arc::clone(service.mint_of_sessions()),
            Arc::clone(&self.coordinator),
            lease_rule,
            Arc::clone(&known),
            self.high_water,
            Entropy::of_kernel(),
            move || cold_starts.inc(),
        ));
        service.begin_leasing(Arc::clone(&keeper) as Arc<dyn Reserver>);
        let has_agreed = async {
            while known
                .meta()
                .is_none_or(|revision| revision == Revision::ABSENT)
            {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::select! {
            () = has_agreed => {}
            error = keeper.disagrees() => return Err(StartError::Formats(error)),
        }
        let process = instance.low_bits();
        let records = FleetRecords::new(self.coordinator, &self.namespace, known, room, process);
        let failures = service.counters().journal_failures.clone();
        let journal = self.data_dir.map(|(dir, folder)| {
            AppendJournal::of(&dir, &self.namespace, move || failures.inc())
                .locked_by(folder.lock())
        });
        let records: Records = Arc::new(records.with_journal(journal));
        let agreed = tokio::select! {
            agreed = agree_on_rules(service, &records) => agreed?,
            error = keeper.disagrees() => return Err(StartError::Formats(error)),
        };
        serve_agreed_records(service, records, agreed);
        Ok(keeper)
    }
}

/// Checks that the series of numbers in this fleet conform to the configured rules. Repeats the
/// check while etcd is full or does not respond, or while the fleet refuses records.
async fn agree_on_rules(service: &Service, records: &Records) -> Result<AgreedRules, StoreError> {
    let mut logged = String::new();
    loop {
        let (rules, asked) = (service.number_rules().clone(), Arc::clone(records));
        let agree = move || match asked.obstacle() {
            Some(_) => asked.reopen().and_then(|()| asked.agree_on_rules(&rules)),
            None => asked.agree_on_rules(&rules),
        };
        let agreed = tokio::task::spawn_blocking(agree)
            .await
            .expect("it does not panic, and nobody aborts it");
        match agreed {
            Err(error)
                if matches!(
                    error.failure_kind(),
                    FailureKind::Unreachable | FailureKind::Full
                ) =>
            {
                let reason = error.to_string();
                if reason != logged {
                    tracing::warn!("this node cannot open its records yet: {reason}");
                    logged = reason;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
            agreed => return agreed,
        }
    }
}

/// Asks the members of the coordinator (etcd) at intervals how much space they use. Runs until the
/// process ends.
fn watch_room(
    service: &Service,
    coordinator: Arc<dyn Coordinator>,
    room: Arc<Room>,
    quota: u64,
) -> impl Future<Output = ()> + use<> {
    let gauges = service.counters().coordinator_space.clone();
    async move {
        loop {
            let asked = Arc::clone(&coordinator);
            // If the query of the etcd members panicked, the panic has already been logged. The
            // last known amount of used space then stays valid.
            let members = tokio::task::spawn_blocking(move || asked.members())
                .await
                .unwrap_or_default();
            if let Some(space) = room.see(&members, quota) {
                gauges.set(space.used, space.quota);
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }
}

/// Waits until this node must end, and returns the reason: its formats differ from the fleet's
/// formats, or the records can no longer be used.
pub(super) async fn failure(service: &Service, keeper: &SlotKeeper) -> StartError {
    tokio::select! {
        error = keeper.disagrees() => StartError::Formats(error),
        kind = records_failed(service) => StartError::RecordsFailed(kind),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use prometheus::proto::MetricFamily;
    use prometheus::{Registry, TextEncoder};

    use super::*;
    use crate::server::assembly::assemble;
    use crate::server::config::{Engine, WorkerConfig};
    use idmint_core::minting::{Randomness, Refusal};
    use idmint_core::time::{ManualClock, UnixNanos};
    use idmint_fleet::MemoryCoordinator;
    use idmint_records::ledger::{NumberBounds, NumberRequest, SeriesName};

    const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);
    const RULE: StartRule = StartRule {
        slots: 8,
        max_ahead: Duration::from_secs(5),
        lead_max: Duration::from_millis(5),
        skew_max: Duration::from_secs(5),
        run_ahead: false,
    };
    const LISTEN: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

    fn config(more: &str) -> Config {
        let mut config: Config = toml::from_str(more).expect("known settings");
        config.worker = WorkerConfig::leased(8);
        config.storage.engine = Engine::Etcd;
        config
    }

    /// Creates a node of the fleet in this store. The node looks for a slot.
    async fn node(
        store: &Arc<MemoryCoordinator>,
        config: &Config,
        hand: &ManualClock,
    ) -> (Result<Arc<SlotKeeper>, StartError>, Arc<Service>) {
        node_by(RULE, store, config, hand).await
    }

    /// Creates a node like `node`, with a different start rule.
    async fn node_by(
        rule: StartRule,
        store: &Arc<MemoryCoordinator>,
        config: &Config,
        hand: &ManualClock,
    ) -> (Result<Arc<SlotKeeper>, StartError>, Arc<Service>) {
        let service = assemble(
            config,
            Arc::new(hand.clock()),
            &Randomness::Thread,
            &Registry::new(),
        );
        let service = service.expect("a sound configuration");
        let coordinator = Arc::clone(store) as Arc<dyn Coordinator>;
        let (share, high_water) = (config.slot_share(), KeptHighWater::default());
        let fleet = Fleet {
            coordinator,
            namespace: Namespace::default(),
            share,
            high_water,
            data_dir: None,
            quota: 2 << 30,
            founding: Founding::First,
        };
        // A node that founds a fleet waits a while for the responses of other founders. The clock
        // of the test must therefore advance during the start.
        let begun = tokio::select! {
            begun = fleet.begin(&service, rule, LISTEN) => begun,
            () = pass_until(hand, || false) => unreachable!("it is never so"),
        };
        (begun, service)
    }

    async fn pass_until(hand: &ManualClock, is_so: impl Fn() -> bool) {
        while !is_so() {
            hand.advance(Duration::from_millis(10));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn mint(service: &Arc<Service>) -> Result<u128, Refusal> {
        let minter = service
            .formats()
            .named("snowflake")
            .expect("a built-in format")
            .minter()
            .expect("minted");
        let request = minter
            .request(NonZeroU32::MIN, None)
            .expect("a sound request");
        let mut batch = service.mint(minter, &request).await?;
        let mut id = [0];
        assert_eq!(batch.fill(&mut id), 1);
        Ok(id[0])
    }

    #[tokio::test]
    async fn a_node_of_a_fleet_mints_in_its_slot_and_gives_it_back() {
        let store = Arc::new(MemoryCoordinator::default());
        let hand = ManualClock::at(NOON);
        let (config, mut ids) = (config(""), Vec::new());
        for round in 0..3 {
            let (begun, service) = node(&store, &config, &hand).await;
            begun.expect("it is alike");
            // Records need no slot, which the node does not get while the clock stands still.
            while service.readiness().records.is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let is_founded = round > 0;
            let is_written = |family: &MetricFamily| !family.get_metric().is_empty();
            assert!(
                service.metric_families().iter().all(is_written),
                "without worker numbers too"
            );
            assert!(
                is_founded || matches!(mint(&service).await, Err(Refusal::NoWorkerSlot { .. })),
                "not at once"
            );
            let scraped = TextEncoder::new().encode_to_string(&service.metric_families());
            assert!(
                scraped
                    .expect("without a slot too")
                    .contains("idmint_worker_slot")
            );
            pass_until(&hand, || service.readiness().horizon.is_ok()).await;
            let slot = service.readiness().slot.expect("it is ready");
            let snowflake = service
                .formats()
                .named("snowflake")
                .expect("a built-in format");
            assert_eq!(snowflake.workers().first(), Some(&slot));
            ids.push(mint(&service).await.expect("it has a slot"));
            service.release_slot().await;
            assert!(matches!(
                mint(&service).await,
                Err(Refusal::NoWorkerSlot { .. })
            ));
            assert_eq!(service.readiness().slot, None);
            let metrics = TextEncoder::new().encode_to_string(&service.metric_families());
            assert!(
                metrics
                    .expect("they are told without a slot too")
                    .contains("idmint_worker_slot -1")
            );
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 3, "no id twice");
    }

    /// Lets a node renew its slot until it has reserved a minute ahead of the clock.
    async fn reserve_a_minute(store: &MemoryCoordinator, service: &Service, hand: &ManualClock) {
        let keys = FleetKeys::below(Namespace::default().key_prefix());
        let horizon = || {
            let horizons = store
                .read(&keys.all_slots())
                .expect("memory answers")
                .ranges
                .swap_remove(1);
            let record: serde_json::Value =
                serde_json::from_slice(&horizons[0].value).expect("JSON");
            UnixNanos::new(record["h_ms"].as_u64().expect("a number") * 1_000_000)
        };
        let mut last = UnixNanos::default();
        while horizon().since(service.clock().now()) < Duration::from_secs(59) {
            if horizon() > last {
                last = horizon();
                hand.advance(Duration::from_secs(5));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// A node mints at most 50 s ahead of the last renewal of its slot. The slot of this test has a
    /// horizon that is 60 s ahead of the clock when another node takes it. That node must report
    /// that it is not ready until it can mint.
    #[tokio::test]
    async fn a_node_whose_slot_was_used_further_ahead_than_it_may_reserve_is_ready_when_it_can_mint()
     {
        let store = Arc::new(MemoryCoordinator::default());
        let hand = ManualClock::at(NOON);
        let (mut config, mut ids) = (config(""), Vec::new());
        config.worker = WorkerConfig::leased(1);
        for (max_ahead, must_wait) in [(5, false), (60, true)] {
            let rule = StartRule {
                max_ahead: Duration::from_secs(max_ahead),
                ..RULE
            };
            let (begun, service) = node_by(rule, &store, &config, &hand).await;
            begun.expect("it is alike");
            let mut has_waited = false;
            let minted = loop {
                pass_until(&hand, || service.readiness().slot.is_some()).await;
                let told = service.readiness().horizon;
                match (told, mint(&service).await) {
                    // The node may have become ready between the two calls.
                    (Ok(_) | Err(Refusal::SlotAhead { .. }), Ok(id)) => break id,
                    (Err(Refusal::SlotAhead { .. }), Err(Refusal::SlotAhead { .. })) => {
                        has_waited = true
                    }
                    (told, refused) => panic!("ready: {told:?}, minted: {refused:?}"),
                }
                hand.advance(Duration::from_millis(100));
                tokio::time::sleep(Duration::from_millis(1)).await;
            };
            assert_eq!(has_waited, must_wait, "{max_ahead} s");
            ids.push(minted);
            if !must_wait {
                reserve_a_minute(&store, &service, &hand).await;
            }
            service.release_slot().await;
        }
        assert!(ids[0] < ids[1]);
    }

    #[tokio::test]
    async fn a_node_that_changes_the_kind_of_a_series_with_numbers_is_told_to_end() {
        let store = Arc::new(MemoryCoordinator::default());
        let hand = ManualClock::at(NOON);
        let (begun, first) = node(&store, &config(""), &hand).await;
        begun.expect("it is the first");
        let series = SeriesName::from_text("acme").expect("a name");
        let bounds = NumberBounds::default();
        let request = NumberRequest::new(series, NonZeroU32::MIN, bounds, "a", None);
        first.give_numbers(request).await.expect("a number");
        let blocks = |pattern| {
            config(&format!(
                "[numbers.b]\npattern = '{pattern}'\nkind = 'blocks'"
            ))
        };
        let (begun, _other) = node(&store, &blocks("other"), &hand).await;
        begun.expect("its series has no numbers");
        let (begun, _third) = node(&store, &blocks("acme"), &hand).await;
        let problem = begun.expect_err("the series is gapless");
        assert_eq!(problem.failure_kind(), FailureKind::Disagrees);
        assert!(problem.to_string().contains("the series acme"), "{problem}");
    }

    #[tokio::test]
    async fn a_node_with_another_format_of_the_same_name_is_told_to_end() {
        let store = Arc::new(MemoryCoordinator::default());
        let hand = ManualClock::at(NOON);
        let (begun, _first) = node(&store, &config(""), &hand).await;
        begun.expect("it is the first");
        let other = config("[formats.snowflake]\nepoch = '2021-01-01T00:00:00Z'");
        let (begun, _other) = node(&store, &other, &hand).await;
        let problem = begun.expect_err("another format");
        assert!(
            problem.to_string().contains("format \"snowflake\""),
            "{problem}"
        );
    }
}
