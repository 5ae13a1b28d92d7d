//! Minting from time, worker and sequence: which lane serves an order.

use std::sync::Arc;
use std::time::Duration;

use super::batch::Batch;
use super::lanes::Lanes;
use super::order::Order;
use super::pace::Moment;
use super::run::{Run, Shape};
use super::sequencer::{Grant, Sequencer, Shortage};
use super::stamps::StampLine;
use super::stats::MintStats;
use crate::id::Format;
use crate::time::UnixNanos;

/// Ticks at least this long have no lead: half a second of ids from the future would be seen.
const LEAD_TICK_MAX: Duration = Duration::from_millis(100);

/// The lanes of one sequenced format during one tenure.
#[derive(Debug)]
pub struct SequencedMinter {
    format: Arc<Format>,
    /// For each variant of the format.
    shapes: Vec<Shape>,
    lanes: Vec<Lane>,
    lead_max: Duration,
    lead_ticks: u64,
}

/// One worker number, with a sequence for each variant of the format.
#[derive(Debug)]
struct Lane {
    worker: u32,
    sequencers: Vec<Sequencer>,
}

/// Ids reserved for one order, and when they may leave.
#[derive(Debug)]
pub(super) struct Reserved {
    pub(super) batch: Batch,
    pub(super) due: UnixNanos,
    pub(super) refill: bool,
}

impl SequencedMinter {
    /// A minter that begins at `start` and may mint nothing until its horizon is raised.
    pub(super) fn new(
        format: Arc<Format>,
        lanes: &Lanes,
        shard: u64,
        lead_max: Duration,
        start: UnixNanos,
    ) -> SequencedMinter {
        let tick = format.tick.expect("a sequenced format has a tick, checked when it was made");
        let end_tick = format.end_tick().expect("a sequenced format has a time field");
        let lead_ticks = lead_ticks(lead_max, tick.duration());
        let shapes: Vec<Shape> = format.variants.iter().map(|variant| Shape::of(&variant.layout, shard)).collect();
        let sequencer = |shape: &Shape| {
            let line = StampLine::new(tick, format.epoch, shape.per_tick, start);
            Sequencer::new(line, start, end_tick, lead_ticks)
        };
        let lanes = lanes
            .workers()
            .iter()
            .map(|worker| Lane { worker: *worker, sequencers: shapes.iter().map(sequencer).collect() })
            .collect();
        SequencedMinter { format, shapes, lanes, lead_max, lead_ticks }
    }

    /// Reserves the ids of an order: on the lowest lane that can answer within the lead, else on the one that can answer
    /// first, else spread over several as runs that each increase.
    pub(super) fn reserve(
        &self,
        order: &Order,
        moment: &Moment,
        wait_max: Duration,
        stats: &MintStats,
    ) -> Result<Reserved, Shortage> {
        match self.reserve_within(order, moment, wait_max.min(self.lead_max), stats) {
            Ok(reserved) => return Ok(reserved),
            Err(Shortage::Sequence { due }) if due.since(moment.now) <= wait_max => {
                // Another caller may take the place of that lane meanwhile: then the next first one, while there is one.
                for _ in 0..=self.lanes.len() {
                    let lane = self.first_to_answer(order, moment);
                    match self.lanes[lane].sequencers[order.variant()].reserve(order.count(), moment, wait_max) {
                        Ok(grant) => {
                            stats.count_exhausted(lane);
                            return Ok(self.reserved(order, lane, grant));
                        }
                        Err(Shortage::Sequence { .. }) => {}
                        Err(shortage) => return Err(shortage),
                    }
                }
            }
            Err(Shortage::Sequence { .. }) => {}
            Err(shortage) => return Err(shortage),
        }
        self.spread(order, moment, wait_max, stats)
    }

    /// The greatest order that can be filled at any time: of what every lane has in a tick, the lead and the wait.
    pub(super) fn count_max(&self, variant: usize, wait_max: Duration) -> u64 {
        let tick = self.format.tick.expect("a sequenced format has a tick");
        let waited = wait_max.as_nanos() * u128::from(tick.parts()) / u128::from(tick.nanos());
        let ticks = u64::try_from(waited).unwrap_or(u64::MAX).saturating_add(self.lead_ticks).saturating_add(1);
        let lanes = u64::try_from(self.lanes.len()).expect("lanes are few");
        ticks.saturating_mul(self.shapes[variant].per_tick).saturating_mul(lanes)
    }

    /// Every counter of this minter.
    pub(super) fn sequencers(&self) -> impl Iterator<Item = &Sequencer> {
        self.lanes.iter().flat_map(|lane| &lane.sequencers)
    }

    fn reserve_within(
        &self,
        order: &Order,
        moment: &Moment,
        wait_max: Duration,
        stats: &MintStats,
    ) -> Result<Reserved, Shortage> {
        let mut first_due = None;
        for (at, lane) in self.lanes.iter().enumerate() {
            match lane.sequencers[order.variant()].reserve(order.count(), moment, wait_max) {
                Ok(grant) => {
                    if grant.due > moment.now {
                        stats.count_exhausted(at);
                    }
                    return Ok(self.reserved(order, at, grant));
                }
                Err(Shortage::Sequence { due }) => {
                    first_due = Some(first_due.map_or(due, |first: UnixNanos| first.min(due)))
                }
                Err(shortage) => return Err(shortage),
            }
        }
        Err(Shortage::Sequence { due: first_due.expect("a minter has a lane") })
    }

    fn first_to_answer(&self, order: &Order, moment: &Moment) -> usize {
        let due = |lane: &Lane| lane.sequencers[order.variant()].due_for(order.count(), moment);
        let lanes = self.lanes.iter().enumerate();
        lanes.min_by_key(|(_, lane)| due(lane)).map(|(at, _)| at).expect("a minter has a lane")
    }

    /// An order that no single lane can fill in time, from as many as it takes: all of it or nothing.
    fn spread(
        &self,
        order: &Order,
        moment: &Moment,
        wait_max: Duration,
        stats: &MintStats,
    ) -> Result<Reserved, Shortage> {
        let available = |lane: &Lane| lane.sequencers[order.variant()].available(moment, wait_max);
        let refused = |shortage_at: UnixNanos| {
            stats.count_exhausted(self.first_to_answer(order, moment));
            Err(Shortage::Sequence { due: shortage_at })
        };
        let all: u64 = self.lanes.iter().map(available).fold(0, u64::saturating_add);
        if all < order.count() {
            return refused(self.filled_at(order, moment, wait_max));
        }
        let mut parts: Vec<(usize, Grant, u64)> = Vec::new();
        let mut missing = order.count();
        for (at, lane) in self.lanes.iter().enumerate() {
            let part = available(lane).min(missing);
            if part == 0 {
                continue;
            }
            match lane.sequencers[order.variant()].reserve(part, moment, wait_max) {
                Ok(grant) => {
                    stats.count_exhausted(at);
                    parts.push((at, grant, part));
                    missing -= part;
                }
                Err(shortage @ Shortage::Horizon { .. }) => {
                    return self.give_up(shortage, order.count() - missing, stats);
                }
                Err(_) => {}
            }
        }
        if missing > 0 {
            // Others took the rest between the look and the reservation. What was reserved here stays a gap.
            return self.give_up(
                Shortage::Sequence { due: self.filled_at(order, moment, wait_max) },
                order.count() - missing,
                stats,
            );
        }
        let due = parts.iter().map(|(_, grant, _)| grant.due).max().expect("an order has a part");
        let refill = parts.iter().any(|(_, grant, _)| grant.refill);
        let runs = parts.into_iter().map(|(at, grant, part)| self.run(order, at, grant, part)).collect();
        Ok(Reserved { batch: Batch::of_runs(Arc::clone(&self.format), runs), due, refill })
    }

    fn give_up(&self, shortage: Shortage, reserved: u64, stats: &MintStats) -> Result<Reserved, Shortage> {
        stats.count_unsent(reserved);
        Err(shortage)
    }

    /// When all lanes together could fill the order, if nobody else came: found by bisection over the next ticks, to the
    /// nanosecond, because callers are told whole milliseconds, rounded up.
    fn filled_at(&self, order: &Order, moment: &Moment, wait_max: Duration) -> UnixNanos {
        let enough = |wait: Duration| {
            let available =
                |lane: &Lane| lane.sequencers[order.variant()].available(&moment.later(wait), Duration::ZERO);
            self.lanes.iter().map(available).fold(0, u64::saturating_add) >= order.count()
        };
        let (mut short, mut long) = (Duration::ZERO, wait_max.max(Duration::from_millis(1)));
        while !enough(long) && long < Duration::from_secs(1 << 20) {
            (short, long) = (long, long * 2);
        }
        while long - short > Duration::from_nanos(1) {
            let middle = short + (long - short) / 2;
            if enough(middle) { long = middle } else { short = middle }
        }
        moment.now.after(long)
    }

    fn reserved(&self, order: &Order, lane: usize, grant: Grant) -> Reserved {
        let run = self.run(order, lane, grant, order.count());
        Reserved { batch: Batch::of_runs(Arc::clone(&self.format), vec![run]), due: grant.due, refill: grant.refill }
    }

    fn run(&self, order: &Order, lane: usize, grant: Grant, count: u64) -> Run {
        let shape = self.shapes[order.variant()];
        let lane = &self.lanes[lane];
        let (tick, sequence) = lane.sequencers[order.variant()].line().tick_and_sequence(grant.first);
        let base = shape.fixed
            + u128::from(lane.worker) * shape.worker_stride
            + u128::from(order.domain().get()) * shape.object_stride;
        Run { shape, base, tick, sequence, count }
    }
}

/// How many whole ticks fit into the lead: at least one of a short tick, none of a long one.
fn lead_ticks(lead_max: Duration, tick: Duration) -> u64 {
    if tick >= LEAD_TICK_MAX {
        return 0;
    }
    u64::try_from(lead_max.as_nanos() / tick.as_nanos().max(1)).unwrap_or(u64::MAX).max(1)
}
