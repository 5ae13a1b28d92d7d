//! The requests of the last day by their keys, so that a retry is known without searching the ledgers.
//!
//! Kept in memory only: it is built again at every start, from the appends, in which the keys are stored.

use std::collections::{HashMap, VecDeque};

use crate::ledger::{EventId, EventTime, KeyHash};
use crate::storage::records::DoneRequest;

/// How long a key is remembered, in microseconds: 24 hours.
const REMEMBERED_MICROS: u64 = 24 * 3600 * 1_000_000;

/// Requests that were done within the last day.
#[derive(Debug, Default)]
pub(super) struct KeyIndex {
    by_key: HashMap<KeyHash, EventId>,
    /// Oldest first.
    in_order: VecDeque<(EventTime, KeyHash)>,
}

impl KeyIndex {
    /// The earliest time of a request that is still remembered.
    pub(super) fn since(now: EventTime) -> EventTime {
        EventTime::from_micros(now.micros().saturating_sub(REMEMBERED_MICROS)).expect("earlier than a time there is")
    }

    /// The requests of the last day, shown in any order.
    ///
    /// # Errors
    /// What `show_all` returns.
    pub(super) fn build<E>(show_all: impl FnOnce(&mut dyn FnMut(DoneRequest)) -> Result<(), E>) -> Result<KeyIndex, E> {
        let mut index = KeyIndex::default();
        show_all(&mut |done| index.add(done))?;
        index.in_order.make_contiguous().sort_unstable();
        Ok(index)
    }

    /// Remembers a request that was done after all others.
    pub(super) fn add(&mut self, done: DoneRequest) {
        if self.by_key.insert(done.key, done.last).is_none() {
            self.in_order.push_back((done.recorded, done.key));
        }
    }

    /// The last event that the request of this key appended.
    pub(super) fn get(&self, key: KeyHash) -> Option<EventId> {
        self.by_key.get(&key).copied()
    }

    /// Forgets what is older than a day.
    pub(super) fn forget_old(&mut self, now: EventTime) {
        let since = KeyIndex::since(now);
        while let Some((_, key)) = self.in_order.pop_front_if(|(recorded, _)| *recorded < since) {
            self.by_key.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_forgotten_after_a_day() {
        let at = |micros| EventTime::from_micros(micros).expect("in range");
        let last = EventId::from_text("0005cd7556b05092aecc815daa77f99c").expect("an id");
        let done = |key, recorded| DoneRequest { key: KeyHash(key), recorded: at(recorded), last };
        let shown = |show: &mut dyn FnMut(DoneRequest)| {
            show(done(2, 2_000));
            show(done(1, 1_000));
            Ok::<(), std::convert::Infallible>(())
        };
        let Ok(mut index) = KeyIndex::build(shown);
        index.forget_old(at(REMEMBERED_MICROS + 1_000));
        assert_eq!((index.get(KeyHash(1)), index.get(KeyHash(2))), (Some(last), Some(last)));
        index.forget_old(at(REMEMBERED_MICROS + 1_001));
        assert_eq!((index.get(KeyHash(1)), index.get(KeyHash(2))), (None, Some(last)));
        assert_eq!(KeyIndex::since(at(5)), at(0));
    }
}
