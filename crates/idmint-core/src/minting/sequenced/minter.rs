//! Mints ids from time, worker number and sequence, and chooses the lanes for each request.

use std::time::Duration;

use super::excluded_ids::ExcludedTicks;
use super::lanes::Lanes;
use super::sequencer::{CatchUp, Grant, Moment, Sequencer, Shortage, Spread};
use super::stamps::{Run, Shape, StampLine};
use crate::id::Format;
use crate::minting::batch::{Batch, BatchRequest, MintCounters};
use crate::minting::session_start::SessionStart;
use crate::time::{Tick, UnixNanos};

/// Formats with ticks of at least this length have no lead, so their ids are never ahead of the
/// clock. A lead is at least one tick, and users would notice ids that far in the future.
const LEAD_TICK_MAX: Duration = Duration::from_millis(100);

/// Mints one sequenced format with all worker numbers of this node, during one session.
#[derive(Debug)]
pub(in crate::minting) struct SequencedMinter {
    /// The amounts that one unit of each field adds to an id, for each variant of the format.
    shapes: Vec<Shape>,
    /// The maximum number of ids that one request can get, for each variant of the format.
    counts_max: Vec<u64>,
    /// The worker numbers of this node, in the order of the field `lanes`.
    numbers: Lanes,
    lanes: Vec<Lane>,
    lead_ticks: u64,
    wait_max: Duration,
    /// `true` if one batch may contain ids of several lanes.
    spreads: bool,
    /// The instant at which the first ids may be sent, if that is after the start of the session.
    opens_at: Option<UnixNanos>,
    catch_up: CatchUp,
}

/// The start and settings of a session, the period in which a process has its worker numbers.
#[derive(Debug, Clone, Copy)]
pub(in crate::minting) struct Beginning {
    /// The instant from which ids are minted: the end of the time that was reserved on disk before,
    /// or the clock, whichever is later.
    pub(in crate::minting) start: SessionStart,
    /// The node's slot, or `None` if it keeps its worker numbers until it exits.
    pub(in crate::minting) slot: Option<u32>,
    /// The time that the clock shows when the session begins.
    pub(in crate::minting) now: UnixNanos,
    /// The maximum time that one extension of the horizon may reserve.
    pub(in crate::minting) window: Duration,
    /// The maximum time by which ids may be ahead of the clock.
    pub(in crate::minting) lead_max: Duration,
    /// The maximum time for which a response may be held until the clock reaches the time of its
    /// ids.
    pub(in crate::minting) wait_max: Duration,
    /// The shard number from the configuration.
    pub(in crate::minting) shard: u64,
}

impl Beginning {
    /// Returns the rules that slow down minting if the first ids have times ahead of the clock.
    /// They apply until the clock has caught up.
    pub(in crate::minting) fn catch_up(&self) -> CatchUp {
        CatchUp::new(self.start.at, self.now)
    }
}

/// A lane of this node. It has one sequencer for each layout of the format.
#[derive(Debug)]
struct Lane {
    /// The amount that the worker number and all fields with a fixed value add to every id with
    /// this worker number. One item for each variant of the format.
    bases: Vec<u128>,
    sequencers: Vec<Sequencer>,
}

/// The stamps that are reserved for one request.
#[derive(Debug)]
pub(in crate::minting) struct Placement {
    shares: Shares,
    /// The instant from which all ids of the request may be sent.
    pub(in crate::minting) due: UnixNanos,
    /// `true` if less than half of the reserved minting time is left, so that more should be
    /// reserved.
    pub(in crate::minting) refill: bool,
}

/// The shares of the worker numbers in the stamps of one request. Nearly always, one worker number
/// provides all stamps.
#[derive(Debug)]
enum Shares {
    Whole(Share),
    Spread(Vec<Share>),
}

/// Consecutive stamps that one lane contributes to a request.
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
    /// Creates a minter. It mints no ids until its horizon is raised.
    ///
    /// # Panics
    /// Panics if the session starts before the instant from which `excluded` is complete.
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
            .layouts()
            .map(|layout| Shape::of(layout, shard))
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
        // If ticks must be skipped, the next free ids of two worker numbers may be in different
        // ticks. `spread` cannot skip ticks, so each batch then uses only one worker number.
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

    /// Returns the worker numbers with which this minter mints.
    pub(in crate::minting) fn lanes(&self) -> &Lanes {
        &self.numbers
    }

    /// Returns the [`Moment`] of a request: the clock time `now` and, if minting began ahead of the
    /// clock, the time of new ids, which advances at half speed until the clock has caught up.
    #[inline]
    pub(in crate::minting) fn moment(&self, now: UnixNanos) -> Moment {
        self.catch_up.at(now)
    }

    /// Reserves the ids of a request on the lowest lane whose ids can be sent immediately.
    ///
    /// If no lane has enough ids to send immediately, the request waits for the first lane that has
    /// enough. If a batch may contain ids of several lanes, two kinds of requests are spread over
    /// all lanes instead: a request that is larger than one lane can ever send immediately, and a
    /// request that would wait longer than `wait_max`.
    #[inline]
    pub(in crate::minting) fn reserve(
        &self,
        request: &BatchRequest,
        moment: &Moment,
        counters: &MintCounters,
    ) -> Result<Placement, Shortage> {
        match self.reserve_at_once(request, moment) {
            Err(Shortage::Sequence { due }) => self.reserve_late(due, request, moment, counters),
            // All lanes together may have enough ids before the end of the format.
            Err(Shortage::Ended) if self.spreads => self.spread(request, moment, counters),
            outcome => outcome,
        }
    }

    /// Reserves the ids of a request if no worker number has enough ids to send immediately. `due`
    /// is the earliest instant at which one worker number has enough.
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
            // Another thread may be faster and reserve the free ids of the chosen worker number. In
            // that case, choose again, at most once for each worker number of this node.
            for _ in 0..=self.lanes.len() {
                let lane = self.first_to_answer(request, moment);
                match self.lanes[lane].sequencers[request.variant()].reserve(
                    request.count(),
                    moment,
                    self.wait_max,
                ) {
                    Ok(grant) => {
                        if self.is_open(moment) {
                            self.count_late(counters);
                        }
                        return Ok(Placement::whole(lane, grant, request.count()));
                    }
                    Err(Shortage::Sequence { .. } | Shortage::Ended) => {}
                    Err(shortage) => return Err(shortage),
                }
            }
        }
        if self.spreads {
            self.spread(request, moment, counters)
        } else {
            Err(self.exhausted(due, moment, counters))
        }
    }

    /// Counts a request for which no worker number had enough ids to send immediately. The counter
    /// of each worker number goes up, because none had enough.
    pub(in crate::minting) fn count_late(&self, counters: &MintCounters) {
        (0..self.lanes.len()).for_each(|lane| counters.count_exhausted(lane));
    }

    /// Returns the error for a request whose ids could not be sent before `due`. If the format has
    /// begun, also counts the request as one for which no worker number had enough ids.
    fn exhausted(&self, due: UnixNanos, moment: &Moment, counters: &MintCounters) -> Shortage {
        match self.opens_at {
            Some(opens_at) if !self.is_open(moment) => Shortage::NotOpen { opens_at },
            _ => {
                self.count_late(counters);
                Shortage::Sequence { due }
            }
        }
    }

    /// `true` if the format has begun. Before that, its sequences are unused, so no request counts
    /// as one that found them exhausted.
    fn is_open(&self, moment: &Moment) -> bool {
        self.opens_at.is_none_or(|at| moment.reference() >= at)
    }

    /// Returns the maximum number of ids that one request for this variant of the format can get.
    pub(in crate::minting) fn count_max(&self, variant: usize) -> u64 {
        self.counts_max[variant]
    }

    pub(in crate::minting) fn sequencers(&self) -> impl Iterator<Item = &Sequencer> {
        self.lanes.iter().flat_map(|lane| &lane.sequencers)
    }

    /// Reserves the ids of a request on the lowest lane whose ids can be sent immediately. If no
    /// such lane exists, the error contains the earliest instant at which a lane has enough ids.
    /// The error is [`Shortage::Ended`] if no lane has enough before the end of the format.
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
                Err(Shortage::Ended) => {}
                Err(shortage) => return Err(shortage),
            }
        }
        Err(first_due.map_or(Shortage::Ended, |due| Shortage::Sequence { due }))
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

    /// Spreads a request over all lanes, so that all of its ids can be sent as early as possible.
    ///
    /// All lanes use up a tick before any lane takes ids of the next tick. In the last tick, lower
    /// lanes are filled first.
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
        // The loop runs once, unless other threads reserve some of the ids that it found free.
        while missing > 0 {
            let free: Vec<_> = sequencers
                .iter()
                .map(|sequencer| sequencer.first_free(moment))
                .collect();
            // If minting began ahead of the clock, ids become available one by one until the clock
            // has caught up. Otherwise all ids of a tick become available together.
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
            // If the format ends after the last stamp of 64 bits, no stamp may be left.
            if parts().next().is_none() {
                return Err(Shortage::Ended);
            }
            due = parts()
                .map(|(_, (sequencer, (_, end)))| sequencer.due(*end, moment))
                .fold(due, UnixNanos::max);
            let checked = parts().try_for_each(|(_, (sequencer, (_, end)))| sequencer.check(*end));
            let shortage = match checked {
                Err(Shortage::Ended) => Some(Shortage::Ended),
                _ if due.since(moment.now) > self.wait_max => {
                    Some(self.exhausted(due, moment, counters))
                }
                Err(shortage) => Some(shortage),
                Ok(()) => None,
            };
            if let Some(shortage) = shortage {
                // Ids that this request reserved in an earlier round of the loop remain unused.
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
                if due > moment.now && self.is_open(moment) {
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

    /// Returns the ids of the stamps that `placement` reserves.
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

    // With `inline` alone, the compiler does not inline this function, because it is called in two
    // places. A reservation then takes 20 more instructions.
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

/// Divides `count` stamps among all lanes, and returns for each lane the stamp at which its share
/// ends (exclusive).
///
/// `free` contains the first free stamp of each lane. The stamps of a lane are divided into rows of
/// `together` stamps, which become free at the same time. Row 0 of every lane begins at stamp 0.
/// All rows but the last are taken completely. In the last row, lower lanes are used first. For
/// example, with `free = [3, 0]`, `together = 10` and `count = 15`, the shares end at `[10, 8]`.
fn spread_ends(free: &[u64], together: u64, count: u64) -> Vec<u64> {
    let all_before = |row: u64| {
        let end = row.saturating_mul(together);
        free.iter()
            .map(|first| end.saturating_sub(*first))
            .fold(0, u64::saturating_add)
    };
    let lowest = free.iter().min().expect("a minter has a lane") / together;
    // Find the last row of ids that the request needs. It is before row `beyond`, because the lane
    // with the lowest free id alone has `count` free ids before that row.
    let mut last = lowest;
    let mut beyond = lowest.saturating_add(count / together).saturating_add(2);
    while beyond - last > 1 {
        let middle = last + (beyond - last) / 2;
        if all_before(middle) >= count {
            beyond = middle
        } else {
            last = middle
        }
    }
    let begins = last.saturating_mul(together);
    let ends = beyond.saturating_mul(together);
    let mut missing = count.saturating_sub(all_before(last));
    let end_of = |first: &u64| {
        let first = begins.max(*first);
        let taken = ends.saturating_sub(first).min(missing);
        missing -= taken;
        first + taken
    };
    free.iter().map(end_of).collect()
}

/// Returns the greatest number of ids that one request can be granted. These are the ids of `lanes`
/// worker numbers in the current tick, in the ticks by which ids may be ahead of the clock, and in
/// the ticks of the maximum wait.
fn count_max(tick: Tick, lead_ticks: u64, wait_max: Duration, shape: &Shape, lanes: usize) -> u64 {
    let waited = wait_max.as_nanos() * u128::from(tick.parts()) / u128::from(tick.nanos());
    let lanes = u128::try_from(lanes).expect("lanes are few");
    let count = (waited + u128::from(lead_ticks) + 1)
        .saturating_mul(u128::from(shape.steps.per_tick) * lanes);
    // A request counts its ids in 64 bits, so a greater maximum would make no difference.
    u64::try_from(count.min(u64::MAX.into())).expect("not above the greatest of 64 bits")
}

/// Returns the number of whole ticks by which ids may be ahead of the clock (the lead). If ticks
/// are shorter than 100 ms, the lead is at least one tick. Otherwise it is zero.
pub(crate) fn lead_ticks(lead_max: Duration, tick: Duration) -> u64 {
    if tick >= LEAD_TICK_MAX {
        return 0;
    }
    let ticks = lead_max.as_nanos() / tick.as_nanos().max(1);
    u64::try_from(ticks.clamp(1, u32::MAX.into())).expect("at most 32 bits")
}

#[cfg(test)]
#[path = "minter_tests.rs"]
mod tests;
