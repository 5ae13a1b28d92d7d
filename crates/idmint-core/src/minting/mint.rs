//! Creates the minters of all sequenced and random formats, and starts the session in which a
//! process has worker numbers. Sequenced ids are minted only during a session.

use std::sync::Arc;
use std::time::Duration;

use super::batch::CountedFormat;
use super::minter::{Minter, MinterKind};
use super::refusal::Refusal;
use super::session::Session;
use super::session_start::SessionStart;
use super::session_state::SessionState;
use crate::id::Format;
use crate::minting::random::{RandomMinter, Randomness};
use crate::minting::sequenced::{Beginning, Holding, Lanes, SequencedFormat, SlotLanes};
use crate::time::Clock;

/// The settings that all minters of a process share.
#[derive(Debug, Clone, Copy)]
pub struct MintSettings {
    /// The maximum time for which a response may be held until the clock reaches the time of its
    /// ids. With zero, a request that would have to wait is refused.
    pub wait_max: Duration,
    /// The maximum time by which the ids of a lane may be ahead of the clock.
    pub lead_max: Duration,
    /// The maximum time that one extension of the horizon may reserve.
    pub window: Duration,
    /// The value of every field of kind shard.
    pub shard: u64,
}

/// Creates the minters of a process, and starts the session in which sequenced formats are minted.
///
/// ```
/// use std::num::NonZeroU32;
/// use std::sync::Arc;
/// use std::time::Duration;
/// use idmint_core::id::{FormatDefinition, PRESETS};
/// use idmint_core::minting::{Durable, LaneCount, LaneRule, Lanes, Mint, MintSettings, SessionStart};
/// use idmint_core::time::{ManualClock, UnixNanos};
///
/// let payment = PRESETS.iter().find(|preset| preset.name == "payment").expect("a built-in format");
/// let format = Arc::new(FormatDefinition::from_toml(payment.name, payment.toml)?.compile(payment.name)?);
/// let lanes = Lanes::of(&format, &LaneRule { slot: 0, slots: 1, lanes: LaneCount::UpTo(8), shard: 0 })?;
/// let clock = Arc::new(ManualClock::at(UnixNanos::from_seconds(1_795_232_161)).clock());
/// let (wait_max, lead_max) = (Duration::from_millis(250), Duration::from_millis(5));
/// let settings = MintSettings { wait_max, lead_max, window: Duration::from_secs(3), shard: 0 };
/// let mut mint = Mint::new(Arc::clone(&clock), settings);
/// let minter = mint.add_sequenced(Arc::clone(&format), lanes);
///
/// let request = minter.request(NonZeroU32::new(3).expect("not zero"), None)?;
/// assert!(minter.reserve(&request).is_err(), "no session has begun");
///
/// let session = mint.prepare(SessionStart::at(clock.now()));
/// let plan = session.plan_extension(clock.now(), clock.now());
/// let on_disk = Durable::write(plan, |_plan| Ok::<(), std::io::Error>(()))?; // A program writes and syncs it here.
/// session.raise(&on_disk, clock.now());
/// mint.begin(session);
///
/// let mut batch = minter.reserve(&request).expect("three of the first 129 in 100 ms").batch;
/// let mut ids = [0; 3];
/// assert_eq!(batch.fill(&mut ids), 3);
/// assert_eq!(ids.map(|id| format.canonical().to_text(id)), ["1I9ZC1000", "1I9ZC1001", "1I9ZC1002"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Mint {
    clock: Arc<Clock>,
    settings: MintSettings,
    sequenced: Vec<Arc<SequencedFormat>>,
    state: Arc<SessionState>,
}

impl Mint {
    /// Creates a mint to which no format has been added yet.
    pub fn new(clock: Arc<Clock>, settings: MintSettings) -> Mint {
        Mint {
            clock,
            settings,
            sequenced: Vec::new(),
            state: Arc::default(),
        }
    }

    /// Adds a sequenced format whose worker numbers stay the same until the process exits, and
    /// returns its minter. The minter mints no ids until [`Mint::begin`] starts a session.
    pub fn add_sequenced(&mut self, format: Arc<Format>, lanes: Lanes) -> Arc<Minter> {
        self.add(SequencedFormat::new(format, Holding::for_good(lanes)))
    }

    /// Adds a sequenced format, and returns its minter. The worker numbers may change, because each
    /// session leases a slot.
    pub fn add_leased(&mut self, format: Arc<Format>, lanes: SlotLanes) -> Arc<Minter> {
        let holding = Holding::leased(lanes, self.sequenced.len());
        self.add(SequencedFormat::new(format, holding))
    }

    fn add(&mut self, sequenced: SequencedFormat) -> Arc<Minter> {
        let sequenced = Arc::new(sequenced);
        self.sequenced.push(Arc::clone(&sequenced));
        self.minter(
            Arc::clone(sequenced.format()),
            sequenced.most_lanes().workers().len(),
            MinterKind::Sequenced(sequenced),
        )
    }

    /// Adds a random format, and returns the minter of its ids. The minter needs no session and no
    /// worker number, but refuses requests while the clock is clearly wrong.
    pub fn add_random(&mut self, format: Arc<Format>, randomness: Randomness) -> Arc<Minter> {
        let source = RandomMinter::new(Arc::clone(&format), Arc::clone(&self.clock), randomness);
        self.minter(format, 0, MinterKind::Random(Arc::new(source)))
    }

    fn minter(&self, format: Arc<Format>, lanes: usize, kind: MinterKind) -> Arc<Minter> {
        Arc::new(Minter {
            counted: Arc::new(CountedFormat::new(format, lanes)),
            clock: Arc::clone(&self.clock),
            state: Arc::clone(&self.state),
            kind,
        })
    }

    /// Returns the clock that all minters use.
    pub fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }

    /// Prepares a session whose worker numbers stay the same until the process exits. Before you
    /// pass it to [`Mint::begin`], write its first horizon to disk.
    pub fn prepare(&self, start: SessionStart) -> Arc<Session> {
        self.prepare_with(start, None)
    }

    /// Prepares a session with the worker numbers of the leased slot `slot`.
    ///
    /// # Panics
    /// Panics if there is no such slot, or if a format was added with [`Mint::add_sequenced`].
    pub fn prepare_in_slot(&self, start: SessionStart, slot: u32) -> Arc<Session> {
        self.prepare_with(start, Some(slot))
    }

    fn prepare_with(&self, start: SessionStart, slot: Option<u32>) -> Arc<Session> {
        let settings = self.settings;
        let beginning = Beginning {
            start,
            slot,
            now: self.clock.now(),
            window: settings.window,
            lead_max: settings.lead_max,
            wait_max: settings.wait_max,
            shard: settings.shard,
        };
        Arc::new(Session::begin(&self.sequenced, &beginning))
    }

    /// Makes `session` the active session, in which sequenced ids are minted.
    ///
    /// # Panics
    /// Panics if any session is active, because two sessions could mint with the same worker
    /// numbers. Also panics if the session's horizon was not raised, because the node would claim
    /// to be ready although it cannot mint.
    pub fn begin(&self, session: Arc<Session>) {
        self.state.begin(session);
    }

    /// Ends the active session. Until the next session begins, requests are refused with `reason`.
    ///
    /// A request that is in progress can still get ids of the ended session. These ids are below
    /// the session's horizon, which stays reserved on disk.
    pub fn end(&self, reason: Refusal) {
        self.state.end(reason);
    }

    /// Sets the reason with which requests are refused while no session is active.
    pub fn wait_for(&self, reason: Refusal) {
        self.state.wait_for(reason);
    }

    /// Returns the active session.
    ///
    /// # Errors
    /// If no session is active, returns the reason with which new requests are refused.
    pub fn session(&self) -> Result<Arc<Session>, Refusal> {
        self.state.session()
    }
}

#[cfg(test)]
#[path = "mint_tests.rs"]
mod tests;
