//! A commit of a ledger in a journal: its position in the ledger's chain of events, and the
//! location of its row in the journal files.

use crate::records::known_fleet::FleetEra;
use crate::records::rows::Commit;
use idmint_records::ledger::{EventId, EventTime};

/// The location of a row in the journal files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowPlace {
    /// The index of the file in the list of journal files.
    pub(super) file: usize,
    pub(super) at: u64,
    pub(super) len: usize,
}

/// A journalled commit without the content of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JournalledCommit {
    /// The id of the event that precedes the first event of the commit.
    pub(super) previous: EventId,
    pub(super) first_place: u64,
    pub(super) last: EventId,
    pub(super) last_place: u64,
    pub(super) recorded: EventTime,
    /// The latest era in which any node journalled the commit. An era lasts from one fence to the
    /// next.
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

    /// `true` if the commit directly follows `head`, the last event of the ledger and its position.
    /// If `head` is `None`, the ledger is empty, and only its first commit follows.
    pub(super) fn continues(&self, head: Option<(EventId, u64)>) -> bool {
        match head {
            None => self.first_place == 1,
            Some((last, place)) => {
                self.previous == last && place.checked_add(1) == Some(self.first_place)
            }
        }
    }
}
