//! The mint: every format this program mints, under one roof.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::batch::Batch;
use super::order::Order;
use super::refusal::Refusal;
use super::stats::MintStats;
use super::tenure::{Beginning, Tenure};
use crate::conjunction::{GroupedMinter, PairOrder};
use crate::id::{Format, Rejection, Rule};
use crate::minting::random::{RandomMinter, Randomness};
use crate::minting::sequenced::{Lanes, Shortage};
use crate::time::{Clock, UnixNanos};

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
    /// What the order of the two objects of a report means.
    pub pair_order: PairOrder,
}

/// All formats, their worker numbers and counters; and, once it has begun, the tenure in which they are minted.
///
/// ```
/// use std::num::NonZeroU32;
/// use std::sync::Arc;
/// use std::time::Duration;
/// use idmint::id::{FormatDefinition, PRESETS};
/// use idmint::minting::{Durable, LaneCount, LaneRule, Lanes, Mint, MintSettings, Order, PairOrder, Randomness};
/// use idmint::time::{ManualClock, UnixNanos};
///
/// let payment = PRESETS.iter().find(|preset| preset.name == "payment").expect("a built-in format");
/// let format = Arc::new(FormatDefinition::from_toml(payment.name, payment.toml)?.compile(payment.name)?);
/// let lanes = Lanes::of(&format, &LaneRule { slot: 0, slots: 1, lanes: LaneCount::UpTo(8), shard: 0 })?;
/// let clock = Arc::new(ManualClock::at(UnixNanos::from_seconds(1_795_232_161)).clock());
/// let (wait_max, lead_max) = (Duration::from_millis(250), Duration::from_millis(5));
/// let (window, pair_order) = (Duration::from_secs(3), PairOrder::Reported);
/// let settings = MintSettings { wait_max, lead_max, window, shard: 0, pair_order };
/// let formats = vec![(Arc::clone(&format), Some(lanes))];
/// let mint = Mint::new(formats, Arc::clone(&clock), &Randomness::Thread, settings);
///
/// let order = Order::new(&format, NonZeroU32::new(3).expect("not zero"), None)?;
/// assert!(mint.reserve(0, &order).is_err(), "no tenure has begun");
///
/// let tenure = mint.prepare(clock.now());
/// let plan = tenure.plan_extension(clock.now(), clock.now());
/// let on_disk = Durable::write(plan, |_plan| Ok::<(), std::io::Error>(()))?; // A program writes and syncs it here.
/// tenure.raise(&on_disk, clock.now());
/// mint.begin(Arc::new(tenure));
///
/// let mut batch = mint.reserve(0, &order).expect("three of the first 129 in 100 ms").batch;
/// let mut ids = [0; 3];
/// assert_eq!(batch.fill(&mut ids), 3);
/// assert_eq!(ids.map(|id| format.canonical().to_text(id)), ["1I9ZC1000", "1I9ZC1001", "1I9ZC1002"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Mint {
    clock: Arc<Clock>,
    settings: MintSettings,
    formats: Vec<(Arc<Format>, Option<Lanes>)>,
    random: Vec<Option<Arc<RandomMinter>>>,
    grouped: Vec<Option<Arc<GroupedMinter>>>,
    stats: Vec<MintStats>,
    positions: BTreeMap<String, usize>,
    tenure: OnceLock<Arc<Tenure>>,
    /// Why the tenure has not begun.
    waiting_for: Mutex<Refusal>,
}

/// The ids of an order.
#[derive(Debug)]
pub struct Granted {
    /// The ids.
    pub batch: Batch,
    /// What the clock must show before they may leave; `None` if they may leave at once.
    pub due: Option<UnixNanos>,
    /// The horizon should be raised soon.
    pub refill: bool,
}

/// No id was minted.
#[derive(Debug)]
pub enum Denied {
    /// Not now, or never.
    Refused(Refusal),
    /// Not before the horizon is raised to this instant.
    Horizon {
        /// The least horizon that covers the order.
        needed: UnixNanos,
    },
}

impl Mint {
    /// A mint of these formats, each with its lanes if it is sequenced. Nothing sequenced is minted until a tenure begins.
    pub fn new(
        formats: Vec<(Arc<Format>, Option<Lanes>)>,
        clock: Arc<Clock>,
        randomness: &Randomness,
        settings: MintSettings,
    ) -> Mint {
        let random = |format: &Arc<Format>| {
            let minter = || RandomMinter::new(Arc::clone(format), Arc::clone(&clock), randomness.clone());
            (format.rule == Rule::Random).then(|| Arc::new(minter()))
        };
        let grouped = |format: &Arc<Format>| {
            let minter = || GroupedMinter::new(Arc::clone(format), settings.pair_order);
            (format.rule == Rule::Grouped).then(|| Arc::new(minter()))
        };
        Mint {
            grouped: formats.iter().map(|(format, _)| grouped(format)).collect(),
            random: formats.iter().map(|(format, _)| random(format)).collect(),
            stats: formats
                .iter()
                .map(|(_, lanes)| MintStats::new(lanes.as_ref().map_or(0, |lanes| lanes.workers().len())))
                .collect(),
            positions: formats.iter().enumerate().map(|(at, (format, _))| (format.name.clone(), at)).collect(),
            waiting_for: Mutex::new(Refusal::HorizonReached { retry_after: Duration::from_secs(1) }),
            tenure: OnceLock::new(),
            formats,
            clock,
            settings,
        }
    }

    /// The formats, their lanes and their counters, in order.
    pub fn formats(&self) -> impl Iterator<Item = (&Arc<Format>, Option<&Lanes>, &MintStats)> {
        self.formats.iter().zip(&self.stats).map(|((format, lanes), stats)| (format, lanes.as_ref(), stats))
    }

    /// The format of that name, and its position here.
    pub fn format(&self, name: &str) -> Option<(usize, &Arc<Format>)> {
        let position = *self.positions.get(name)?;
        Some((position, self.format_at(position)))
    }

    /// The format at that position.
    pub fn format_at(&self, position: usize) -> &Arc<Format> {
        &self.formats[position].0
    }

    /// The worker numbers that this node mints a format with.
    pub fn workers(&self, name: &str) -> &[u32] {
        let lanes = self.positions.get(name).and_then(|position| self.formats[*position].1.as_ref());
        lanes.map_or(&[], Lanes::workers)
    }

    /// The counters of a format.
    pub fn stats(&self, format: usize) -> &MintStats {
        &self.stats[format]
    }

    /// The clock that ids are minted by.
    pub fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }

    /// What the configuration says.
    pub fn settings(&self) -> &MintSettings {
        &self.settings
    }

    /// A tenure that starts at `start`, to be begun by [`Mint::begin`] once its first horizon is durable.
    pub fn prepare(&self, start: UnixNanos) -> Tenure {
        let MintSettings { wait_max, lead_max, window, shard, pair_order: _ } = self.settings;
        Tenure::begin(&self.formats, &Beginning { start, now: self.clock.now(), window, lead_max, wait_max, shard })
    }

    /// From now on sequenced ids are minted in this tenure.
    ///
    /// # Panics
    /// When one has begun already: its worker numbers would be used twice.
    pub fn begin(&self, tenure: Arc<Tenure>) {
        assert!(self.tenure.set(tenure).is_ok(), "a program has one tenure");
    }

    /// Why nothing sequenced is minted yet, said to callers until a tenure begins.
    pub fn wait_for(&self, reason: Refusal) {
        *self.waiting_for.lock().expect("no holder of this lock panics") = reason;
    }

    /// The tenure, once it has begun.
    ///
    /// # Errors
    /// Why it has not.
    #[inline]
    pub fn tenure(&self) -> Result<&Arc<Tenure>, Refusal> {
        self.tenure.get().ok_or_else(|| self.waiting_for.lock().expect("no holder of this lock panics").clone())
    }

    /// How many ids of a format can be had at any time in one order; `None` if there is no such limit.
    pub fn count_max(&self, format: usize, variant: usize) -> Option<u64> {
        let minter = self.tenure.get()?.minter(format)?;
        Some(minter.count_max(variant))
    }

    /// Reserves the ids of an order: one read of the clock, one compare-exchange.
    ///
    /// `format`: the position that [`Mint::format`] gave, of the format that the order was made for.
    ///
    /// # Errors
    /// [`Denied`]: nothing was minted.
    #[inline]
    pub fn reserve(&self, format: usize, order: &Order) -> Result<Granted, Denied> {
        match &self.random[format] {
            Some(minter) => self.promise(minter, format, order),
            None => self.reserve_stamps(format, order),
        }
    }

    /// The minter of a grouped format.
    ///
    /// `format`: the position that [`Mint::format`] gave.
    ///
    /// # Panics
    /// When the rule of the format is another.
    pub fn grouped(&self, format: usize) -> &Arc<GroupedMinter> {
        self.grouped[format].as_ref().expect("reports are only taken for a grouped format")
    }

    #[inline]
    fn reserve_stamps(&self, position: usize, order: &Order) -> Result<Granted, Denied> {
        let tenure = self.tenure().map_err(Denied::Refused)?;
        let minter = tenure.minter(position).expect("an order is only made for a format that is minted");
        let format = &self.formats[position].0;
        let moment = tenure.at(self.clock.now());
        let most = minter.count_max(order.variant());
        if order.count() > most {
            let format = format.name.clone();
            return Err(Denied::Refused(Refusal::TooMany { format, count: order.count(), most }));
        }
        let stats = &self.stats[position];
        match minter.reserve(order, &moment, stats) {
            Ok(placement) => {
                let due = Some(placement.due()).filter(|due| *due > moment.now);
                stats.count_granted(order.count(), due.is_some());
                Ok(Granted { batch: minter.batch(order, &placement), due, refill: placement.refill() })
            }
            Err(Shortage::Horizon { needed }) => Err(Denied::Horizon { needed }),
            Err(Shortage::Sequence { due }) => {
                let (format, retry_after) = (format.name.clone(), due.since(moment.now));
                Err(Denied::Refused(Refusal::SequenceExhausted { format, retry_after }))
            }
            Err(Shortage::Ended) => Err(Denied::Refused(ended(format))),
            Err(Shortage::NotBegun) => Err(Denied::Refused(not_begun(format))),
        }
    }

    /// Random ids need no tenure, only a clock that can be right.
    fn promise(&self, minter: &Arc<RandomMinter>, position: usize, order: &Order) -> Result<Granted, Denied> {
        if let Err(refusal @ Refusal::ClockJumped { .. }) = self.tenure() {
            return Err(Denied::Refused(refusal));
        }
        let format = minter.format();
        let ids = minter.ids(order.count()).map_err(|rejection| match rejection {
            Rejection::BeforeEpoch => Denied::Refused(not_begun(format)),
            _ => Denied::Refused(ended(format)),
        })?;
        self.stats[position].count_granted(order.count(), false);
        Ok(Granted { batch: Batch::of_random(ids), due: None, refill: false })
    }
}

fn ended(format: &Format) -> Refusal {
    let ended = format.end().expect("only a format with a time field ends");
    Refusal::EpochEnded { format: format.name.clone(), ended }
}

fn not_begun(format: &Format) -> Refusal {
    Refusal::BeforeEpoch { format: format.name.clone(), begins: format.epoch }
}
