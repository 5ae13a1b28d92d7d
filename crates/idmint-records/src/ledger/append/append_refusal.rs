//! The reasons why an append is refused.

use std::time::Duration;

use super::head::Head;
use crate::ledger::events::{EventId, EventTime, LedgerId};
use idmint_core::id::Rejection;

/// The maximum time by which the timestamp of an event may be ahead of the node's clock.
pub const AHEAD_MAX: Duration = Duration::from_secs(5);

/// The reason why an append is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendRefusal {
    /// The ledger does not exist.
    #[error("there is no ledger {0}")]
    UnknownLedger(LedgerId),
    /// The ledger that would be created already exists.
    #[error("the ledger {} exists already", .0.id.ledger())]
    LedgerExists(Head),
    /// The ledger is being imported, and the request is not a part of the import. The value is the
    /// last event of the ledger.
    #[error("the ledger {} is being imported; append other events after the last part of the import", .0.id.ledger())]
    LedgerImporting(Head),
    /// The request can only continue an import, but the ledger is not being imported. The value is
    /// the last event of the ledger.
    #[error("the ledger {} is not being imported", .0.id.ledger())]
    ImportNotBegun(Head),
    /// The last event of the ledger is not the one that the caller expected.
    #[error("the head of the ledger is {}, but expected_previous is {expected}", .head.id)]
    HeadMoved {
        /// The id of the last event that the caller expected.
        expected: EventId,
        /// The last event of the ledger now.
        head: Head,
    },
    /// One of the events cannot be appended.
    #[error("event {index}: {error}")]
    Event {
        /// The index of the event in the request, from 0.
        index: usize,
        /// The reason why the event cannot be appended.
        error: PlaceError,
    },
}

/// The reason why an event cannot be the next event of its ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// The timestamp of the event is not above the timestamp of the previous event.
    #[error(
        "timestamp is {timestamp}, but must be above {last}, the timestamp of the previous event"
    )]
    NotMonotonic {
        /// The timestamp of the event.
        timestamp: EventTime,
        /// The timestamp of the previous event.
        last: EventTime,
    },
    /// The timestamp of the event is too far ahead of the clock.
    #[error(
        "timestamp is {timestamp}, but must be at most {most}, {} s ahead of the clock",
        AHEAD_MAX.as_secs()
    )]
    Ahead {
        /// The timestamp of the event.
        timestamp: EventTime,
        /// The latest timestamp that is allowed now.
        most: EventTime,
    },
    /// The event contains an id that differs from the id that was computed for the event.
    #[error("eventId is {named}, but the event would get the id {gets}")]
    OtherId {
        /// The id that the event contains.
        named: EventId,
        /// The id that was computed for the event.
        gets: EventId,
    },
    /// The previous event has the last possible timestamp, so no later event is possible.
    #[error("the previous event has the last possible timestamp, so no event can follow it")]
    TimeEnded,
}

impl PlaceError {
    /// Returns the published code of the reason, such as `not_monotonic`.
    pub fn code(&self) -> &'static str {
        match self {
            PlaceError::NotMonotonic { .. } => Rejection::NotMonotonic.code(),
            PlaceError::Ahead { .. } => Rejection::OutOfRange.code(),
            PlaceError::OtherId { named, gets } if named.ledger() != gets.ledger() => {
                Rejection::LedgerMismatch.code()
            }
            PlaceError::OtherId { named, gets } if named.timestamp() != gets.timestamp() => {
                Rejection::TimestampMismatch.code()
            }
            PlaceError::OtherId { .. } => Rejection::ChecksumMismatch.code(),
            PlaceError::TimeEnded => Rejection::Overflow.code(),
        }
    }
}
