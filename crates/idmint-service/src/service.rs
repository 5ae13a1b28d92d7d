//! The [`Service`] type, which the rest of this crate extends.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use tracing::warn;

use super::counters::ServiceCounters;
use super::decoding::Decoding;
use super::expiry::Expiry;
use super::numbers::Blocks;
use crate::formats::Formats;
use crate::load::Load;
use idmint_core::id::DomainHash;
use idmint_core::minting::{Mint, Refusal, Session, SessionStart};
use idmint_core::time::Clock;
use idmint_records::conjunction::{NoteForm, ObjectRules};
use idmint_records::ledger::KeptTemplates;
use idmint_storage::{RecordWriterHandle, Reserver};

/// The maximum time that a shutdown waits for requests whose callers have already disconnected.
/// Until then, these requests can still end and be recorded in the audit trail.
const DETACHED_MAX: Duration = Duration::from_secs(3);

/// The service, which mints and decodes ids, appends events to ledgers and assigns ids to
/// conjunction reports. A service accepts requests as soon as it is created. Requests that cannot
/// be served yet are refused with the reason.
pub struct Service {
    pub(super) parts: ServiceParts,
    pub(super) blocks: Blocks,
    /// Empty until the service can read and write records.
    records: OnceLock<RecordWriterHandle>,
    /// The templates that were configured when the store began to keep the text form of each
    /// number. A template, such as `INV-{n:05}`, defines the text of a number. Older numbers have
    /// no stored form, so they are written with these templates. Empty until the service can read
    /// records.
    pub(super) first_templates: OnceLock<KeptTemplates>,
    /// The reserver, which stores the time up to which ids may be minted. Empty during the start.
    reserver: OnceLock<Arc<dyn Reserver>>,
    /// `true` once the first minting session has begun. From then on, no request waits for the
    /// start. Written by the method `is_starting`. `Relaxed`, because the flag only saves looking
    /// at the session again.
    pub(super) has_begun: AtomicBool,
    /// The number of mints that wait for the start of minting. Written by `wait_for_start`.
    /// `Relaxed`, because the number guards no other memory.
    pub(super) waiting_for_start: AtomicUsize,
    /// `true` once the process is draining, which means that it is about to end. Set once, before
    /// the listener is notified. `Relaxed`, because the flag only affects the reported readiness.
    is_draining: AtomicBool,
    /// The rules that map the names of objects in reports to object numbers. The rules may be
    /// replaced while the service runs.
    object_rules: RwLock<Arc<ObjectRules>>,
    dropped_lines: OnceLock<DroppedLines>,
    /// The expiry times of credentials. The key is the section of the configuration that names the
    /// credentials' files.
    pub(super) expiries: Mutex<BTreeMap<&'static str, Vec<Expiry>>>,
}

/// A function that returns the number of dropped log lines.
type DroppedLines = Box<dyn Fn() -> u64 + Send + Sync>;

/// The parts from which a service is created.
pub struct ServiceParts {
    /// The mint, which holds the current minting session: a period in which this process keeps its
    /// worker numbers. Sequenced ids are minted in a session.
    pub mint: Arc<Mint>,
    /// All formats that this process serves.
    pub formats: Formats,
    /// The decoder of ids.
    pub decoding: Decoding,
    /// The way in which conjunction reports get their ids.
    pub conjunctions: Conjunctions,
    /// The form in which ids of conjunctions are written into messages: as a comment or as a
    /// keyword. If `None`, the version of each message determines the form.
    pub note: Option<NoteForm>,
    /// The limits of one request.
    pub limits: RequestLimits,
    /// The domains and the default type for SIQ ids.
    pub siq: SiqDefaults,
    /// The configured slot, which determines the worker numbers in this node's ids. `None` in a
    /// fleet, where a node leases its slot.
    pub slot: Option<u32>,
    /// The counters that the service increments when an event happens.
    pub counters: ServiceCounters,
    /// The limits that apply to all callers together.
    pub load: Load,
}

/// The way in which conjunction reports get their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conjunctions {
    /// The id of each report is computed only from the report itself, including its time. No
    /// conjunctions are stored.
    Pure,
    /// Reports are matched with stored conjunctions.
    Stored {
        /// The time for which a conjunction is kept after its time of closest approach. If `None`,
        /// a conjunction is kept forever.
        retention: Option<Duration>,
        /// The maximum difference in times of closest approach at which an analysis joins the
        /// stored close approach that its `event_id` names.
        analysis_reach: Duration,
    },
}

/// The limits of one request.
#[derive(Debug, Clone, Copy)]
pub struct RequestLimits {
    /// The maximum number of ids in one request, 1 to 10 000 000.
    pub batch_max: u32,
    /// The maximum time until a request body has arrived completely.
    pub body_timeout: Duration,
    /// The maximum time that a request for a large batch waits for its permit to start.
    pub wait_max: Duration,
}

/// The settings for ids of the format SIQ, which contain a type and a domain.
#[derive(Debug, Clone, Default)]
pub struct SiqDefaults {
    /// The type of object, such as `user`, in an id of the format SIQ if a request names no type.
    pub default_type: Option<String>,
    /// The domain in an id of the format SIQ if a request names no domain. `None` if no domain is
    /// configured, as in development.
    pub default_domain: Option<DomainHash>,
    /// All domains that a request may name.
    pub domains: HashMap<String, DomainHash>,
}

impl Service {
    /// Creates a service that is still starting, and so cannot serve all requests yet.
    ///
    /// The service can decode ids and mint random ids at once. After [`Service::serve_records`], it
    /// can read and write records. After [`Service::begin`], it can mint ids that contain the time.
    pub fn new(parts: ServiceParts) -> Service {
        let object_rules = RwLock::new(Arc::new(ObjectRules::default()));
        Service {
            parts,
            blocks: Blocks::default(),
            records: OnceLock::new(),
            first_templates: OnceLock::new(),
            reserver: OnceLock::new(),
            has_begun: AtomicBool::new(false),
            waiting_for_start: AtomicUsize::new(0),
            is_draining: AtomicBool::new(false),
            object_rules,
            dropped_lines: OnceLock::new(),
            expiries: Mutex::default(),
        }
    }

    /// Begins to serve requests that read or write records. Such requests do not need a minting
    /// session. `first_templates` are the templates, such as `INV-{n:05}`, that were configured
    /// when the store began to keep the text form of each number. Older numbers have no stored
    /// form, so they are written with these templates.
    ///
    /// # Panics
    /// Panics if this method was called before.
    pub fn serve_records(&self, writer: RecordWriterHandle, first_templates: KeptTemplates) {
        assert!(
            self.first_templates.set(first_templates).is_ok(),
            "a program has one writer of records"
        );
        assert!(
            self.records.set(writer).is_ok(),
            "a program has one writer of records"
        );
    }

    /// Begins to mint in `session`. `reserver` reserves more time for the session by raising its
    /// horizon, which is the time up to which ids may be minted.
    ///
    /// # Panics
    /// Panics if the service already has a reserver.
    pub fn begin(&self, session: Arc<Session>, reserver: Arc<dyn Reserver>) {
        // Set the reserver first, because mints in the new session may immediately need more
        // reserved time.
        self.begin_leasing(reserver);
        self.parts.mint.begin(session);
    }

    /// Sets the reserver, which reserves time for minting. In a fleet, the reserver also leases the
    /// node's slot, and begins and ends minting sessions on the value of
    /// [`mint_of_sessions`](Self::mint_of_sessions).
    ///
    /// # Panics
    /// Panics if the service already has a reserver.
    pub fn begin_leasing(&self, reserver: Arc<dyn Reserver>) {
        assert!(self.reserver.set(reserver).is_ok(), "a program begins once");
    }

    /// Returns the object that begins and ends minting sessions. A node of a fleet uses it while it
    /// leases a slot.
    pub fn mint_of_sessions(&self) -> &Arc<Mint> {
        &self.parts.mint
    }

    /// Waits for requests whose callers have disconnected. Then releases the slot if the node
    /// leases it. Call this method after the last response was sent.
    pub async fn release_slot(&self) {
        let detached = self.load().requests.wait_for_detached(DETACHED_MAX).await;
        if detached > 0 {
            warn!(
                detached,
                "{detached} requests of disconnected callers take longer than {DETACHED_MAX:?} and are abandoned"
            );
        }
        if let Some(reserver) = self.reserver() {
            reserver.release().await;
        }
    }

    /// Sets the reason with which requests for sequenced ids, which contain the time, are refused
    /// until a minting session begins.
    pub fn wait_for(&self, reason: Refusal) {
        self.parts.mint.wait_for(reason);
    }

    /// Reports this node as not ready, so that load balancers send no more requests. Requests that
    /// have already arrived are still served.
    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// `true` once the process was asked to shut down.
    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Returns the handle of the thread that writes records, or `None` until the service serves
    /// records.
    pub fn record_writer_handle(&self) -> Option<&RecordWriterHandle> {
        self.records.get()
    }

    /// Returns the reserver, which stores the time up to which ids may be minted. Returns `None`
    /// while the service is starting.
    #[inline]
    pub fn reserver(&self) -> Option<&dyn Reserver> {
        self.reserver.get().map(|reserver| &**reserver)
    }

    /// Creates a minting session that starts at `start`. Pass the session to [`Service::begin`]
    /// once its first reservation is durable.
    pub fn prepare(&self, start: SessionStart) -> Arc<Session> {
        self.parts.mint.prepare(start)
    }

    /// Returns the current minting session: the period for which this process has worker numbers.
    ///
    /// # Errors
    /// Returns the [`Refusal`] that explains why no minting session is active.
    pub fn session(&self) -> Result<Arc<Session>, Refusal> {
        self.parts.mint.session()
    }

    /// Returns the limits on the load of all callers together, and their current usage.
    pub fn load(&self) -> &Load {
        &self.parts.load
    }

    /// Returns the clock that determines the time in ids.
    pub fn clock(&self) -> &Arc<Clock> {
        self.parts.mint.clock()
    }

    /// Returns all formats that this process serves.
    pub fn formats(&self) -> &Formats {
        &self.parts.formats
    }

    /// Returns the decoder of ids.
    pub fn decoding(&self) -> &Decoding {
        &self.parts.decoding
    }

    /// Returns the way in which conjunction reports get their ids.
    pub fn conjunctions(&self) -> Conjunctions {
        self.parts.conjunctions
    }

    /// Returns the form in which ids of conjunctions are written into messages: as a comment or as
    /// a keyword. If `None`, the version of each message determines the form.
    pub fn note(&self) -> Option<NoteForm> {
        self.parts.note
    }

    /// Returns the rules that map the names of objects in reports to object numbers.
    pub fn object_rules(&self) -> Arc<ObjectRules> {
        Arc::clone(
            &self
                .object_rules
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Replaces the rules that map the names of objects in reports to object numbers. Ids that were
    /// assigned earlier do not change.
    pub fn replace_object_rules(&self, rules: ObjectRules) {
        *self
            .object_rules
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// Returns the limits of one request.
    pub fn limits(&self) -> &RequestLimits {
        &self.parts.limits
    }

    /// Returns the settings for ids of the format SIQ: the domains and the default type.
    pub fn siq(&self) -> &SiqDefaults {
        &self.parts.siq
    }

    /// Sets the function that reports how many log lines were dropped. Only the first call has an
    /// effect.
    pub fn count_dropped_lines_by(&self, dropped: impl Fn() -> u64 + Send + Sync + 'static) {
        let _ = self.dropped_lines.set(Box::new(dropped));
    }

    /// Returns the number of log lines that were dropped so far, or 0 if no function that counts
    /// them was set.
    pub(super) fn dropped_lines(&self) -> u64 {
        self.dropped_lines.get().map_or(0, |dropped| dropped())
    }

    /// Returns the counters that the service increments when an event happens.
    pub fn counters(&self) -> &ServiceCounters {
        &self.parts.counters
    }
}
