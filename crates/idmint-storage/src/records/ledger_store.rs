//! The operations that a store supports for ledgers.

use crate::failure::StoreError;
use idmint_records::ledger::{
    AppendPlan, Entry, EventId, EventTime, Head, LedgerId, Link, RequestMark,
};

/// A store of the events of every ledger.
pub trait LedgerStore {
    /// Returns the last event of a ledger, or `None` if there is no such ledger.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn head(&self, ledger: LedgerId) -> Result<Option<Head>, StoreError> {
        Ok(self.ledger(ledger)?.map(|ledger| ledger.head))
    }

    /// Returns a summary of a ledger, or `None` if the ledger does not exist.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn ledger(&self, ledger: LedgerId) -> Result<Option<LedgerSummary>, StoreError>;

    /// Returns at most `count_max` ledgers with ids above `after`, sorted by id.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn ledgers(
        &self,
        after: Option<LedgerId>,
        count_max: usize,
    ) -> Result<Vec<LedgerSummary>, StoreError>;

    /// Returns at most `count_max` events of a ledger, oldest first. The list begins after the
    /// event `after`, or with the first event if `after` is `None`.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn chain(
        &self,
        ledger: LedgerId,
        after: Option<EventId>,
        count_max: usize,
    ) -> Result<Vec<Link>, StoreError>;

    /// Returns the event `id` together with the id of the event before it in its ledger, or `None`
    /// if the event is not stored.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn link(&self, id: EventId) -> Result<Option<Link>, StoreError>;

    /// Returns the append that ends with the event `last`, or `None` if no append ends with it.
    /// Also returns the events of the append, each with the id of the event before it.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn append(&self, last: EventId) -> Result<Option<(StoredAppend, Vec<Link>)>, StoreError>;
}

/// A ledger as it appears in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerSummary {
    /// The first event of the ledger.
    pub genesis: EventId,
    /// The last event of the ledger.
    pub head: Head,
}

/// The stored events of one append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAppend {
    /// The position of the first event of this append in its ledger. The first event of a ledger
    /// has the position 1.
    pub first_place: u64,
    /// The time at which the append was recorded, by the clock of the node that recorded it.
    pub recorded: EventTime,
    /// The idempotency key and the digest of the request, or `None` if the request has no key.
    pub mark: Option<RequestMark>,
    /// `true` if the append imports a part of a ledger and more parts will follow.
    pub is_importing: bool,
    /// The events. Never empty.
    pub entries: Vec<Entry>,
}

impl StoredAppend {
    /// Converts a planned append to the form in which it is stored.
    pub fn of(plan: &AppendPlan) -> StoredAppend {
        StoredAppend {
            first_place: plan.first_place(),
            recorded: plan.recorded,
            mark: plan.mark,
            is_importing: plan.is_importing,
            entries: plan.entries.clone(),
        }
    }

    /// Returns the last event of the append.
    pub fn head(&self) -> Head {
        let last = self.entries.last().expect("an append has an event");
        let before_last = u64::try_from(self.entries.len() - 1).expect("an append is short");
        Head {
            id: last.id,
            place: self.first_place + before_last,
            recorded: self.recorded,
            is_importing: self.is_importing,
        }
    }

    /// Returns the ledger to which the events belong.
    pub fn ledger(&self) -> LedgerId {
        self.head().id.ledger()
    }
}
