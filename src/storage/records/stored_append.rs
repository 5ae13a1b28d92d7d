//! One append as it is stored.

use crate::ledger::{AppendPlan, Entry, EventTime, Head, LedgerId, RequestMark};

/// The events of one append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAppend {
    /// The place of its first event, from 1.
    pub first_place: u64,
    /// When it was recorded, by the clock of the node.
    pub recorded: EventTime,
    /// The request that it came with.
    pub mark: Option<RequestMark>,
    /// Whether more parts of an import follow.
    pub is_importing: bool,
    /// Its events, at least one.
    pub entries: Vec<Entry>,
}

impl StoredAppend {
    /// What a plan is stored as.
    pub(in crate::storage) fn of(plan: &AppendPlan) -> StoredAppend {
        let AppendPlan {
            before: _,
            entries,
            mark,
            recorded,
            is_importing,
        } = plan;
        let (first_place, entries) = (plan.first_place(), entries.clone());
        StoredAppend {
            first_place,
            recorded: *recorded,
            mark: *mark,
            is_importing: *is_importing,
            entries,
        }
    }

    /// The last event.
    pub fn head(&self) -> Head {
        let last = self.entries.last().expect("an append has an event");
        let before_last = u64::try_from(self.entries.len() - 1).expect("an append is short");
        let (recorded, is_importing) = (self.recorded, self.is_importing);
        Head {
            id: last.id,
            place: self.first_place + before_last,
            recorded,
            is_importing,
        }
    }

    /// The ledger.
    pub fn ledger(&self) -> LedgerId {
        self.head().id.ledger()
    }
}
