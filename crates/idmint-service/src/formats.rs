//! The id formats that this process serves, each with its counters and with the way in which its
//! ids are created.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{Service, ServiceError};
use idmint_core::id::{Format, FormatAlias};
use idmint_core::minting::{CountedFormat, MintCounters, Minter};
use idmint_records::conjunction::GroupedMinter;
use idmint_wire::{FormatBrief, FormatInfo};

/// The formats that this process serves.
#[derive(Debug)]
pub struct Formats {
    in_order: Vec<Arc<ServedFormat>>,
    /// The formats by name, sorted by [`shortlex`]. A binary search in this list needs a third of
    /// the instructions of a lookup in a map of the standard library.
    by_name: Vec<(String, Arc<ServedFormat>)>,
    /// The names of the disabled formats.
    off: Vec<String>,
}

/// The error for a name that is not the name of an enabled format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownFormat {
    /// No format has this name.
    #[error("format {name:?} is not one of {known}")]
    NotThere {
        /// The requested name.
        name: String,
        /// The names of the possible formats, separated by commas.
        known: String,
    },
    /// The format with this name is disabled.
    #[error(
        "format {name:?} is disabled: set formats.{name}.enabled = true, or add it to formats.enabled if that is set"
    )]
    Off {
        /// The requested name.
        name: String,
    },
}

impl UnknownFormat {
    /// Returns the error for a name that is not among `names`. `off` contains the names of the
    /// disabled formats.
    pub fn among<'a>(
        names: impl Iterator<Item = &'a str>,
        off: &[String],
        name: &str,
    ) -> UnknownFormat {
        let name = name.to_owned();
        if off.contains(&name) {
            return UnknownFormat::Off { name };
        }
        let known = names.collect::<Vec<_>>().join(", ");
        UnknownFormat::NotThere { name, known }
    }
}

/// Compares two texts by length, and alphabetically only if their lengths are equal. The lengths
/// alone decide most comparisons.
fn shortlex(one: &str, other: &str) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

impl Formats {
    /// Creates the set of formats. `in_order` contains the enabled formats, whose names are unique,
    /// and `off` contains the names of the disabled formats.
    pub fn new(in_order: Vec<Arc<ServedFormat>>, off: Vec<String>) -> Formats {
        let named = |served: &Arc<ServedFormat>| (served.format().name.clone(), Arc::clone(served));
        let mut by_name: Vec<_> = in_order.iter().map(named).collect();
        by_name.sort_by(|(one, _), (other, _)| shortlex(one, other));
        Formats {
            in_order,
            by_name,
            off,
        }
    }

    /// Iterates over all enabled formats, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ServedFormat>> {
        self.in_order.iter()
    }

    /// Returns the enabled format with this current or former name.
    ///
    /// # Errors
    /// Returns [`UnknownFormat`] if no enabled format has this name. The error says that the format
    /// is disabled, or lists the enabled formats.
    pub fn named(&self, name: &str) -> Result<&Arc<ServedFormat>, UnknownFormat> {
        let found = self
            .by_name
            .binary_search_by(|(known, _)| shortlex(known, name));
        if let (Err(_), Some(alias)) = (found, FormatAlias::named(name)) {
            return self.named(alias.format);
        }
        found.map(|at| &self.by_name[at].1).map_err(|_| {
            let names = self.iter().map(|served| served.format().name.as_str());
            UnknownFormat::among(names, &self.off, name)
        })
    }
}

/// A format with the counters of its requests, and the way in which its ids are created. All code
/// that handles ids of the format shares this value.
#[derive(Debug)]
pub struct ServedFormat {
    counted: Arc<CountedFormat>,
    source: IdSource,
    /// The permits for requests that mint large batches. Such a request holds a permit until the
    /// ids that it reserved may be sent.
    turns: Semaphore,
    /// The cached description of the format as JSON, or `None` if no client has requested the
    /// description yet.
    told: Mutex<Option<ToldFormat>>,
}

/// The cached description of a format as JSON, and the values in it that can change. The cache is
/// stale if one of them has changed.
#[derive(Debug)]
struct ToldFormat {
    workers: Vec<u32>,
    count_max: Option<u64>,
    json: Arc<str>,
}

/// The way in which the ids of a format are created.
#[derive(Debug)]
pub enum IdSource {
    /// A request states how many ids to mint.
    Count(Arc<Minter>),
    /// Each event that is appended to a ledger gets one id.
    Events,
    /// Each reported conjunction gets one id.
    Reports(Arc<GroupedMinter>),
    /// The format is only decoded. No ids of it are minted.
    DecodeOnly,
}

impl ServedFormat {
    /// Creates a format whose ids are minted on request. Each request states how many ids to mint.
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

    /// Creates a format whose ids are computed from ledger events.
    pub fn of_events(format: Arc<Format>) -> ServedFormat {
        ServedFormat::without_turns(format, IdSource::Events)
    }

    /// Creates a format whose ids are computed from conjunction reports.
    pub fn of_reports(format: Arc<Format>, minter: GroupedMinter) -> ServedFormat {
        ServedFormat::without_turns(format, IdSource::Reports(Arc::new(minter)))
    }

    /// Creates a format that is only decoded.
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

    /// Returns the definition of the format.
    pub fn format(&self) -> &Format {
        &self.counted.format
    }

    /// Returns the counters of minted ids and refused requests.
    pub fn counters(&self) -> &MintCounters {
        &self.counted.counters
    }

    /// Returns a shared handle to the format's definition and counters.
    pub fn counted(&self) -> &Arc<CountedFormat> {
        &self.counted
    }

    /// Returns the way in which ids of the format are created.
    pub fn source(&self) -> &IdSource {
        &self.source
    }

    /// Locks the cached JSON description of the format.
    fn told(&self) -> MutexGuard<'_, Option<ToldFormat>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that new ids of the format can be minted.
    ///
    /// # Errors
    /// Returns [`ServiceError::NotMinted`] if the format is only decoded.
    pub fn check_minted(&self) -> Result<(), ServiceError> {
        if self.format().is_minted() {
            return Ok(());
        }
        Err(ServiceError::NotMinted {
            format: self.format().name.clone(),
            rule: self.format().rule,
        })
    }

    /// Returns the minter of the format. Returns `None` if ids of the format are made from ledger
    /// events or conjunction reports, or are only decoded.
    pub fn minter(&self) -> Option<&Arc<Minter>> {
        match &self.source {
            IdSource::Count(minter) => Some(minter),
            IdSource::Events | IdSource::Reports(_) | IdSource::DecodeOnly => None,
        }
    }

    /// Waits for the permit to start minting a large batch. Requests get permits in the order of
    /// their arrival. Dropping the permit lets the next request start.
    pub(super) async fn turn(&self) -> SemaphorePermit<'_> {
        self.turns.acquire().await.expect("nobody closes it")
    }

    /// Returns the worker numbers that this node currently puts into ids of the format.
    pub fn workers(&self) -> Vec<u32> {
        self.minter()
            .and_then(|minter| minter.lanes())
            .map_or(Vec::new(), |lanes| lanes.workers().to_vec())
    }
}

impl Service {
    /// Returns the description of a format on this node as JSON. The description includes the
    /// node's worker numbers and the maximum number of ids in one request. The JSON is cached and
    /// rebuilt only when the description changes.
    pub fn format_json(&self, served: &ServedFormat) -> Arc<str> {
        let (workers, count_max) = (served.workers(), self.count_max(served));
        let mut told = served.told();
        if let Some(told) = told
            .as_ref()
            .filter(|told| told.workers == workers && told.count_max == count_max)
        {
            return Arc::clone(&told.json);
        }
        let info = FormatInfo::new(served.format(), &workers, count_max);
        let json: Arc<str> = serde_json::to_string(&info)
            .expect("texts, numbers and lists of them")
            .into();
        *told = Some(ToldFormat {
            workers,
            count_max,
            json: Arc::clone(&json),
        });
        json
    }

    /// Returns a short description of a format on this node as JSON.
    pub fn brief_format_json(&self, served: &ServedFormat) -> Arc<str> {
        serde_json::to_string(&FormatBrief::new(served.format()))
            .expect("texts, a number and a boolean")
            .into()
    }

    /// Returns the maximum number of ids in one request. Returns `None` if the format is not
    /// minted, or if its ids are made from ledger events, which have limits of their own.
    fn count_max(&self, served: &ServedFormat) -> Option<u64> {
        let configured = u64::from(self.limits().batch_max);
        match served.source() {
            IdSource::Count(minter) => {
                // A format can have several types of ids, with different limits. Return the lowest
                // limit, so that a request for any type can get this number of ids.
                let types = served.format().variants.iter().enumerate();
                let types = types.filter(|(_, variant)| variant.assigned);
                let most = types.filter_map(|(at, _)| minter.count_max(at));
                Some(most.fold(configured, u64::min))
            }
            IdSource::Reports(_) => served.format().is_minted().then_some(configured),
            // Requests with events have limits of their own, such as `idmint_wire::EVENTS_MAX`.
            IdSource::Events | IdSource::DecodeOnly => None,
        }
    }
}
