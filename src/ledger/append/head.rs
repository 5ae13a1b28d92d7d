//! The head of a ledger, and the events that link to it.

use crate::ledger::events::{EventId, EventTime};

/// The last event of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its id.
    pub id: EventId,
    /// Its place: 1 for the first event, so this is also the number of events.
    pub place: u64,
    /// When it was recorded, by the clock of the node that recorded it; never earlier than any event before it.
    pub recorded: EventTime,
    /// Whether the ledger is being imported and more of it follows: until then nothing else is appended.
    pub is_importing: bool,
}

/// One event of a chain, and the id it links to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Its id.
    pub id: EventId,
    /// The id of the event before it; for the first event [`EventId::before_genesis`].
    pub previous: EventId,
    /// Its place, from 1.
    pub place: u64,
}

impl Link {
    /// The links of consecutive events: the first has the place `first_place` and comes after `previous`.
    pub fn chain(
        previous: EventId,
        first_place: u64,
        ids: impl Iterator<Item = EventId>,
    ) -> impl Iterator<Item = Link> {
        let mut before = previous;
        (first_place..).zip(ids).map(move |(place, id)| Link {
            id,
            previous: std::mem::replace(&mut before, id),
            place,
        })
    }
}
