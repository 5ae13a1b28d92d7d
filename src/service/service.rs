//! The service: what everything else of this folder works with.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use tracing::warn;

use super::counters::ServiceCounters;
use super::decoding::Decoding;
use super::lifecycle::{Lifecycle, Reserver};
use super::numbers::Blocks;
use crate::cluster::{Entropy, KeptHighWater, LeaseRule, SlotKeeper};
use crate::conjunction::{NoteForm, ObjectRules};
use crate::id::DomainHash;
use crate::minting::{Mint, Refusal, Session, SessionStart};
use crate::service::formats::Formats;
use crate::service::load::Load;
use crate::storage::{Coordinator, HorizonKeeper, KnownFleet, RecordKeeper};
use crate::time::Clock;

/// How long work whose caller has gone is waited for at the end, so that an audit trail has it.
const UNHEARD_MAX: Duration = Duration::from_secs(3);

/// Mints, appends, groups and decodes. From its making on it answers; what it cannot do yet it refuses, with the reason.
pub struct Service {
    pub(super) parts: ServiceParts,
    pub(super) lifecycle: Lifecycle,
    pub(super) blocks: Blocks,
    /// Replaced while the service runs.
    object_rules: RwLock<Arc<ObjectRules>>,
    dropped_lines: OnceLock<DroppedLines>,
}

/// Tells how many log lines were dropped.
type DroppedLines = Box<dyn Fn() -> u64 + Send + Sync>;

/// What a service is made of.
pub struct ServiceParts {
    /// Begins the session in which sequenced ids are minted.
    pub mint: Arc<Mint>,
    /// Every format.
    pub formats: Formats,
    /// Reads ids.
    pub decoding: Decoding,
    /// How reports find their ids.
    pub conjunctions: Conjunctions,
    /// Where ids are put into messages; by the version of each if absent.
    pub note: Option<NoteForm>,
    /// What one request may ask for.
    pub limits: RequestLimits,
    /// The domains that ids can belong to, and the type they have by default.
    pub siq: SiqDefaults,
    /// The slot this node holds for good; `None` in a fleet, where it leases one.
    pub slot: Option<u32>,
    /// What is counted where it happens.
    pub counters: ServiceCounters,
    /// What all callers may take together.
    pub load: Load,
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
    /// How long a request may wait for its turn among long ones.
    pub wait_max: Duration,
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
    /// A service that is starting: random ids are minted and ids are decoded; ids with memory wait for
    /// [`Service::serve_records`], the rest for [`Service::begin`].
    pub fn new(parts: ServiceParts) -> Service {
        let object_rules = RwLock::new(Arc::new(ObjectRules::default()));
        Service {
            parts,
            lifecycle: Lifecycle::default(),
            blocks: Blocks::default(),
            object_rules,
            dropped_lines: OnceLock::new(),
        }
    }

    /// From now on ids with memory are served. They wait for no session.
    ///
    /// # Panics
    /// When they are served already.
    pub fn serve_records(&self, keeper: RecordKeeper) {
        self.lifecycle.serve_records(keeper);
    }

    /// From now on everything is minted, in this session, whose horizon this thread raises.
    ///
    /// # Panics
    /// When a session has begun already.
    pub fn begin(&self, session: Arc<Session>, keeper: HorizonKeeper) {
        // Before the session: whoever mints in it may need the horizon raised.
        self.lifecycle.begin(Reserver::Horizon(keeper));
        self.parts.mint.begin(session);
    }

    /// From now on a slot of the fleet is looked for, and everything is minted while there is one. What the fleet has agreed
    /// on is told by `known` once this node agrees with it; `kept` is what it knows of the coordinator.
    ///
    /// # Panics
    /// When that has begun already.
    pub fn lease_slots(
        &self,
        coordinator: Arc<dyn Coordinator>,
        rule: LeaseRule,
        known: Arc<KnownFleet>,
        kept: KeptHighWater,
    ) {
        let mint = Arc::clone(&self.parts.mint);
        let cold_starts = self.counters().horizon_cold_starts.clone();
        let count_founding = move || cold_starts.inc();
        let keeper = SlotKeeper::start(
            mint,
            coordinator,
            rule,
            known,
            kept,
            Entropy::of_kernel(),
            count_founding,
        );
        self.lifecycle.begin(Reserver::Slot(keeper));
    }

    /// Gives the slot back, if it is leased: after the last request was answered, and after work whose caller has gone.
    pub async fn release_slot(&self) {
        let unheard = self.load().requests.wait_for_unheard(UNHEARD_MAX).await;
        if unheard > 0 {
            warn!(
                unheard,
                "{unheard} requests whose callers had gone take longer than {UNHEARD_MAX:?}: nothing tells of them"
            );
        }
        if let Some(Reserver::Slot(keeper)) = self.reserver() {
            keeper.release().await;
        }
    }

    /// Why nothing sequenced is minted yet, said to callers until a session begins.
    pub fn wait_for(&self, reason: Refusal) {
        self.parts.mint.wait_for(reason);
    }

    /// What has arrived is answered, but no more should come: this node says that it is not ready.
    pub fn drain(&self) {
        self.lifecycle.drain();
    }

    /// The thread that makes records durable; `None` until they are served.
    pub fn record_keeper(&self) -> Option<&RecordKeeper> {
        self.lifecycle.records()
    }

    /// The thread that reserves time to mint in; `None` while the service is starting.
    #[inline]
    pub fn reserver(&self) -> Option<&Reserver> {
        self.lifecycle.reserver()
    }

    /// A session that begins at `start`, for [`Service::begin`] once its first horizon is durable.
    pub fn prepare(&self, start: SessionStart) -> Arc<Session> {
        self.parts.mint.prepare(start)
    }

    /// The session in which sequenced ids are minted.
    ///
    /// # Errors
    /// Why there is none.
    pub fn session(&self) -> Result<Arc<Session>, Refusal> {
        self.parts.mint.session()
    }

    /// What all callers may take together, and what of it is taken.
    pub fn load(&self) -> &Load {
        &self.parts.load
    }

    /// The clock that ids are minted by.
    pub fn clock(&self) -> &Arc<Clock> {
        self.parts.mint.clock()
    }

    /// Every format.
    pub fn formats(&self) -> &Formats {
        &self.parts.formats
    }

    /// Reads ids.
    pub fn decoding(&self) -> &Decoding {
        &self.parts.decoding
    }

    /// How reports find their ids.
    pub fn conjunctions(&self) -> Conjunctions {
        self.parts.conjunctions
    }

    /// Where ids are put into messages; by the version of each if absent.
    pub fn note(&self) -> Option<NoteForm> {
        self.parts.note
    }

    /// Which objects the designators of reports stand for.
    pub fn object_rules(&self) -> Arc<ObjectRules> {
        Arc::clone(
            &self
                .object_rules
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// From now on reports are read by these rules; what has been answered stays.
    pub fn replace_object_rules(&self, rules: ObjectRules) {
        *self
            .object_rules
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// What one request may ask for.
    pub fn limits(&self) -> &RequestLimits {
        &self.parts.limits
    }

    /// The domains that ids can belong to.
    pub fn siq(&self) -> &SiqDefaults {
        &self.parts.siq
    }

    /// From now on this tells how many log lines were dropped; only the first such call counts.
    pub fn count_dropped_lines_by(&self, dropped: impl Fn() -> u64 + Send + Sync + 'static) {
        let _ = self.dropped_lines.set(Box::new(dropped));
    }

    /// Log lines that were dropped so far; none where nobody counts them.
    pub(super) fn dropped_lines(&self) -> u64 {
        self.dropped_lines.get().map_or(0, |dropped| dropped())
    }

    /// What is counted where it happens.
    pub fn counters(&self) -> &ServiceCounters {
        &self.parts.counters
    }
}
