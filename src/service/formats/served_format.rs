//! One format of this program: what it is, what is counted of it, and where its ids come from.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::conjunction::GroupedMinter;
use crate::id::Format;
use crate::minting::{CountedFormat, MintCounters, Minter};

/// A format, handed around by reference wherever something is done with its ids.
#[derive(Debug)]
pub struct ServedFormat {
    counted: Arc<CountedFormat>,
    source: IdSource,
    /// One permit for each long request that may reserve ids, or wait until its ids are due, while others do.
    turns: Semaphore,
    /// What was told of it last.
    told: Mutex<Option<ToldFormat>>,
}

/// What callers are told of a format, in JSON, and what of that can change.
#[derive(Debug)]
pub(super) struct ToldFormat {
    pub(super) workers: Vec<u32>,
    pub(super) count_max: Option<u64>,
    pub(super) json: Arc<str>,
}

/// Where ids come from, with whatever makes them.
#[derive(Debug)]
pub enum IdSource {
    /// Callers say how many they want.
    Count(Arc<Minter>),
    /// One for each event that is appended to a ledger.
    Events,
    /// One for each conjunction that is reported.
    Reports(Arc<GroupedMinter>),
    /// They are read and never made.
    DecodeOnly,
}

impl ServedFormat {
    /// A format of which callers want a number of ids.
    pub fn of_count(minter: Arc<Minter>) -> ServedFormat {
        let turns = minter.long_requests_max().unwrap_or(Semaphore::MAX_PERMITS);
        let counted = Arc::clone(minter.counted());
        ServedFormat {
            counted,
            source: IdSource::Count(minter),
            turns: Semaphore::new(turns),
            told: Mutex::default(),
        }
    }

    /// A format whose ids are made of events.
    pub fn of_events(format: Arc<Format>) -> ServedFormat {
        ServedFormat::without_turns(format, IdSource::Events)
    }

    /// A format whose ids are made of reports.
    pub fn of_reports(format: Arc<Format>, minter: GroupedMinter) -> ServedFormat {
        ServedFormat::without_turns(format, IdSource::Reports(Arc::new(minter)))
    }

    /// A format that is only read.
    pub fn decode_only(format: Arc<Format>) -> ServedFormat {
        ServedFormat::without_turns(format, IdSource::DecodeOnly)
    }

    fn without_turns(format: Arc<Format>, source: IdSource) -> ServedFormat {
        ServedFormat {
            counted: Arc::new(CountedFormat::new(format, 0)),
            source,
            turns: Semaphore::new(0),
            told: Mutex::default(),
        }
    }

    /// What its ids are.
    pub fn format(&self) -> &Format {
        &self.counted.format
    }

    /// What was minted and what was not.
    pub fn counters(&self) -> &MintCounters {
        &self.counted.counters
    }

    /// Both, to be kept.
    pub fn counted(&self) -> &Arc<CountedFormat> {
        &self.counted
    }

    /// Where its ids come from.
    pub fn source(&self) -> &IdSource {
        &self.source
    }

    /// What was told of it last.
    pub(super) fn told(&self) -> MutexGuard<'_, Option<ToldFormat>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What mints it, if callers say how many they want.
    pub fn minter(&self) -> Option<&Arc<Minter>> {
        match &self.source {
            IdSource::Count(minter) => Some(minter),
            IdSource::Events | IdSource::Reports(_) | IdSource::DecodeOnly => None,
        }
    }

    /// The turn of a long request by count, first come first served, until it is dropped.
    pub(in crate::service) async fn turn(&self) -> SemaphorePermit<'_> {
        self.turns.acquire().await.expect("nobody closes it")
    }

    /// The worker numbers that this node mints it with now.
    pub fn workers(&self) -> Vec<u32> {
        self.minter()
            .and_then(|minter| minter.lanes())
            .map_or(Vec::new(), |lanes| lanes.workers().to_vec())
    }
}
