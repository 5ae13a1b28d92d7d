//! Plans appends to ledgers. The ids to store are computed from the new events, the last event of
//! the ledger and the current time.

use std::time::Duration;

use sha2::{Digest, Sha256};

use super::append_refusal::{AHEAD_MAX, AppendRefusal, PlaceError};
use super::head::{Head, Link};
use super::ledger_request::{ImportPart, LedgerRequest, RequestMark};
use crate::ledger::events::{Event, EventId, EventTime, LedgerId};

/// A plan for an append, which the caller should store. The plan is valid while the last event of
/// the ledger is `before`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendPlan {
    /// The last event of the ledger at the time when the plan was made, or `None` if the plan
    /// creates the ledger.
    pub before: Option<Head>,
    /// The events to store, each with its id. Never empty.
    pub entries: Vec<Entry>,
    /// The mark that identifies the request, so that a repeated request takes effect only once.
    /// `None` if the request has no idempotency key.
    pub mark: Option<RequestMark>,
    /// The time at which the append is recorded. It is the current time, or the time of the
    /// ledger's last append if that is later. A caller that knows that the current time is too
    /// early may replace it by a later time.
    pub recorded: EventTime,
    /// `true` if the ledger is being imported from another system and more parts of the import will
    /// follow.
    pub is_importing: bool,
}

/// The stored form of one event. The content of the event is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The id of the event.
    pub id: EventId,
    /// The SHA-256 of the event's content and time. It detects changes that the 32-bit checksum in
    /// the id may miss.
    pub digest: [u8; 32],
}

impl AppendPlan {
    /// Plans an append to a ledger.
    ///
    /// `head` is the last event of the ledger that [`LedgerRequest::ledger_at`] returns, or `None`
    /// if that ledger does not exist.
    ///
    /// # Errors
    /// Returns [`AppendRefusal`] if the events cannot be appended.
    pub fn make(
        request: &LedgerRequest,
        head: Option<Head>,
        now: EventTime,
    ) -> Result<AppendPlan, AppendRefusal> {
        let (mut end, events, mark) = match request {
            LedgerRequest::Create {
                genesis,
                mark,
                import: _,
            } => {
                if let Some(head) = head {
                    return Err(AppendRefusal::LedgerExists(head));
                }
                (
                    ChainEnd::before_genesis(genesis, now),
                    std::slice::from_ref(genesis),
                    *mark,
                )
            }
            LedgerRequest::Append {
                ledger,
                events,
                expected_previous,
                mark,
                import,
            } => {
                let head = head.ok_or(AppendRefusal::UnknownLedger(*ledger))?;
                if head.is_importing && import.is_none() {
                    return Err(AppendRefusal::LedgerImporting(head));
                }
                if !head.is_importing && *import == Some(ImportPart::Further) {
                    return Err(AppendRefusal::ImportNotBegun(head));
                }
                if let Some(expected) = expected_previous.filter(|expected| *expected != head.id) {
                    return Err(AppendRefusal::HeadMoved { expected, head });
                }
                (ChainEnd::after(head), events.as_slice(), Some(*mark))
            }
        };
        let most = later(now, AHEAD_MAX);
        let mut entry = |(index, event)| {
            end.append(event, now, most)
                .map_err(|error| AppendRefusal::Event { index, error })
        };
        let entries = events
            .iter()
            .enumerate()
            .map(&mut entry)
            .collect::<Result<Vec<_>, _>>()?;
        assert!(!entries.is_empty(), "a request has at least one event");
        let recorded = head.map_or(now, |head| head.recorded.max(now));
        let is_importing = matches!(
            request.import(),
            Some(ImportPart::More | ImportPart::Further)
        );
        Ok(AppendPlan {
            before: head,
            entries,
            mark,
            recorded,
            is_importing,
        })
    }

    /// Returns the ledger to which the events are appended.
    pub fn ledger(&self) -> LedgerId {
        self.last().ledger()
    }

    /// Returns the last event that the ledger has after the events of this plan were appended.
    pub fn head(&self) -> Head {
        let (recorded, is_importing) = (self.recorded, self.is_importing);
        Head {
            id: self.last(),
            place: self.place_before() + self.count(),
            recorded,
            is_importing,
        }
    }

    /// Returns the position in the ledger of the first appended event, counted from 1.
    pub fn first_place(&self) -> u64 {
        self.place_before() + 1
    }

    /// Returns the id of the event before the first event of the plan. If the plan creates the
    /// ledger, this is [`EventId::before_genesis`].
    pub fn previous(&self) -> EventId {
        match self.before {
            Some(head) => head.id,
            None => EventId::before_genesis(self.entries[0].id.timestamp(), self.ledger()),
        }
    }

    /// Returns the events of the plan as links of the ledger's chain, each with its position and
    /// the id of the event before it.
    pub fn links(&self) -> impl Iterator<Item = Link> {
        Link::chain(
            self.previous(),
            self.first_place(),
            self.entries.iter().map(|entry| entry.id),
        )
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

/// The state of a ledger while the events of an append are added to it: the ledger, and the id and
/// the timestamp of its last event.
struct ChainEnd {
    ledger: LedgerId,
    previous: EventId,
    /// The timestamp of the last event, which the next event must exceed. `None` if the ledger has
    /// no event yet.
    last: Option<EventTime>,
}

impl ChainEnd {
    fn after(head: Head) -> ChainEnd {
        ChainEnd {
            ledger: head.id.ledger(),
            previous: head.id,
            last: Some(head.id.timestamp()),
        }
    }

    fn before_genesis(genesis: &Event, now: EventTime) -> ChainEnd {
        let time = genesis.timestamp().unwrap_or(now);
        let ledger = LedgerId::of_genesis(genesis, time);
        ChainEnd {
            ledger,
            previous: EventId::before_genesis(time, ledger),
            last: None,
        }
    }

    fn append(
        &mut self,
        event: &Event,
        now: EventTime,
        most: EventTime,
    ) -> Result<Entry, PlaceError> {
        let timestamp = match (event.timestamp(), self.last) {
            (Some(timestamp), Some(last)) if timestamp <= last => {
                return Err(PlaceError::NotMonotonic { timestamp, last });
            }
            (Some(timestamp), _) if timestamp > most => {
                return Err(PlaceError::Ahead { timestamp, most });
            }
            (Some(timestamp), _) => timestamp,
            (None, last) => EventTime::after(last, now).ok_or(PlaceError::TimeEnded)?,
        };
        let id = event.seal(timestamp, self.ledger, self.previous);
        if let Some(named) = event.id().filter(|named| *named != id) {
            return Err(PlaceError::OtherId { named, gets: id });
        }
        self.previous = id;
        self.last = Some(timestamp);
        let message = Sha256::new()
            .chain_update(event.content())
            .chain_update(format!("{:016x}", timestamp.micros()));
        Ok(Entry {
            id,
            digest: message.finalize().into(),
        })
    }
}

/// Returns `time` plus `by`, or `time` itself if the sum exceeds the last possible time.
fn later(time: EventTime, by: Duration) -> EventTime {
    let by = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
    EventTime::from_micros(time.micros().saturating_add(by)).unwrap_or(time)
}

#[cfg(test)]
#[path = "append_plan_tests.rs"]
mod tests;
