//! One format that is minted by count: the format, its counters, and what mints it.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::batch::Batch;
use super::batch_request::{BatchRequest, RequestError};
use super::counters::CountedFormat;
use super::refusal::Refusal;
use super::session_state::SessionState;
use crate::id::{Format, Rejection};
use crate::minting::random::RandomMinter;
use crate::minting::sequenced::{
    ExcludedIds, ExcludedTicks, Lanes, SequencedFormat, SequencedMinter, Shortage,
};
use crate::time::{Clock, UnixNanos};

/// Mints one format of which callers want a number of ids. Made by [`Mint`](super::Mint); an example is there.
#[derive(Debug)]
pub struct Minter {
    counted: Arc<CountedFormat>,
    clock: Arc<Clock>,
    state: Arc<SessionState>,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Sequenced(Arc<SequencedFormat>),
    Random(Arc<RandomMinter>),
}

/// The ids of a request.
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
        /// The least horizon that covers the request.
        needed: UnixNanos,
    },
}

impl Minter {
    pub(super) fn sequenced(
        sequenced: Arc<SequencedFormat>,
        clock: Arc<Clock>,
        state: Arc<SessionState>,
    ) -> Minter {
        let counted = CountedFormat::new(
            Arc::clone(sequenced.format()),
            sequenced.most_lanes().workers().len(),
        );
        Minter {
            counted: Arc::new(counted),
            clock,
            state,
            source: Source::Sequenced(sequenced),
        }
    }

    pub(super) fn random(
        minter: RandomMinter,
        clock: Arc<Clock>,
        state: Arc<SessionState>,
    ) -> Minter {
        let counted = Arc::new(CountedFormat::new(Arc::clone(minter.format()), 0));
        Minter {
            counted,
            clock,
            state,
            source: Source::Random(Arc::new(minter)),
        }
    }

    /// The format of its ids, and what is counted of them.
    pub fn counted(&self) -> &Arc<CountedFormat> {
        &self.counted
    }

    fn format(&self) -> &Format {
        &self.counted.format
    }

    /// The worker numbers that it mints with; `None` for a random format, and while it waits for a slot.
    pub fn lanes(&self) -> Option<Lanes> {
        match &self.source {
            Source::Sequenced(sequenced) => sequenced.lanes(),
            Source::Random(_) => None,
        }
    }

    /// As many worker numbers as it ever has at once; `None` for a random format.
    pub fn most_lanes(&self) -> Option<&Lanes> {
        match &self.source {
            Source::Sequenced(sequenced) => Some(sequenced.most_lanes()),
            Source::Random(_) => None,
        }
    }

    /// A request for `count` ids, of the type of that name where the format has types.
    ///
    /// # Errors
    /// [`RequestError`] names what was asked for and what there is.
    pub fn request(
        &self,
        count: NonZeroU32,
        of_type: Option<&str>,
    ) -> Result<BatchRequest, RequestError> {
        BatchRequest::new(self.format(), count, of_type)
    }

    /// How many ids of a variant can be had at any time in one request; `None` if there is no such limit.
    pub fn count_max(&self, variant: usize) -> Option<u64> {
        match &self.source {
            Source::Sequenced(sequenced) => {
                sequenced.in_session(|minter| minter.count_max(variant))
            }
            Source::Random(_) => None,
        }
    }

    /// How many long requests have lanes of their own; `None` where ids are never waited for. One that may take every lane
    /// has no other beside it.
    pub fn long_requests_max(&self) -> Option<usize> {
        let Source::Sequenced(sequenced) = &self.source else {
            return None;
        };
        let lanes = sequenced.most_lanes();
        Some(if lanes.share_a_batch(self.format()) {
            1
        } else {
            lanes.workers().len()
        })
    }

    /// Reads ids of another generator, to find the ticks that sessions from that instant on leave out; `None` for a random format.
    pub fn excluded_ids(&self, from: UnixNanos) -> Option<ExcludedIds> {
        match &self.source {
            Source::Sequenced(sequenced) => Some(sequenced.excluded_ids(from)),
            Source::Random(_) => None,
        }
    }

    /// Every later session leaves these ticks out: see [`Format::exclude`].
    ///
    /// # Panics
    /// When others are left out already, or the format is random.
    pub fn exclude(&self, ticks: ExcludedTicks) {
        match &self.source {
            Source::Sequenced(sequenced) => sequenced.exclude(ticks),
            Source::Random(_) => {
                panic!("random ids have no ticks to leave out, checked when the format was made")
            }
        }
    }

    /// The refusal of a request that others have kept waiting for so long, counted as one for want of ids.
    pub fn refuse_late(&self, request: &BatchRequest, waited: Duration) -> Refusal {
        if let Source::Sequenced(sequenced) = &self.source {
            sequenced.in_session(|minter| {
                minter.count_late(
                    request,
                    &minter.moment(self.clock.now()),
                    &self.counted.counters,
                );
            });
        }
        Refusal::SequenceExhausted {
            format: self.format().name.clone(),
            retry_after: waited,
        }
    }

    /// Reserves the ids of a request, which this minter made: one read of the clock, one compare-exchange.
    ///
    /// # Errors
    /// [`Denied`]: nothing was minted.
    #[inline]
    pub fn reserve(&self, request: &BatchRequest) -> Result<Granted, Denied> {
        match &self.source {
            Source::Sequenced(sequenced) => {
                let kept = sequenced.leased();
                match sequenced
                    .held_for_good()
                    .or(kept.as_deref().map(AsRef::as_ref))
                {
                    Some(minter) => self.reserve_stamps(minter, request),
                    None => Err(Denied::Refused(self.state.reason())),
                }
            }
            Source::Random(minter) => self.draw(minter, request),
        }
    }

    /// Called from one place, so that the compiler puts all of it there: what it returns is not copied on the way.
    #[inline]
    fn reserve_stamps(
        &self,
        minter: &SequencedMinter,
        request: &BatchRequest,
    ) -> Result<Granted, Denied> {
        let moment = minter.moment(self.clock.now());
        let most = minter.count_max(request.variant());
        if request.count() > most {
            let format = self.format().name.clone();
            return Err(Denied::Refused(Refusal::TooMany {
                format,
                count: request.count(),
                most,
            }));
        }
        match minter.reserve(request, &moment, &self.counted.counters) {
            Ok(placement) => {
                let due = Some(placement.due).filter(|due| *due > moment.now);
                self.counted
                    .counters
                    .count_granted(request.count(), due.is_some());
                Ok(Granted {
                    batch: minter.batch(request, &placement),
                    due,
                    refill: placement.refill,
                })
            }
            Err(Shortage::Horizon { needed }) => Err(Denied::Horizon { needed }),
            Err(Shortage::Sequence { due }) => {
                let (format, retry_after) = (self.format().name.clone(), due.since(moment.now));
                Err(Denied::Refused(Refusal::SequenceExhausted {
                    format,
                    retry_after,
                }))
            }
            Err(Shortage::Ended) => Err(Denied::Refused(self.ended())),
            Err(Shortage::NotBegun) => Err(Denied::Refused(self.not_begun())),
            Err(Shortage::NotOpen { opens_at }) => {
                let (format, retry_after) =
                    (self.format().name.clone(), opens_at.since(moment.now));
                Err(Denied::Refused(Refusal::NotOpen {
                    format,
                    retry_after,
                }))
            }
        }
    }

    /// Random ids need no session, only a clock that can be right.
    fn draw(&self, minter: &Arc<RandomMinter>, request: &BatchRequest) -> Result<Granted, Denied> {
        if let Some(refusal) = self.state.wrong_clock() {
            return Err(Denied::Refused(refusal));
        }
        let ids = minter
            .ids(request.count())
            .map_err(|rejection| match rejection {
                Rejection::BeforeEpoch => Denied::Refused(self.not_begun()),
                _ => Denied::Refused(self.ended()),
            })?;
        self.counted.counters.count_granted(request.count(), false);
        Ok(Granted {
            batch: Batch::of_random(ids),
            due: None,
            refill: false,
        })
    }

    fn ended(&self) -> Refusal {
        let ended = self
            .format()
            .end()
            .expect("only a format with a time field ends");
        Refusal::EpochEnded {
            format: self.format().name.clone(),
            ended,
        }
    }

    fn not_begun(&self) -> Refusal {
        Refusal::BeforeEpoch {
            format: self.format().name.clone(),
            begins: self.format().epoch,
        }
    }
}
