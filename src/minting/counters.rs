//! What was minted and what was not: counters of one format, read when metrics are scraped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use crate::id::Format;

/// A format and what is counted of it: shared by whatever has to do with its ids.
#[derive(Debug)]
pub struct CountedFormat {
    /// What its ids are.
    pub format: Arc<Format>,
    /// What was minted and what was not.
    pub counters: MintCounters,
}

impl CountedFormat {
    /// A format of which nothing is counted yet, minted on this number of lanes.
    pub fn new(format: Arc<Format>, lanes: usize) -> CountedFormat {
        CountedFormat {
            format,
            counters: MintCounters::new(lanes),
        }
    }
}

/// The counters of one format. Each only grows; Relaxed, since nothing else depends on them.
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
    fn new(lanes: usize) -> MintCounters {
        MintCounters {
            minted: CachePadded::default(),
            granted: CachePadded::default(),
            refused: AtomicU64::default(),
            invalid: AtomicU64::default(),
            waits: AtomicU64::default(),
            exhausted: (0..lanes).map(|_| AtomicU64::default()).collect(),
        }
    }

    /// Ids that were handed out.
    pub fn minted(&self) -> u64 {
        self.minted.load(Ordering::Relaxed)
    }

    /// Requests that got their ids.
    pub fn granted(&self) -> u64 {
        self.granted.load(Ordering::Relaxed)
    }

    /// Requests that got none, for no fault of theirs.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Requests that got none because they asked for what cannot be.
    pub fn invalid(&self) -> u64 {
        self.invalid.load(Ordering::Relaxed)
    }

    /// Requests whose ids had to wait for the clock.
    pub fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    /// How often each lane had used up its sequence when ids were asked for.
    pub fn exhausted(&self) -> impl Iterator<Item = u64> {
        self.exhausted
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
    }

    /// Counts a request that got no id, for no fault of its own.
    pub fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that asked for what cannot be.
    pub fn count_invalid(&self) {
        self.invalid.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that got ids, and whether they were not due at once.
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
