//! How a node of a fleet begins: it leases a slot from the coordinator, and mints while it has one.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::assembly::{AssemblyError, check_all_slots, kept_formats};
use super::start::{
    StartError, StartRule, keep_clear, records_failed, serve_records, wait_for_clock,
};
use crate::cluster::{
    ClockLimits, Entropy, FleetKeys, KeptHighWater, LeaseRule, NodeName, SlotShare,
};
use crate::server::config::Config;
use crate::service::{Reserver, Service};
use crate::storage::{
    AppendJournal, Coordinator, EngineChoice, EtcdSettings, FleetFolder, FleetRecords, KnownFleet,
    Namespace, Opened, Revision, Room, StoreError,
};
use crate::time::{UnixNanos, built_at};

/// Where the state of a process is.
pub(super) enum State {
    /// In a store of its own, where its slot is its own too.
    Own(Opened),
    /// In the coordinator of a fleet.
    Shared(Box<Fleet>),
}

impl State {
    /// Opens the store, or makes a client of the fleet's.
    ///
    /// # Errors
    /// [`StoreError`]; its kind says whose it is.
    pub(super) fn open(config: &Config, floor: Option<UnixNanos>) -> Result<State, StoreError> {
        match config.engine_choice() {
            EngineChoice::Etcd(settings) => {
                Ok(State::Shared(Box::new(Fleet::of_etcd(&settings, config)?)))
            }
            EngineChoice::Own(engine) => Ok(State::Own(
                engine.open(config.worker.assignment().slot, floor)?,
            )),
        }
    }

    /// The slot of a process that has one for good.
    pub(super) fn slot(&self, config: &Config) -> Option<u32> {
        match self {
            State::Own(_) => Some(config.worker.assignment().slot),
            State::Shared(_) => None,
        }
    }

    /// The same, unless nothing was minted with it yet and a node of the last slot could not mint every format.
    ///
    /// # Errors
    /// [`AssemblyError::Slots`].
    pub(super) fn for_all_slots(
        self,
        config: &Config,
        floor: Option<UnixNanos>,
        service: &Service,
    ) -> Result<State, AssemblyError> {
        let is_new = matches!(&self, State::Own(opened) if opened.horizon().is_none());
        if is_new && floor.is_none() {
            check_all_slots(config, service)?;
        }
        Ok(self)
    }

    /// The horizon that was found, if there was one.
    pub(super) fn horizon(&self) -> Option<UnixNanos> {
        match self {
            State::Own(opened) => opened.horizon(),
            State::Shared(_) => None,
        }
    }
}

/// How often the members of the coordinator are asked how full they are.
const ASK_EVERY: Duration = Duration::from_secs(10);

/// How often a start that waits for the coordinator looks whether it has answered.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A fleet whose slots this node may lease.
pub(super) struct Fleet {
    coordinator: Arc<dyn Coordinator>,
    namespace: Namespace,
    share: SlotShare,
    high_water: KeptHighWater,
    /// Where the node keeps what it was told, if anywhere, and what keeps other processes out.
    data_dir: Option<(PathBuf, FleetFolder)>,
    /// The bytes at which a member of the coordinator takes no more, where it does not tell.
    quota: u64,
}

impl Fleet {
    /// The fleet of this etcd. Nothing is asked yet: a node may start before its coordinator.
    ///
    /// # Errors
    /// [`StoreError`]: another process or a single node has the folder, a file cannot be read, or this build has no etcd.
    fn of_etcd(settings: &EtcdSettings, config: &Config) -> Result<Fleet, StoreError> {
        let (dir, namespace) = (&config.storage.data_dir, settings.namespace.clone());
        let folder = FleetFolder::open(dir, &namespace.to_string())?;
        let coordinator = settings.connect()?;
        let high_water = KeptHighWater::of(dir, &namespace).locked_by(folder.lock());
        let (share, data_dir) = (config.slot_share(), Some((dir.clone(), folder)));
        Ok(Fleet {
            coordinator,
            namespace,
            share,
            high_water,
            data_dir,
            quota: settings.quota,
        })
    }

    /// Begins to look for a slot once the clock can be right, and serves the records of the fleet once this node agrees with
    /// it; sequenced ids are minted whenever there is a slot.
    ///
    /// # Errors
    /// [`StartError`]: this node may not mint in this fleet.
    pub(super) async fn begin(
        self,
        service: &Service,
        rule: StartRule,
        listen: SocketAddr,
    ) -> Result<(), StartError> {
        wait_for_clock(service, rule, None).await;
        // While a slot is looked for the clock may be set back, though not to before this program was built.
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
            rule.founding,
        );
        let (known, room) = (Arc::<KnownFleet>::default(), Arc::new(Room::default()));
        tokio::spawn(watch_room(
            service,
            Arc::clone(&self.coordinator),
            Arc::clone(&room),
            self.quota,
        ));
        service.lease_slots(
            Arc::clone(&self.coordinator),
            lease_rule,
            Arc::clone(&known),
            self.high_water,
        );
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
            error = disagreement(service) => return Err(error),
        }
        let process = instance.low_bits();
        let records = FleetRecords::new(self.coordinator, &self.namespace, known, room, process);
        let failures = service.counters().journal_failures.clone();
        let journal = self.data_dir.map(|(dir, folder)| {
            AppendJournal::of(&dir, &self.namespace, move || failures.inc())
                .locked_by(folder.lock())
        });
        serve_records(service, Arc::new(records.with_journal(journal)));
        Ok(())
    }
}

/// Asks the members of the coordinator now and then how full they are, for as long as the process runs.
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
            // A thread that panicked has said so; the room is what it was.
            let members = tokio::task::spawn_blocking(move || asked.members())
                .await
                .unwrap_or_default();
            if let Some(space) = room.see(&members, quota) {
                gauges.set(space);
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }
}

/// Returns when this node may not mint in its fleet, and never otherwise: without a slot it looks for another one.
async fn disagreement(service: &Service) -> StartError {
    match service.reserver() {
        Some(Reserver::Slot(keeper)) => StartError::Formats(keeper.disagrees().await),
        Some(Reserver::Horizon(_)) | None => panic!("a node of a fleet leases its slot"),
    }
}

/// Returns when a node of a fleet can go on no more.
pub(super) async fn failure(service: &Service) -> StartError {
    tokio::select! {
        error = disagreement(service) => error,
        kind = records_failed(service) => StartError::RecordsFailed(kind),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use prometheus::proto::MetricFamily;
    use prometheus::{Registry, TextEncoder};

    use super::*;
    use crate::cluster::Founding;
    use crate::minting::{Randomness, Refusal};
    use crate::server::assembly::assemble;
    use crate::server::config::{Engine, WorkerConfig};
    use crate::storage::MemoryCoordinator;
    use crate::time::ManualClock;

    const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);
    const RULE: StartRule = StartRule {
        slots: 8,
        max_ahead: Duration::from_secs(5),
        lead_max: Duration::from_millis(5),
        skew_max: Duration::from_secs(5),
        run_ahead: false,
        founding: Founding::First,
    };
    const LISTEN: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

    fn config(more: &str) -> Config {
        let mut config: Config = toml::from_str(more).expect("known settings");
        config.worker = WorkerConfig::leased(8);
        config.storage.engine = Engine::Etcd;
        config
    }

    /// A node of the fleet in this store, which looks for a slot.
    async fn node(
        store: &Arc<MemoryCoordinator>,
        config: &Config,
        hand: &ManualClock,
    ) -> (Result<(), StartError>, Arc<Service>) {
        node_by(RULE, store, config, hand).await
    }

    /// The same by another rule.
    async fn node_by(
        rule: StartRule,
        store: &Arc<MemoryCoordinator>,
        config: &Config,
        hand: &ManualClock,
    ) -> (Result<(), StartError>, Arc<Service>) {
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
        };
        // A founder asks others who would be one, and waits for their answers.
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
        let (store, hand) = (
            Arc::new(MemoryCoordinator::default()),
            ManualClock::at(NOON),
        );
        let (config, mut ids) = (config(""), Vec::new());
        for round in 0..3 {
            let (begun, service) = node(&store, &config, &hand).await;
            begun.expect("it is alike");
            assert_eq!(service.readiness().records, Ok(()), "records need no slot");
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

    /// Lets a node renew its slot until the horizon of it is a minute ahead of the clock.
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

    /// A slot is used no further ahead than 50 s after its renewal was sent, and may be taken while its horizon is 60 s ahead.
    #[tokio::test]
    async fn a_node_whose_slot_was_used_further_ahead_than_it_may_reserve_is_ready_when_it_can_mint()
     {
        let (store, hand) = (
            Arc::new(MemoryCoordinator::default()),
            ManualClock::at(NOON),
        );
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
                    // Or it has become ready a moment ago.
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
    async fn a_node_with_another_format_of_the_same_name_is_told_to_end() {
        let (store, hand) = (
            Arc::new(MemoryCoordinator::default()),
            ManualClock::at(NOON),
        );
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
