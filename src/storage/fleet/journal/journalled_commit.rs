//! A commit as a journal has it: where it stands in the chain of its ledger, and where its row is.

use crate::ledger::{EventId, EventTime};
use crate::storage::fleet::known_fleet::FleetEra;
use crate::storage::fleet::rows::Commit;

/// Where a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowPlace {
    /// Which of the files that were read.
    pub(super) file: usize,
    pub(super) at: u64,
    pub(super) len: usize,
}

/// A commit in a journal, without its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JournalledCommit {
    /// The id before its first event.
    pub(super) previous: EventId,
    pub(super) first_place: u64,
    pub(super) last: EventId,
    pub(super) last_place: u64,
    pub(super) recorded: EventTime,
    /// The last era in which it was written down.
    pub(super) era: FleetEra,
    pub(super) row: RowPlace,
}

impl JournalledCommit {
    pub(super) fn of(commit: &Commit, era: FleetEra, row: RowPlace) -> JournalledCommit {
        let head = commit.head();
        JournalledCommit {
            previous: commit.previous,
            first_place: commit.appends[0].first_place,
            last: head.id,
            last_place: head.place,
            recorded: head.recorded,
            era,
            row,
        }
    }

    /// Whether it stands behind this head; at the beginning, where there is no ledger.
    pub(super) fn continues(&self, head: Option<(EventId, u64)>) -> bool {
        match head {
            None => self.first_place == 1,
            Some((last, place)) => {
                self.previous == last && place.checked_add(1) == Some(self.first_place)
            }
        }
    }
}
