//! Mints the ids of one format, which is either sequenced or random.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::batch::{Batch, BatchRequest, CountedFormat, RequestError};
use super::refusal::Refusal;
use super::session_state::SessionState;
use crate::id::{Format, Rejection};
use crate::minting::random::RandomMinter;
use crate::minting::sequenced::{
    ExcludedIds, ExcludedTicks, Lanes, SequencedFormat, SequencedMinter, Shortage,
};
use crate::time::{Clock, UnixNanos};

/// Mints the ids of one format.
///
/// [`Mint`](super::Mint) creates minters, and its documentation has an example.
#[derive(Debug)]
pub struct Minter {
    pub(super) counted: Arc<CountedFormat>,
    pub(super) clock: Arc<Clock>,
    pub(super) state: Arc<SessionState>,
    pub(super) kind: MinterKind,
}

#[derive(Debug)]
pub(super) enum MinterKind {
    Sequenced(Arc<SequencedFormat>),
    Random(Arc<RandomMinter>),
}

/// The ids that were reserved for one request, and the instant from which they may be sent.
#[derive(Debug)]
pub struct Granted {
    /// The reserved ids. Each id is computed when the caller reads it.
    pub batch: Batch,
    /// The instant before which the ids must not be sent, or `None` if they can be sent
    /// immediately.
    pub due: Option<UnixNanos>,
    /// `true` if less than half of the reserved time is left. The caller should then raise the
    /// horizon, which is the time up to which this node may mint.
    pub refill: bool,
}

/// The reason why a request was granted no ids.
#[derive(Debug)]
pub enum Denied {
    /// The format cannot fill the request. The refusal says why, and whether a later request can
    /// succeed.
    Refused(Refusal),
    /// The ids would be above the horizon, which is the time up to which this node may mint. Raise
    /// the horizon and repeat the request.
    Horizon {
        /// The lowest horizon with which the request can succeed.
        needed: UnixNanos,
    },
}

impl Minter {
    /// `true` if ids are made from time, worker number and sequence, and minted only in a session.
    pub fn is_sequenced(&self) -> bool {
        self.sequenced().is_some()
    }

    fn sequenced(&self) -> Option<&SequencedFormat> {
        match &self.kind {
            MinterKind::Sequenced(sequenced) => Some(sequenced),
            MinterKind::Random(_) => None,
        }
    }

    /// Returns the format and the counters of its requests.
    pub fn counted(&self) -> &Arc<CountedFormat> {
        &self.counted
    }

    fn format(&self) -> &Format {
        &self.counted.format
    }

    /// Returns the worker numbers of the format on this node. Returns `None` for a random format,
    /// or while this node of a fleet has no worker numbers.
    pub fn lanes(&self) -> Option<Lanes> {
        self.sequenced()?.lanes()
    }

    /// Returns the worker numbers of the slot that has the most worker numbers. Returns `None` for
    /// a random format, which has no worker numbers.
    pub fn most_lanes(&self) -> Option<&Lanes> {
        self.sequenced().map(SequencedFormat::most_lanes)
    }

    /// Creates a request for `count` ids of the type `of_type`. A type is required if the format
    /// has types.
    ///
    /// # Errors
    /// Returns a [`RequestError`] if the type is missing or unknown, or if a type is given although
    /// the format has none.
    pub fn request(
        &self,
        count: NonZeroU32,
        of_type: Option<&str>,
    ) -> Result<BatchRequest, RequestError> {
        BatchRequest::new(self.format(), count, of_type)
    }

    /// Returns the maximum number of ids that one request can get. `variant` is the index of the
    /// requested type of id in [`Format::variants`]. Returns `None` for a random format, which has
    /// no limit, or if no session is active.
    pub fn count_max(&self, variant: usize) -> Option<u64> {
        self.sequenced()?
            .in_session(|minter| minter.count_max(variant))
    }

    /// Returns the maximum number of large requests that can be filled at the same time. Each of
    /// them occupies at least one lane. Returns `None` for a random format, whose requests never
    /// wait.
    ///
    /// The result is 1 if a single request can use every lane of the node.
    pub fn long_requests_max(&self) -> Option<usize> {
        let lanes = self.most_lanes()?;
        Some(if lanes.share_a_batch(self.format()) {
            1
        } else {
            lanes.workers().len()
        })
    }

    /// Returns a reader for a list of ids that another generator minted. Pass the ticks that the
    /// reader collects to [`exclude`](Minter::exclude), so that later sessions do not use these
    /// ticks.
    ///
    /// The reader ignores ticks before `from`, so every session must begin at or after `from`.
    /// Returns `None` for a random format.
    pub fn excluded_ids(&self, from: UnixNanos) -> Option<ExcludedIds> {
        self.sequenced()
            .map(|sequenced| sequenced.excluded_ids(from))
    }

    /// Makes every later session skip these ticks, because another generator has used them. See
    /// [`Format::exclude`].
    ///
    /// # Panics
    /// Panics if `exclude` was called before, or if the format is random.
    pub fn exclude(&self, ticks: ExcludedTicks) {
        self.sequenced()
            .expect("random ids have no ticks to leave out, checked when the format was made")
            .exclude(ticks);
    }

    /// Refuses a request that waited too long in a queue. The metrics count the request as if no
    /// worker number had enough free ids for it.
    pub fn refuse_late(&self, waited: Duration) -> Refusal {
        if let Some(sequenced) = self.sequenced() {
            sequenced.in_session(|minter| minter.count_late(&self.counted.counters));
        }
        Refusal::SequenceExhausted {
            format: self.format().name.clone(),
            retry_after: waited,
        }
    }

    /// Reserves ids for a request, which must come from [`Minter::request`] of this minter. This
    /// usually takes one clock read and one compare-exchange.
    ///
    /// # Errors
    /// Returns [`Denied`] with the reason if no id was reserved.
    #[inline]
    pub fn reserve(&self, request: &BatchRequest) -> Result<Granted, Denied> {
        match &self.kind {
            MinterKind::Sequenced(sequenced) => {
                let kept = sequenced.leased();
                match sequenced
                    .held_for_good()
                    .or(kept.as_deref().map(AsRef::as_ref))
                {
                    Some(minter) => self.reserve_stamps(minter, request),
                    None => Err(Denied::Refused(self.state.reason())),
                }
            }
            MinterKind::Random(minter) => self.draw(minter, request),
        }
    }

    /// Reserves stamps for a request. Only `reserve` calls this function. A second caller would
    /// keep the compiler from inlining it, and its result would be copied.
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

    /// Reserves random ids, which need no session or worker number, only a plausible clock.
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
