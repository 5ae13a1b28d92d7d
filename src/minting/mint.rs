//! The mint: every format that is minted by count, and the session in which the sequenced ones are.

use std::sync::Arc;
use std::time::Duration;

use super::minter::Minter;
use super::refusal::Refusal;
use super::session::Session;
use super::session_start::SessionStart;
use super::session_state::SessionState;
use crate::id::Format;
use crate::minting::random::{RandomMinter, Randomness};
use crate::minting::sequenced::{Beginning, Lanes, SequencedFormat, SlotLanes};
use crate::time::Clock;

/// What the configuration says about minting.
#[derive(Debug, Clone, Copy)]
pub struct MintSettings {
    /// How long an answer may be held until its ids are due; zero refuses at once.
    pub wait_max: Duration,
    /// How far ahead of the clock a lane may mint.
    pub lead_max: Duration,
    /// The most that one extension of the horizon reserves.
    pub window: Duration,
    /// The number in fields of kind shard.
    pub shard: u64,
}

/// Makes the minters of a program, and begins the session in which the sequenced ones mint.
///
/// ```
/// use std::num::NonZeroU32;
/// use std::sync::Arc;
/// use std::time::Duration;
/// use idmint::id::{FormatDefinition, PRESETS};
/// use idmint::minting::{Durable, LaneCount, LaneRule, Lanes, Mint, MintSettings, SessionStart};
/// use idmint::time::{ManualClock, UnixNanos};
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
    /// A mint without formats.
    pub fn new(clock: Arc<Clock>, settings: MintSettings) -> Mint {
        Mint {
            clock,
            settings,
            sequenced: Vec::new(),
            state: Arc::default(),
        }
    }

    /// A minter of a sequenced format. It mints nothing until a session begins.
    pub fn add_sequenced(&mut self, format: Arc<Format>, lanes: Lanes) -> Arc<Minter> {
        self.add(SequencedFormat::with_lanes(format, lanes))
    }

    /// The same, of a format whose worker numbers come with the slot of each session.
    pub fn add_leased(&mut self, format: Arc<Format>, lanes: SlotLanes) -> Arc<Minter> {
        self.add(SequencedFormat::with_slot_lanes(
            format,
            lanes,
            self.sequenced.len(),
        ))
    }

    fn add(&mut self, sequenced: SequencedFormat) -> Arc<Minter> {
        let sequenced = Arc::new(sequenced);
        self.sequenced.push(Arc::clone(&sequenced));
        Arc::new(Minter::sequenced(
            sequenced,
            Arc::clone(&self.clock),
            Arc::clone(&self.state),
        ))
    }

    /// A minter of a random format. It needs no session, only a clock that can be right.
    pub fn add_random(&mut self, format: Arc<Format>, randomness: Randomness) -> Arc<Minter> {
        let source = RandomMinter::new(format, Arc::clone(&self.clock), randomness);
        Arc::new(Minter::random(
            source,
            Arc::clone(&self.clock),
            Arc::clone(&self.state),
        ))
    }

    /// The clock that ids are minted by.
    pub fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }

    /// What the configuration says.
    pub fn settings(&self) -> &MintSettings {
        &self.settings
    }

    /// A session that begins at `start`, to be begun by [`Mint::begin`] once its first horizon is durable.
    pub fn prepare(&self, start: SessionStart) -> Arc<Session> {
        self.prepare_with(start, None)
    }

    /// The same, in a slot that is leased.
    ///
    /// # Panics
    /// When there is no such slot, or a format's worker numbers are not leased.
    pub fn prepare_in_slot(&self, start: SessionStart, slot: u32) -> Arc<Session> {
        self.prepare_with(start, Some(slot))
    }

    fn prepare_with(&self, start: SessionStart, slot: Option<u32>) -> Arc<Session> {
        let MintSettings {
            wait_max,
            lead_max,
            window,
            shard,
        } = self.settings;
        let beginning = Beginning {
            start,
            slot,
            now: self.clock.now(),
            window,
            lead_max,
            wait_max,
            shard,
        };
        Arc::new(Session::begin(&self.sequenced, &beginning))
    }

    /// From now on sequenced ids are minted in this session.
    ///
    /// # Panics
    /// While there is another: its worker numbers would be used twice. Where nothing can be minted in this one yet: a node would
    /// be taken for ready.
    pub fn begin(&self, session: Arc<Session>) {
        self.state.begin(session);
    }

    /// From now on no sequenced id is minted, and callers are told why, until a session begins.
    ///
    /// A mint that has begun may end: in the session that it began in, below what stays reserved.
    pub fn end(&self, reason: Refusal) {
        self.state.end(reason);
    }

    /// Why nothing sequenced is minted yet, said to callers until a session begins.
    pub fn wait_for(&self, reason: Refusal) {
        self.state.wait_for(reason);
    }

    /// The session in which sequenced ids are minted.
    ///
    /// # Errors
    /// Why there is none.
    pub fn session(&self) -> Result<Arc<Session>, Refusal> {
        self.state.session()
    }
}

#[cfg(test)]
#[path = "mint_tests.rs"]
mod tests;
