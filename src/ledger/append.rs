//! What becomes of an append: decided here against the head of its ledger, made durable by the store.

use std::fmt;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::event::Event;
use super::event_id::EventId;
use super::event_time::EventTime;
use super::ledger_id::LedgerId;
use crate::id::Rejection;

/// How far ahead of the clock the timestamp of an event may be.
pub const AHEAD_MAX: Duration = Duration::from_secs(5);

/// The last event of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its id.
    pub id: EventId,
    /// Its place: 1 for the first event, so also how many events there are.
    pub place: u64,
    /// When it was recorded, by the clock of the node that did; never earlier than any event before it.
    pub recorded: EventTime,
}

/// One event in its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Its id.
    pub id: EventId,
    /// The id before; for the first event what stands in for one.
    pub previous: EventId,
    /// Its place, from 1.
    pub place: u64,
}

impl Link {
    /// Events in a row: `first_place` is that of the first, `previous` the id before it.
    pub fn row(previous: EventId, first_place: u64, ids: impl Iterator<Item = EventId>) -> impl Iterator<Item = Link> {
        let mut before = previous;
        (first_place..).zip(ids).map(move |(place, id)| Link {
            id,
            previous: std::mem::replace(&mut before, id),
            place,
        })
    }
}

/// Which request this is, so that it is done once however often it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestMark {
    /// Of the key that the caller chose.
    pub key: KeyHash,
    /// SHA-256 over what the caller sent.
    pub digest: [u8; 32],
}

/// A caller's key, within one ledger: the first 128 bits of SHA-256 over both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub u128);

impl KeyHash {
    /// The hash of a key of requests to `ledger`, or to create one.
    pub fn of(ledger: Option<LedgerId>, key: &str) -> KeyHash {
        let scope = match ledger {
            Some(ledger) => [1].into_iter().chain(ledger.bits().to_be_bytes()).collect::<Vec<u8>>(),
            None => vec![0],
        };
        let hash: [u8; 32] = Sha256::new().chain_update(scope).chain_update(key).finalize().into();
        KeyHash(u128::from_be_bytes(*hash.first_chunk().expect("16 of 32 bytes")))
    }
}

/// One SHA-256 over events in their order.
pub fn digest_of(events: &[Event]) -> [u8; 32] {
    events.iter().fold(Sha256::new(), |hash, event| hash.chain_update(event.digest())).finalize().into()
}

/// What a caller asks of the ledgers.
#[derive(Debug)]
pub enum LedgerOrder {
    /// A ledger that begins with this event. Without a mark, the event has its timestamp, so nothing can come of it twice.
    Create {
        /// The first event.
        genesis: Event,
        /// Which request this is.
        mark: Option<RequestMark>,
    },
    /// Events at the end of a ledger.
    Append {
        /// Which ledger.
        ledger: LedgerId,
        /// The events, at least one.
        events: Vec<Event>,
        /// The head that the caller knows; another one is refused.
        expected_previous: Option<EventId>,
        /// Which request this is.
        mark: RequestMark,
    },
}

impl LedgerOrder {
    /// The ledger that this is about: that of its events, or the one that its first event would begin at that time.
    pub fn ledger_at(&self, now: EventTime) -> LedgerId {
        match self {
            LedgerOrder::Create { genesis, .. } => LedgerId::of_genesis(genesis, genesis.timestamp().unwrap_or(now)),
            LedgerOrder::Append { ledger, .. } => *ledger,
        }
    }

    /// Whether the time at which it is done decides which ledger it begins.
    pub fn ledger_depends_on_time(&self) -> bool {
        matches!(self, LedgerOrder::Create { genesis, .. } if genesis.timestamp().is_none())
    }

    /// Which request this is.
    pub fn mark(&self) -> Option<RequestMark> {
        match self {
            LedgerOrder::Create { mark, .. } => *mark,
            LedgerOrder::Append { mark, .. } => Some(*mark),
        }
    }

    /// How many events it has.
    pub fn event_count(&self) -> usize {
        match self {
            LedgerOrder::Create { .. } => 1,
            LedgerOrder::Append { events, .. } => events.len(),
        }
    }
}

/// An append as it will be stored: sound as long as the head is `before`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendPlan {
    /// The head it was made for; `None` to begin a ledger.
    pub before: Option<Head>,
    /// The ids of the events and SHA-256 over their messages, at least one.
    pub entries: Vec<Entry>,
    /// Which request this is.
    pub mark: Option<RequestMark>,
    /// By the clock, but not before what was recorded before.
    pub recorded: EventTime,
}

/// One event as it is stored: the event itself is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: EventId,
    /// SHA-256 over its message, which finds what a checksum of 32 bits lets pass.
    pub digest: [u8; 32],
}

/// Nothing is appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendRefusal {
    /// There is no such ledger.
    UnknownLedger(LedgerId),
    /// The ledger is there already.
    LedgerExists(Head),
    /// The head is not the one that the caller expected.
    HeadMoved {
        /// What the caller expected.
        expected: EventId,
        /// What it is.
        head: Head,
    },
    /// An event cannot stand where it should.
    Event {
        /// Its place in the request, from 0.
        index: usize,
        /// Why not.
        error: PlaceError,
    },
}

/// Why an event cannot be the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceError {
    /// Its timestamp is not above that of the event before.
    NotMonotonic {
        /// Its own.
        timestamp: EventTime,
        /// That of the event before.
        last: EventTime,
    },
    /// Its timestamp is too far ahead of the clock.
    Ahead {
        /// Its own.
        timestamp: EventTime,
        /// The greatest there may be now.
        most: EventTime,
    },
    /// It names an id that is not the one it gets.
    OtherId {
        /// The one it names.
        named: EventId,
        /// The one it gets.
        gets: EventId,
    },
    /// No microsecond is left after the event before.
    TimeEnded,
}

impl PlaceError {
    /// The published code of the reason.
    pub fn code(&self) -> &'static str {
        match self {
            PlaceError::NotMonotonic { .. } => Rejection::NotMonotonic.code(),
            PlaceError::Ahead { .. } => Rejection::OutOfRange.code(),
            PlaceError::OtherId { named, gets } if named.ledger() != gets.ledger() => Rejection::LedgerMismatch.code(),
            PlaceError::OtherId { named, gets } if named.timestamp() != gets.timestamp() => {
                Rejection::TimestampMismatch.code()
            }
            PlaceError::OtherId { .. } => Rejection::ChecksumMismatch.code(),
            PlaceError::TimeEnded => Rejection::Overflow.code(),
        }
    }
}

impl fmt::Display for PlaceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceError::NotMonotonic { timestamp, last } => {
                write!(out, "timestamp is {timestamp}, it must be above {last}, the timestamp of the event before")
            }
            PlaceError::Ahead { timestamp, most } => {
                let ahead = AHEAD_MAX.as_secs();
                write!(out, "timestamp is {timestamp}, it must be at most {most}, {ahead} s ahead of the clock")
            }
            PlaceError::OtherId { named, gets } => write!(out, "eventId is {named}, the event gets {gets}"),
            PlaceError::TimeEnded => out.write_str("the event before has the last timestamp there is"),
        }
    }
}

impl AppendPlan {
    /// What an order makes of a ledger whose head is `head`.
    ///
    /// `head`: of the [ledger](LedgerOrder::ledger_at) of the order; `None` if there is none.
    ///
    /// # Errors
    /// [`AppendRefusal`].
    pub fn make(order: &LedgerOrder, head: Option<Head>, now: EventTime) -> Result<AppendPlan, AppendRefusal> {
        let (chain, events, mark) = match order {
            LedgerOrder::Create { genesis, mark } => {
                if let Some(head) = head {
                    return Err(AppendRefusal::LedgerExists(head));
                }
                (Chain::beginning_with(genesis, now), std::slice::from_ref(genesis), *mark)
            }
            LedgerOrder::Append { ledger, events, expected_previous, mark } => {
                let head = head.ok_or(AppendRefusal::UnknownLedger(*ledger))?;
                if let Some(expected) = expected_previous.filter(|expected| *expected != head.id) {
                    return Err(AppendRefusal::HeadMoved { expected, head });
                }
                (Chain::at(head), events.as_slice(), Some(*mark))
            }
        };
        let most = later(now, AHEAD_MAX);
        let mut end = chain;
        let mut entry =
            |(index, event)| end.append(event, now, most).map_err(|error| AppendRefusal::Event { index, error });
        let entries = events.iter().enumerate().map(&mut entry).collect::<Result<Vec<_>, _>>()?;
        assert!(!entries.is_empty(), "an order has at least one event");
        let recorded = head.map_or(now, |head| head.recorded.max(now));
        Ok(AppendPlan { before: head, entries, mark, recorded })
    }

    /// The ledger.
    pub fn ledger(&self) -> LedgerId {
        self.last().ledger()
    }

    /// The head once this is stored.
    pub fn head(&self) -> Head {
        Head { id: self.last(), place: self.place_before() + self.count(), recorded: self.recorded }
    }

    /// The place of the first event.
    pub fn first_place(&self) -> u64 {
        self.place_before() + 1
    }

    /// The id before the first event.
    pub fn previous(&self) -> EventId {
        match self.before {
            Some(head) => head.id,
            None => EventId::before_genesis(self.entries[0].id.timestamp(), self.ledger()),
        }
    }

    /// The events in their chain.
    pub fn links(&self) -> impl Iterator<Item = Link> {
        Link::row(self.previous(), self.first_place(), self.entries.iter().map(|entry| entry.id))
    }

    fn last(&self) -> EventId {
        self.entries.last().expect("at least one").id
    }

    fn count(&self) -> u64 {
        u64::try_from(self.entries.len()).expect("a list is shorter than 2^64")
    }

    fn place_before(&self) -> u64 {
        self.before.map_or(0, |head| head.place)
    }
}

/// The end of a chain, to which events are appended.
struct Chain {
    ledger: LedgerId,
    previous: EventId,
    /// The timestamp that the next one must be above; `None` before the first.
    last: Option<EventTime>,
}

impl Chain {
    fn at(head: Head) -> Chain {
        Chain { ledger: head.id.ledger(), previous: head.id, last: Some(head.id.timestamp()) }
    }

    fn beginning_with(genesis: &Event, now: EventTime) -> Chain {
        let time = genesis.timestamp().unwrap_or(now);
        let ledger = LedgerId::of_genesis(genesis, time);
        Chain { ledger, previous: EventId::before_genesis(time, ledger), last: None }
    }

    fn append(&mut self, event: &Event, now: EventTime, most: EventTime) -> Result<Entry, PlaceError> {
        let timestamp = match (event.timestamp(), self.last) {
            (Some(timestamp), Some(last)) if timestamp <= last => {
                return Err(PlaceError::NotMonotonic { timestamp, last });
            }
            (Some(timestamp), _) if timestamp > most => return Err(PlaceError::Ahead { timestamp, most }),
            (Some(timestamp), _) => timestamp,
            (None, last) => EventTime::after(last, now).ok_or(PlaceError::TimeEnded)?,
        };
        let id = event.seal(timestamp, self.ledger, self.previous);
        if let Some(named) = event.id().filter(|named| *named != id) {
            return Err(PlaceError::OtherId { named, gets: id });
        }
        self.previous = id;
        self.last = Some(timestamp);
        let message = Sha256::new().chain_update(event.content()).chain_update(format!("{:016x}", timestamp.micros()));
        Ok(Entry { id, digest: message.finalize().into() })
    }
}

/// That much later, or the last time there is.
fn later(time: EventTime, by: Duration) -> EventTime {
    let by = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
    EventTime::from_micros(time.micros().saturating_add(by)).unwrap_or(time)
}

#[cfg(test)]
#[path = "append_tests.rs"]
mod tests;
