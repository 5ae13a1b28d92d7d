//! Minting from time, worker and sequence: which lane serves an request.

use std::time::Duration;

use super::beginning::Beginning;
use super::catch_up::{CatchUp, Moment};
use super::lanes::Lanes;
use super::run::{Run, Shape};
use super::sequencer::{Grant, Sequencer, Shortage};
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
    lanes: Vec<Lane>,
    wait_max: Duration,
    catch_up: CatchUp,
}

/// One worker number, with a sequence for each variant of the format.
#[derive(Debug)]
struct Lane {
    /// For each variant of the format: what every id of this lane has in common.
    bases: Vec<u128>,
    sequencers: Vec<Sequencer>,
}

/// What was reserved for one request: nearly always all of it on one lane.
#[derive(Debug)]
pub(in crate::minting) enum Placement {
    Whole(Share),
    Spread(Vec<Share>),
}

/// So many ids of one lane.
#[derive(Debug, Clone, Copy)]
pub(in crate::minting) struct Share {
    lane: usize,
    grant: Grant,
    count: u64,
}

impl Placement {
    /// When all of the ids may leave.
    #[inline]
    pub(in crate::minting) fn due(&self) -> UnixNanos {
        match self {
            Placement::Whole(share) => share.grant.due,
            Placement::Spread(shares) => {
                shares.iter().map(|share| share.grant.due).max().expect("a request has a share")
            }
        }
    }

    /// Whether the horizon should be raised soon.
    #[inline]
    pub(in crate::minting) fn refill(&self) -> bool {
        match self {
            Placement::Whole(share) => share.grant.refill,
            Placement::Spread(shares) => shares.iter().any(|share| share.grant.refill),
        }
    }
}

impl SequencedMinter {
    /// A minter that may mint nothing until its horizon is raised.
    pub(in crate::minting) fn new(format: &Format, lanes: &Lanes, beginning: &Beginning) -> SequencedMinter {
        let Beginning { start, shard, lead_max, wait_max, .. } = *beginning;
        let tick = format.tick.expect("a sequenced format has a tick, checked when it was made");
        let end_tick = format.end_tick().expect("a sequenced format has a time field");
        let lead_ticks = lead_ticks(lead_max, tick.duration());
        let shapes: Vec<Shape> = format.variants.iter().map(|variant| Shape::of(&variant.layout, shard)).collect();
        let sequencer = |shape: &Shape| {
            let line = StampLine::new(tick, format.epoch, shape.steps.per_tick, start);
            Sequencer::new(line, start, end_tick, lead_ticks)
        };
        let lane = |worker: &u32| Lane {
            bases: shapes.iter().map(|shape| shape.fixed + u128::from(*worker) * shape.worker_stride).collect(),
            sequencers: shapes.iter().map(sequencer).collect(),
        };
        let lanes: Vec<Lane> = lanes.workers().iter().map(lane).collect();
        let counts_max = shapes.iter().map(|shape| count_max(tick, lead_ticks, wait_max, shape, lanes.len())).collect();
        SequencedMinter { shapes, counts_max, lanes, wait_max, catch_up: beginning.catch_up() }
    }

    /// The moment at which the clock shows `now`.
    #[inline]
    pub(in crate::minting) fn moment(&self, now: UnixNanos) -> Moment {
        self.catch_up.at(now)
    }

    /// Reserves the ids of a request: on the lowest lane that can answer at once, else on the one that can answer first,
    /// else spread over several as runs that each increase.
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
        if due.since(moment.now) <= self.wait_max {
            // Another caller may take the place of that lane meanwhile: then the next first one, while there is one.
            for _ in 0..=self.lanes.len() {
                let lane = self.first_to_answer(request, moment);
                match self.lanes[lane].sequencers[request.variant()].reserve(request.count(), moment, self.wait_max) {
                    Ok(grant) => {
                        counters.count_exhausted(lane);
                        return Ok(Placement::Whole(Share { lane, grant, count: request.count() }));
                    }
                    Err(Shortage::Sequence { .. }) => {}
                    Err(shortage) => return Err(shortage),
                }
            }
        }
        self.spread(request, moment, counters)
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
    fn reserve_at_once(&self, request: &BatchRequest, moment: &Moment) -> Result<Placement, Shortage> {
        let mut first_due = None;
        for (at, lane) in self.lanes.iter().enumerate() {
            match lane.sequencers[request.variant()].reserve(request.count(), moment, Duration::ZERO) {
                Ok(grant) => return Ok(Placement::Whole(Share { lane: at, grant, count: request.count() })),
                Err(Shortage::Sequence { due }) => {
                    first_due = Some(first_due.map_or(due, |first: UnixNanos| first.min(due)))
                }
                Err(shortage) => return Err(shortage),
            }
        }
        Err(Shortage::Sequence { due: first_due.expect("a minter has a lane") })
    }

    fn first_to_answer(&self, request: &BatchRequest, moment: &Moment) -> usize {
        let due = |lane: &Lane| lane.sequencers[request.variant()].due_for(request.count(), moment);
        let lanes = self.lanes.iter().enumerate();
        lanes.min_by_key(|(_, lane)| due(lane)).map(|(at, _)| at).expect("a minter has a lane")
    }

    /// A request that no single lane can fill in time, from as many as it takes: all of it or nothing.
    fn spread(&self, request: &BatchRequest, moment: &Moment, counters: &MintCounters) -> Result<Placement, Shortage> {
        let wait_max = self.wait_max;
        let available = |lane: &Lane| lane.sequencers[request.variant()].available(moment, wait_max);
        let refused = |shortage_at: UnixNanos| {
            counters.count_exhausted(self.first_to_answer(request, moment));
            Err(Shortage::Sequence { due: shortage_at })
        };
        let all: u64 = self.lanes.iter().map(available).fold(0, u64::saturating_add);
        if all < request.count() {
            return refused(self.filled_at(request, moment));
        }
        let mut shares = Vec::new();
        let mut missing = request.count();
        for (at, lane) in self.lanes.iter().enumerate() {
            let count = available(lane).min(missing);
            if count == 0 {
                continue;
            }
            match lane.sequencers[request.variant()].reserve(count, moment, wait_max) {
                Ok(grant) => {
                    counters.count_exhausted(at);
                    shares.push(Share { lane: at, grant, count });
                    missing -= count;
                }
                Err(shortage @ Shortage::Horizon { .. }) => {
                    return self.give_up(shortage, request.count() - missing, counters);
                }
                Err(_) => {}
            }
        }
        if missing > 0 {
            // Others took the rest between the look and the reservation. What was reserved here stays a gap.
            return self.give_up(
                Shortage::Sequence { due: self.filled_at(request, moment) },
                request.count() - missing,
                counters,
            );
        }
        Ok(Placement::Spread(shares))
    }

    fn give_up(&self, shortage: Shortage, reserved: u64, counters: &MintCounters) -> Result<Placement, Shortage> {
        counters.count_unsent(reserved);
        Err(shortage)
    }

    /// When all lanes together could fill the request, if nobody else came: found by bisection over the next ticks, to the
    /// nanosecond, because callers are told whole milliseconds, rounded up.
    fn filled_at(&self, request: &BatchRequest, moment: &Moment) -> UnixNanos {
        let enough = |wait: Duration| {
            let available =
                |lane: &Lane| lane.sequencers[request.variant()].available(&moment.later(wait), Duration::ZERO);
            self.lanes.iter().map(available).fold(0, u64::saturating_add) >= request.count()
        };
        let (mut short, mut long) = (Duration::ZERO, self.wait_max.max(Duration::from_millis(1)));
        while !enough(long) && long < Duration::from_secs(1 << 20) {
            (short, long) = (long, long * 2);
        }
        while long - short > Duration::from_nanos(1) {
            let middle = short + (long - short) / 2;
            if enough(middle) { long = middle } else { short = middle }
        }
        moment.now.after(long)
    }

    /// The ids of a request, where they were placed.
    #[inline]
    pub(in crate::minting) fn batch(&self, request: &BatchRequest, placement: &Placement) -> Batch {
        match placement {
            Placement::Whole(share) => Batch::of_run(self.run(request, share)),
            Placement::Spread(shares) => Batch::of_runs(shares.iter().map(|share| self.run(request, share)).collect()),
        }
    }

    #[inline]
    fn run(&self, request: &BatchRequest, share: &Share) -> Run {
        let shape = &self.shapes[request.variant()];
        let lane = &self.lanes[share.lane];
        let (tick, sequence) = lane.sequencers[request.variant()].line().tick_and_sequence(share.grant.first);
        let base = lane.bases[request.variant()] + u128::from(request.domain().get()) * shape.object_stride;
        Run { steps: shape.steps, base, tick, sequence, count: share.count }
    }
}

/// What every lane has in a tick, the lead and the wait.
fn count_max(tick: Tick, lead_ticks: u64, wait_max: Duration, shape: &Shape, lanes: usize) -> u64 {
    let waited = wait_max.as_nanos() * u128::from(tick.parts()) / u128::from(tick.nanos());
    let ticks = u64::try_from(waited).unwrap_or(u64::MAX).saturating_add(lead_ticks).saturating_add(1);
    let lanes = u64::try_from(lanes).expect("lanes are few");
    ticks.saturating_mul(shape.steps.per_tick).saturating_mul(lanes)
}

/// How many whole ticks fit into the lead: at least one of a short tick, none of a long one.
fn lead_ticks(lead_max: Duration, tick: Duration) -> u64 {
    if tick >= LEAD_TICK_MAX {
        return 0;
    }
    u64::try_from(lead_max.as_nanos() / tick.as_nanos().max(1)).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::sync::Arc;

    use super::*;
    use crate::id::{FormatDefinition, PRESETS};
    use crate::minting::durable::Durable;
    use crate::minting::mint::{Mint, MintSettings};
    use crate::minting::sequenced::lanes::{LaneCount, LaneRule};
    use crate::time::ManualClock;

    #[test]
    fn no_request_is_held_while_a_lane_is_free() {
        let snowflake = PRESETS.iter().find(|preset| preset.name == "snowflake").expect("a built-in format");
        let format = FormatDefinition::from_toml(snowflake.name, snowflake.toml).expect("a definition");
        let format = Arc::new(format.compile(snowflake.name).expect("a format"));
        let rule = LaneRule { slot: 0, slots: 1, lanes: LaneCount::UpTo(8), shard: 0 };
        let lanes = Lanes::of(&format, &rule).expect("room for 8 lanes");
        let clock = Arc::new(ManualClock::at(UnixNanos::from_seconds(1_795_232_161)).clock());
        let (wait_max, lead_max) = (Duration::from_millis(250), Duration::from_millis(5));
        let settings = MintSettings { wait_max, lead_max, window: Duration::from_secs(3), shard: 0 };
        let mut mint = Mint::new(Arc::clone(&clock), settings);
        let minter = mint.add_sequenced(format, lanes);
        let session = mint.prepare(clock.now());
        let plan = session.plan_extension(clock.now(), clock.now());
        let on_disk = Durable::write(plan, |_| Ok::<_, std::io::Error>(())).expect("nothing to fail");
        session.raise(&on_disk, clock.now());
        mint.begin(session);

        // A lane has 4 096 ids for the present tick and for each of the five of the lead.
        let whole_lane = minter.request(NonZeroU32::new(6 * 4096).expect("some"), None).expect("a request");
        let is_held = |_| minter.reserve(&whole_lane).expect("all lanes together have them").due.is_some();
        assert_eq!((0..9).map(is_held).position(|held| held), Some(8));
    }
}
