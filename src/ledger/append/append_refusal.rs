//! Why a request appends nothing.

use std::fmt;
use std::time::Duration;

use super::head::Head;
use crate::id::Rejection;
use crate::ledger::events::{EventId, EventTime, LedgerId};

/// How far ahead of the clock the timestamp of an event may be.
pub const AHEAD_MAX: Duration = Duration::from_secs(5);

/// Why a request appends nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendRefusal {
    /// There is no such ledger.
    #[error("there is no ledger {0}")]
    UnknownLedger(LedgerId),
    /// The ledger to create exists already.
    #[error("the ledger {} exists already", .0.id.ledger())]
    LedgerExists(Head),
    /// The ledger is being imported, and this is no part of that.
    #[error("the ledger {} is being imported", .0.id.ledger())]
    LedgerImporting(Head),
    /// The ledger is not being imported, and this may not begin that.
    #[error("the ledger {} is not being imported", .0.id.ledger())]
    ImportNotBegun(Head),
    /// The head is not the one that the caller expected.
    #[error("the head is {}, not {expected}", .head.id)]
    HeadMoved {
        /// The head that the caller expected.
        expected: EventId,
        /// The head of the ledger.
        head: Head,
    },
    /// An event cannot be appended at its place.
    #[error("event {index}: {error}")]
    Event {
        /// The index of the event in the request, from 0.
        index: usize,
        /// The reason.
        error: PlaceError,
    },
}

/// Why an event cannot be the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceError {
    /// The timestamp of the event is not above that of the event before.
    NotMonotonic {
        /// The timestamp of the event.
        timestamp: EventTime,
        /// The timestamp of the event before.
        last: EventTime,
    },
    /// The timestamp of the event is too far ahead of the clock.
    Ahead {
        /// The timestamp of the event.
        timestamp: EventTime,
        /// The greatest timestamp allowed now.
        most: EventTime,
    },
    /// The event carries another id than the one it gets.
    OtherId {
        /// The id it carries.
        named: EventId,
        /// The id it gets.
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

impl std::error::Error for PlaceError {}

impl fmt::Display for PlaceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceError::NotMonotonic { timestamp, last } => {
                write!(
                    out,
                    "timestamp is {timestamp}, it must be above {last}, the timestamp of the event before"
                )
            }
            PlaceError::Ahead { timestamp, most } => {
                let ahead = AHEAD_MAX.as_secs();
                write!(
                    out,
                    "timestamp is {timestamp}, it must be at most {most}, {ahead} s ahead of the clock"
                )
            }
            PlaceError::OtherId { named, gets } => {
                write!(out, "eventId is {named}, the event gets {gets}")
            }
            PlaceError::TimeEnded => {
                out.write_str("the event before has the last timestamp there is")
            }
        }
    }
}
