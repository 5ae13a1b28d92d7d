//! Minting from time, worker and sequence: which lanes serve a request.

use std::time::Duration;

use super::beginning::Beginning;
use super::catch_up::{CatchUp, Moment};
use super::exclusion::ExcludedTicks;
use super::lanes::Lanes;
use super::runs::{Run, Shape};
use super::sequencer::{Grant, Sequencer, Shortage};
use super::spread::Spread;
use super::stamps::StampLine;
use crate::id::Format;
use crate::minting::batch::Batch;
use crate::minting::batch_request::BatchRequest;
use crate::minting::counters::MintCounters;
use crate::time::{Tick, UnixNanos};

/// Ticks at least this long have no lead: half a second of ids from the future would be seen.
const LEAD_TICK_MAX: Duration = Duration::from_millis(100);

/// The lanes of one sequenced format during one session.
#[derive(Debug)]
pub struct SequencedMinter {
    /// For each variant of the format.
    shapes: Vec<Shape>,
    /// The greatest count of each variant that can be filled at any time.
    counts_max: Vec<u64>,
    /// The worker numbers, one for each lane.
    numbers: Lanes,
    lanes: Vec<Lane>,
    lead_ticks: u64,
    wait_max: Duration,
    /// Whether a batch may take several lanes.
    spreads: bool,
    /// When the first ids may leave, after a start at a floor.
    opens_at: Option<UnixNanos>,
    catch_up: CatchUp,
}

/// One worker number, with a sequence for each variant of the format.
#[derive(Debug)]
struct Lane {
    /// For each variant of the format: what every id of this lane has in common.
    bases: Vec<u128>,
    sequencers: Vec<Sequencer>,
}

/// What was reserved for one request.
#[derive(Debug)]
pub(in crate::minting) struct Placement {
    shares: Shares,
    /// When all of the ids may leave.
    pub(in crate::minting) due: UnixNanos,
    /// Whether the horizon should be raised soon.
    pub(in crate::minting) refill: bool,
}

/// Nearly always all of it on one lane.
#[derive(Debug)]
enum Shares {
    Whole(Share),
    Spread(Vec<Share>),
}

/// So many ids of one lane.
#[derive(Debug, Clone, Copy)]
struct Share {
    lane: usize,
    first: u64,
    count: u64,
}

impl Placement {
    #[inline]
    fn whole(lane: usize, grant: Grant, count: u64) -> Placement {
        let Grant { first, due, refill } = grant;
        Placement {
            shares: Shares::Whole(Share { lane, first, count }),
            due,
            refill,
        }
    }
}

impl SequencedMinter {
    /// A minter that may mint nothing until its horizon is raised.
    ///
    /// # Panics
    /// When `excluded` is not known from where the session begins.
    pub(in crate::minting) fn new(
        format: &Format,
        lanes: Lanes,
        excluded: Option<&ExcludedTicks>,
        beginning: &Beginning,
    ) -> SequencedMinter {
        let Beginning {
            start,
            shard,
            lead_max,
            wait_max,
            ..
        } = *beginning;
        let tick = format
            .tick
            .expect("a sequenced format has a tick, checked when it was made");
        let end_tick = format
            .end_tick()
            .expect("a sequenced format has a time field");
        let lead_ticks = lead_ticks(lead_max, tick.duration());
        let shapes: Vec<Shape> = format
            .variants
            .iter()
            .map(|variant| Shape::of(&variant.layout, shard))
            .collect();
        let sequencer = |worker: u32, variant: usize, shape: &Shape| {
            let line = StampLine::new(tick, format.epoch, shape.steps.per_tick, start.at);
            let sequencer = Sequencer::new(line, start, end_tick, lead_ticks);
            let sequencer = sequencer.with_spread(Spread::over(format.sequence_spread));
            let sequencer = match &format.start_after {
                Some(id) => sequencer.after_tick(id.tick),
                None => sequencer,
            };
            match excluded.and_then(|excluded| excluded.of_lane(worker, variant, start.at)) {
                Some(ticks) => sequencer.around(ticks),
                None => sequencer,
            }
        };
        let lane = |worker: &u32| Lane {
            bases: shapes
                .iter()
                .map(|shape| shape.fixed + u128::from(*worker) * shape.worker_stride)
                .collect(),
            sequencers: shapes
                .iter()
                .enumerate()
                .map(|(at, shape)| sequencer(*worker, at, shape))
                .collect(),
        };
        let numbers = lanes;
        let lanes: Vec<Lane> = numbers.workers().iter().map(lane).collect();
        // Around excluded ticks the lanes are not free alike, and a batch takes one.
        let has_exclusions = lanes
            .iter()
            .flat_map(|lane| &lane.sequencers)
            .any(Sequencer::has_exclusions);
        let spreads = numbers.share_a_batch(format) && !has_exclusions;
        let lanes_at_once = if spreads { lanes.len() } else { 1 };
        let count_max = |shape: &Shape| count_max(tick, lead_ticks, wait_max, shape, lanes_at_once);
        let counts_max = shapes.iter().map(count_max).collect();
        let opens_at = lanes[0]
            .sequencers
            .iter()
            .filter_map(Sequencer::opens_at)
            .max();
        SequencedMinter {
            shapes,
            counts_max,
            numbers,
            lanes,
            lead_ticks,
            wait_max,
            spreads,
            opens_at,
            catch_up: beginning.catch_up(),
        }
    }

    /// The worker numbers, one for each lane.
    pub(in crate::minting) fn lanes(&self) -> &Lanes {
        &self.numbers
    }

    /// The moment at which the clock shows `now`.
    #[inline]
    pub(in crate::minting) fn moment(&self, now: UnixNanos) -> Moment {
        self.catch_up.at(now)
    }

    /// Reserves the ids of a request: on the lowest lane that can answer at once. One that no single lane could ever answer
    /// at once takes every lane; one that finds none free waits for the lane that can answer first.
    #[inline]
    pub(in crate::minting) fn reserve(
        &self,
        request: &BatchRequest,
        moment: &Moment,
        counters: &MintCounters,
    ) -> Result<Placement, Shortage> {
        match self.reserve_at_once(request, moment) {
            Err(Shortage::Sequence { due }) => self.reserve_late(due, request, moment, counters),
            outcome => outcome,
        }
    }

    /// Reserves the ids of a request that no lane can fill before `due`.
    fn reserve_late(
        &self,
        due: UnixNanos,
        request: &BatchRequest,
        moment: &Moment,
        counters: &MintCounters,
    ) -> Result<Placement, Shortage> {
        let whole_lane = self.shapes[request.variant()]
            .steps
            .per_tick
            .saturating_mul(self.lead_ticks + 1);
        if self.spreads && request.count() > whole_lane {
            return self.spread(request, moment, counters);
        }
        if due.since(moment.now) <= self.wait_max {
            // Another caller may take the place of that lane meanwhile: then the next first one, while there is one.
            for _ in 0..=self.lanes.len() {
                let lane = self.first_to_answer(request, moment);
                match self.lanes[lane].sequencers[request.variant()].reserve(
                    request.count(),
                    moment,
                    self.wait_max,
                ) {
                    Ok(grant) => {
                        counters.count_exhausted(lane);
                        return Ok(Placement::whole(lane, grant, request.count()));
                    }
                    Err(Shortage::Sequence { .. }) => {}
                    Err(shortage) => return Err(shortage),
                }
            }
        }
        if self.spreads {
            self.spread(request, moment, counters)
        } else {
            Err(self.exhausted(due, request, moment, counters))
        }
    }

    /// Counts a request that would wait too long.
    pub(in crate::minting) fn count_late(
        &self,
        request: &BatchRequest,
        moment: &Moment,
        counters: &MintCounters,
    ) {
        counters.count_exhausted(self.first_to_answer(request, moment));
    }

    /// Why a request cannot be filled before `due`, counted if it is for want of stamps.
    fn exhausted(
        &self,
        due: UnixNanos,
        request: &BatchRequest,
        moment: &Moment,
        counters: &MintCounters,
    ) -> Shortage {
        match self.opens_at {
            Some(opens_at) if moment.reference() < opens_at => Shortage::NotOpen { opens_at },
            _ => {
                self.count_late(request, moment, counters);
                Shortage::Sequence { due }
            }
        }
    }

    /// The greatest count that can be filled at any time.
    pub(in crate::minting) fn count_max(&self, variant: usize) -> u64 {
        self.counts_max[variant]
    }

    /// Every counter of this minter.
    pub(in crate::minting) fn sequencers(&self) -> impl Iterator<Item = &Sequencer> {
        self.lanes.iter().flat_map(|lane| &lane.sequencers)
    }

    /// Reserves the ids of a request on the lowest lane whose ids may leave at once.
    #[inline]
    fn reserve_at_once(
        &self,
        request: &BatchRequest,
        moment: &Moment,
    ) -> Result<Placement, Shortage> {
        let mut first_due = None;
        for (at, lane) in self.lanes.iter().enumerate() {
            match lane.sequencers[request.variant()].reserve(
                request.count(),
                moment,
                Duration::ZERO,
            ) {
                Ok(grant) => return Ok(Placement::whole(at, grant, request.count())),
                Err(Shortage::Sequence { due }) => {
                    first_due = Some(first_due.map_or(due, |first: UnixNanos| first.min(due)))
                }
                Err(shortage) => return Err(shortage),
            }
        }
        Err(Shortage::Sequence {
            due: first_due.expect("a minter has a lane"),
        })
    }

    fn first_to_answer(&self, request: &BatchRequest, moment: &Moment) -> usize {
        let due = |lane: &Lane| {
            lane.sequencers[request.variant()].due_for(request.count(), moment, self.wait_max)
        };
        let lanes = self.lanes.iter().enumerate();
        lanes
            .min_by_key(|(_, lane)| due(lane))
            .map(|(at, _)| at)
            .expect("a minter has a lane")
    }

    /// A request from every lane that is free, so that all of it may leave as early as it can: the ids of each tick from
    /// all lanes before those of the next, and in the last tick the lower lanes first.
    fn spread(
        &self,
        request: &BatchRequest,
        moment: &Moment,
        counters: &MintCounters,
    ) -> Result<Placement, Shortage> {
        let sequencers: Vec<_> = self
            .lanes
            .iter()
            .map(|lane| &lane.sequencers[request.variant()])
            .collect();
        let (mut shares, mut missing) = (Vec::with_capacity(sequencers.len()), request.count());
        let (mut due, mut refill) = (moment.now, false);
        // Once, unless others take stamps between the look and the reservation.
        while missing > 0 {
            let free: Vec<_> = sequencers
                .iter()
                .map(|sequencer| sequencer.first_free(moment))
                .collect();
            // A start ahead of its clock comes past single stamps, not past whole ticks.
            let together = if moment.catching_up.is_some() {
                1
            } else {
                sequencers[0].line().per_tick()
            };
            let ends = spread_ends(&free, together, missing);
            let parts = || {
                sequencers
                    .iter()
                    .zip(free.iter().zip(&ends))
                    .enumerate()
                    .filter(|(_, (_, (free, end)))| free < end)
            };
            due = parts()
                .map(|(_, (sequencer, (_, end)))| sequencer.due(*end, moment))
                .fold(due, UnixNanos::max);
            let checked = parts().try_for_each(|(_, (sequencer, (_, end)))| sequencer.check(*end));
            let shortage = match checked {
                _ if due.since(moment.now) > self.wait_max => {
                    Some(self.exhausted(due, request, moment, counters))
                }
                Err(shortage) => Some(shortage),
                Ok(()) => None,
            };
            if let Some(shortage) = shortage {
                // What was reserved before others came stays a gap.
                return Err(shortage);
            }
            for (lane, (sequencer, (_, end))) in parts() {
                let Some(taken) = sequencer.take_until(*end, moment) else {
                    continue;
                };
                refill |= sequencer.needs_refill(taken.end);
                missing -= taken.end - taken.start;
                shares.push(Share {
                    lane,
                    first: taken.start,
                    count: taken.end - taken.start,
                });
                if due > moment.now {
                    counters.count_exhausted(lane);
                }
            }
        }
        Ok(Placement {
            shares: Shares::Spread(shares),
            due,
            refill,
        })
    }

    /// The ids of a request, where they were placed.
    #[inline]
    pub(in crate::minting) fn batch(&self, request: &BatchRequest, placement: &Placement) -> Batch {
        match &placement.shares {
            Shares::Whole(share) => Batch::of_run(self.run(request, share)),
            Shares::Spread(shares) => {
                let mut shares = shares.clone();
                shares.sort_by_key(|share| (share.lane, share.first));
                Batch::of_lanes(
                    shares
                        .iter()
                        .map(|share| self.run(request, share))
                        .collect(),
                )
            }
        }
    }

    // Always: it is called from two places, so the compiler left it apart, and a reservation was 20 instructions longer.
    #[inline(always)]
    fn run(&self, request: &BatchRequest, share: &Share) -> Run {
        let shape = &self.shapes[request.variant()];
        let lane = &self.lanes[share.lane];
        let (tick, sequence) = lane.sequencers[request.variant()]
            .line()
            .tick_and_sequence(share.first);
        let base = lane.bases[request.variant()]
            + u128::from(request.domain().get()) * shape.object_stride;
        Run {
            steps: shape.steps,
            base,
            tick,
            sequence,
            count: share.count,
        }
    }
}

/// Where the share of each lane ends when `count` stamps are taken from all of them: everything before the last row, and of
/// that the lower lanes first. A row is `together` stamps that may leave at once. `free`: the first free stamp of each lane.
fn spread_ends(free: &[u64], together: u64, count: u64) -> Vec<u64> {
    let all_before = |row: u64| {
        let end = row.saturating_mul(together);
        free.iter()
            .map(|first| end.saturating_sub(*first))
            .fold(0, u64::saturating_add)
    };
    let lowest = free.iter().min().expect("a minter has a lane") / together;
    // One lane alone would have enough before the end of this row.
    let (mut last, mut beyond) = (
        lowest,
        lowest.saturating_add(count / together).saturating_add(2),
    );
    while beyond - last > 1 {
        let middle = last + (beyond - last) / 2;
        if all_before(middle) >= count {
            beyond = middle
        } else {
            last = middle
        }
    }
    let (begins, ends) = (
        last.saturating_mul(together),
        beyond.saturating_mul(together),
    );
    let mut missing = count.saturating_sub(all_before(last));
    let end_of = |first: &u64| {
        let first = begins.max(*first);
        let taken = ends.saturating_sub(first).min(missing);
        missing -= taken;
        first + taken
    };
    free.iter().map(end_of).collect()
}

/// What the lanes of one batch have in a tick, the lead and the wait.
fn count_max(tick: Tick, lead_ticks: u64, wait_max: Duration, shape: &Shape, lanes: usize) -> u64 {
    let waited = wait_max.as_nanos() * u128::from(tick.parts()) / u128::from(tick.nanos());
    let lanes = u128::try_from(lanes).expect("lanes are few");
    let count = (waited + u128::from(lead_ticks) + 1)
        .saturating_mul(u128::from(shape.steps.per_tick) * lanes);
    // No request asks for as many.
    u64::try_from(count.min(u64::MAX.into())).expect("not above the greatest of 64 bits")
}

/// How many whole ticks fit into the lead: at least one of a short tick, none of a long one.
fn lead_ticks(lead_max: Duration, tick: Duration) -> u64 {
    if tick >= LEAD_TICK_MAX {
        return 0;
    }
    let ticks = lead_max.as_nanos() / tick.as_nanos().max(1);
    u64::try_from(ticks.clamp(1, u32::MAX.into())).expect("at most 32 bits")
}

#[cfg(test)]
#[path = "minter_tests.rs"]
mod tests;
