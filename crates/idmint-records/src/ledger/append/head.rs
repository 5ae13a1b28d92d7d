//! The head of a ledger, and the links of its chain of events.

use crate::ledger::events::{EventId, EventTime};

/// The last event of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The id of the event.
    pub id: EventId,
    /// The position of the event, counted from 1. It is also the number of events in the ledger.
    pub place: u64,
    /// The time at which the event was recorded, by the clock of the node that recorded it. It is
    /// never earlier than the time at which a previous event was recorded.
    pub recorded: EventTime,
    /// `true` if the ledger is being imported and more parts will follow. Until the last part, only
    /// parts of the import can be appended.
    pub is_importing: bool,
}

/// One event of a chain, with its position and the id of the previous event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The id of the event.
    pub id: EventId,
    /// The id of the previous event. For the first event, this is [`EventId::before_genesis`].
    pub previous: EventId,
    /// The position of the event, counted from 1.
    pub place: u64,
}

impl Link {
    /// Returns a link for each of several consecutive events. A link has the id and the position of
    /// an event, and the id of the event before it. `ids` are the ids of these events, and
    /// `first_place` is the position of the first one in the ledger. `previous` is the id of the
    /// event before them.
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
