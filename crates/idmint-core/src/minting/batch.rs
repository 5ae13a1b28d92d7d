//! Requests for ids of a format, the batches of ids that they are granted, and the counters of
//! requests.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{iter, vec};

use crossbeam_utils::CachePadded;

use crate::id::{DomainHash, Encoding, Format, IdBlock, Progression};
use crate::minting::random::RandomIds;
use crate::minting::sequenced::{LaneRuns, Run};

/// A request for ids of one format: their number, domain, and type (checked against the format).
///
/// Returned by [`Minter::request`](super::Minter::request).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchRequest {
    count: NonZeroU32,
    variant: usize,
    domain: DomainHash,
}

/// The reason why a request for ids is not valid for a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The caller gave no type, but the format needs one.
    #[error("the parameter `type` is missing; use one of {}", .types.join(", "))]
    TypeMissing {
        /// The types of the format.
        types: Vec<String>,
    },
    /// The format does not have the requested type.
    #[error("type `{given}` is not one of {}", .types.join(", "))]
    TypeUnknown {
        /// The requested type.
        given: String,
        /// The types of the format.
        types: Vec<String>,
    },
    /// The caller gave a type, but the format has no types.
    #[error("`{format}` has no types, so `type` = `{given}` is invalid; leave `type` out")]
    NoTypes {
        /// The name of the format.
        format: String,
        /// The requested type.
        given: String,
    },
}

impl BatchRequest {
    /// Creates a request for `count` ids of the type `of_type`. A type is required if the format
    /// has types.
    ///
    /// # Errors
    /// Returns a [`RequestError`] if the type is missing or unknown, or if a type is given although
    /// the format has none.
    pub(super) fn new(
        format: &Format,
        count: NonZeroU32,
        of_type: Option<&str>,
    ) -> Result<BatchRequest, RequestError> {
        let variant = match (of_type, format.has_types()) {
            (None, false) => 0,
            (Some(given), false) => {
                return Err(RequestError::NoTypes {
                    format: format.name.clone(),
                    given: given.to_owned(),
                });
            }
            (None, true) => {
                return Err(RequestError::TypeMissing {
                    types: types_of(format),
                });
            }
            (Some(given), true) => {
                format
                    .type_named(given)
                    .map_err(|_| RequestError::TypeUnknown {
                        given: given.to_owned(),
                        types: types_of(format),
                    })?
            }
        };
        Ok(BatchRequest {
            count,
            variant,
            domain: DomainHash::DEVELOPMENT,
        })
    }

    /// Sets the domain that the requested ids will contain, as the hash of a name such as
    /// `example.com`. The domain has no effect if the format has no domain field.
    #[must_use]
    pub fn for_domain(self, domain: DomainHash) -> BatchRequest {
        BatchRequest { domain, ..self }
    }

    /// Returns the number of requested ids.
    pub fn count(&self) -> u64 {
        u64::from(self.count.get())
    }

    /// Returns the index of the requested type in [`Format::variants`].
    pub fn variant(&self) -> usize {
        self.variant
    }

    /// Returns the domain that the requested ids will have.
    pub fn domain(&self) -> DomainHash {
        self.domain
    }
}

fn types_of(format: &Format) -> Vec<String> {
    format
        .variants
        .iter()
        .filter_map(|variant| variant.name.clone())
        .collect()
}

/// The ids that were reserved for one request. Each id is computed only when the caller reads it.
#[derive(Debug)]
pub struct Batch {
    count: u64,
    source: IdSource,
}

#[derive(Debug)]
enum IdSource {
    Run(Run),
    Lanes(LaneRuns),
    Random(RandomIds),
    Known(vec::IntoIter<u128>),
}

impl Batch {
    #[inline]
    fn new(count: u64, source: IdSource) -> Batch {
        Batch { count, source }
    }

    #[inline]
    pub(super) fn of_run(run: Run) -> Batch {
        Batch::new(run.count(), IdSource::Run(run))
    }

    /// Creates a batch with ids of several worker numbers. A run has consecutive stamps of one
    /// worker number. Runs must be ordered by worker number, and then by stamp.
    pub(super) fn of_lanes(runs: Vec<Run>) -> Batch {
        let count = runs.iter().map(Run::count).sum();
        Batch::new(count, IdSource::Lanes(LaneRuns::new(runs)))
    }

    pub(super) fn of_random(ids: RandomIds) -> Batch {
        Batch::new(ids.count(), IdSource::Random(ids))
    }

    /// Creates a batch from ids that the caller has already computed.
    pub fn of_ids(ids: Vec<u128>) -> Batch {
        Batch::new(count_of(&ids), IdSource::Known(ids.into_iter()))
    }

    /// Returns the number of ids that have not been read yet.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Writes the next ids to the start of `ids`, and returns their number, or 0 if none are left.
    pub fn fill(&mut self, ids: &mut [u128]) -> usize {
        let mut filled = 0;
        while filled < ids.len() {
            let room = &mut ids[filled..];
            let count = match self.next_block(room) {
                IdBlock::Progression(row) => {
                    room.iter_mut()
                        .zip(row.values())
                        .for_each(|(id, value)| *id = value);
                    IdBlock::Progression(row).len()
                }
                IdBlock::List(drawn) => drawn.len(),
            };
            if count == 0 {
                break;
            }
            filled += count;
        }
        filled
    }

    /// Returns a block of the next ids, at most as many as `room` can hold. The block is empty if
    /// no ids are left.
    ///
    /// If the ids are not an arithmetic progression, they are computed into `room`.
    pub fn next_block<'a>(&mut self, room: &'a mut [u128]) -> IdBlock<'a> {
        let row = match &mut self.source {
            IdSource::Random(random) => IdBlock::List(filled(room, |room| random.fill(room))),
            IdSource::Known(known) => IdBlock::List(filled(room, |room| {
                room.iter_mut()
                    .zip(known)
                    .map(|(id, known)| *id = known)
                    .count()
            })),
            IdSource::Run(run) => progression(run.take_progression(count_of(room))),
            IdSource::Lanes(runs) => progression(runs.take_progression(count_of(room))),
        };
        self.count -= u64::try_from(row.len()).expect("a slice is shorter than 2^64");
        row
    }

    /// Returns the next ids that have the same tick and worker number, as an arithmetic
    /// progression. Returns `None` if no ids are left.
    ///
    /// Random and already computed ids may form no progression, so they are returned one by one.
    pub fn next_row(&mut self) -> Option<Progression> {
        let row = match &mut self.source {
            IdSource::Run(run) => run.take_progression(u64::MAX),
            IdSource::Lanes(runs) => runs.take_progression(u64::MAX),
            IdSource::Random(_) | IdSource::Known(_) => {
                let mut id = [0];
                return (self.fill(&mut id) == 1).then_some(Progression {
                    first: id[0],
                    step: 1,
                    count: 1,
                });
            }
        };
        self.count -= row.map_or(0, |row| row.count);
        row
    }

    /// Returns the sum of `len(row)` over the remaining rows, without removing them. A row has the
    /// ids with the same tick and worker number, as in [`Batch::next_row`]. Returns `None` for
    /// random ids and for ids given as a list, because they are not in rows.
    pub fn rows_len(&self, len: impl Fn(&Progression) -> usize) -> Option<u64> {
        let sum = |mut run: Run| {
            let rows = iter::from_fn(move || run.take_progression(u64::MAX));
            rows.map(|row| u64::try_from(len(&row)).expect("a row is short"))
                .sum::<u64>()
        };
        match &self.source {
            IdSource::Run(run) => Some(sum(*run)),
            IdSource::Lanes(runs) => Some(runs.left().map(sum).sum()),
            IdSource::Random(_) | IdSource::Known(_) => None,
        }
    }

    /// Returns the total length in bytes of the remaining ids as texts in `encoding`, without
    /// separators.
    ///
    /// Returns `None` if the length exceeds 64 bits. Also returns `None` for random ids if the
    /// texts vary in length, because these ids are not drawn yet.
    pub fn text_len(&self, encoding: &Encoding) -> Option<u64> {
        let in_64_bits = |len| u64::try_from(len).expect("a text is short");
        if let Some(len) = encoding.fixed_len() {
            return in_64_bits(len).checked_mul(self.count);
        }
        let len = |id| encoding.len(id);
        match &self.source {
            IdSource::Random(_) => None,
            IdSource::Known(known) => known
                .as_slice()
                .iter()
                .try_fold(0_u64, |total, id| total.checked_add(in_64_bits(len(*id)))),
            IdSource::Run(run) => run.text_len(len),
            IdSource::Lanes(runs) => runs
                .left()
                .try_fold(0_u64, |total, run| total.checked_add(run.text_len(len)?)),
        }
    }
}

fn progression(row: Option<Progression>) -> IdBlock<'static> {
    row.map_or(IdBlock::List(&[]), IdBlock::Progression)
}

fn count_of(room: &[u128]) -> u64 {
    u64::try_from(room.len()).expect("a slice is shorter than 2^64")
}

/// Fills the beginning of `room` with `fill`, and returns the part of `room` that was filled.
fn filled(room: &mut [u128], fill: impl FnOnce(&mut [u128]) -> usize) -> &[u128] {
    let count = fill(room);
    &room[..count]
}

/// A format and the counters of the requests for its ids.
#[derive(Debug)]
pub struct CountedFormat {
    /// The format whose requests are counted.
    pub format: Arc<Format>,
    /// The counters of the requests for ids of the format.
    pub counters: MintCounters,
}

impl CountedFormat {
    /// Creates counters that start at zero. Each of the `lanes` worker numbers has its own counter
    /// of requests that waited or were refused for lack of free ids ([`MintCounters::exhausted`]).
    pub fn new(format: Arc<Format>, lanes: usize) -> CountedFormat {
        CountedFormat {
            format,
            counters: MintCounters {
                minted: CachePadded::default(),
                granted: CachePadded::default(),
                refused: AtomicU64::default(),
                invalid: AtomicU64::default(),
                waits: AtomicU64::default(),
                exhausted: (0..lanes).map(|_| AtomicU64::default()).collect(),
            },
        }
    }
}

/// The counters of the requests for one format. They are read when metrics are scraped.
///
/// A counter never decreases. Ordering: Relaxed, because no other memory depends on a counter.
#[derive(Debug)]
pub struct MintCounters {
    minted: CachePadded<AtomicU64>,
    granted: CachePadded<AtomicU64>,
    refused: AtomicU64,
    invalid: AtomicU64,
    waits: AtomicU64,
    exhausted: Vec<AtomicU64>,
}

impl MintCounters {
    /// Returns the number of ids that were granted to requests.
    pub fn minted(&self) -> u64 {
        self.minted.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that were granted their ids.
    pub fn granted(&self) -> u64 {
        self.granted.load(Ordering::Relaxed)
    }

    /// Returns the number of valid requests that were refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that were invalid for the format.
    pub fn invalid(&self) -> u64 {
        self.invalid.load(Ordering::Relaxed)
    }

    /// Returns the number of requests whose ids could be sent only after waiting for the clock.
    pub fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    /// Returns one count for each lane: the number of requests that waited or were refused because
    /// no lane had enough free ids at once. Such a request usually counts for every lane. If it
    /// waits for ids of several lanes, it counts only for the lanes that contribute ids.
    pub fn exhausted(&self) -> impl Iterator<Item = u64> {
        self.exhausted
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
    }

    /// Counts a valid request that was refused.
    pub fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that is invalid for the format.
    pub fn count_invalid(&self) {
        self.invalid.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a granted request for `ids` ids. `waits` is `true` if the ids can be sent only after
    /// waiting for the clock.
    pub fn count_granted(&self, ids: u64, waits: bool) {
        self.minted.fetch_add(ids, Ordering::Relaxed);
        self.granted.fetch_add(1, Ordering::Relaxed);
        if waits {
            self.waits.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn count_exhausted(&self, lane: usize) {
        self.exhausted[lane].fetch_add(1, Ordering::Relaxed);
    }
}
