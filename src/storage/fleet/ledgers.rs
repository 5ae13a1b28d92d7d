//! Ledgers and their events, read.

use super::rows::{Commit, commit_of_bytes, ledger_of_bytes};
use super::shared_store::{SharedStore, damaged};
use crate::ledger::{EventId, LedgerId, Link};
use crate::storage::coordinator::{KeyValue, Range};
use crate::storage::failure::StoreError;
use crate::storage::records::{LedgerSummary, StoredAppend};

/// Commits that are read at first: each may have the events of the largest request.
const COMMITS_READ_FIRST: usize = 8;

/// Commits that are read at once when they have turned out to be short.
const COMMITS_READ_MAX: usize = 1_024;

impl SharedStore {
    /// A ledger; `None` if there is no such ledger.
    pub(super) fn ledger(&self, ledger: LedgerId) -> Result<Option<LedgerSummary>, StoreError> {
        self.read_key(self.keys.ledger(ledger))?
            .as_ref()
            .map(ledger_of)
            .transpose()
    }

    /// Ledgers in the order of their ids, those above `after`, at most `count_max`.
    pub(super) fn ledgers(
        &self,
        after: Option<LedgerId>,
        count_max: usize,
    ) -> Result<Vec<LedgerSummary>, StoreError> {
        let Some(range) = up_to(count_max, self.keys.ledgers(after)) else {
            return Ok(Vec::new());
        };
        self.read_range(range)?.iter().map(ledger_of).collect()
    }

    /// The events of a ledger after one of them, or from the first, at most `count_max`.
    pub(super) fn chain(
        &self,
        ledger: LedgerId,
        after: Option<EventId>,
        count_max: usize,
    ) -> Result<Vec<Link>, StoreError> {
        let (mut links, mut commits) = (Vec::new(), COMMITS_READ_FIRST);
        let mut range = after.map_or_else(
            || self.keys.events_of(ledger),
            |after| self.keys.events_behind(after),
        );
        loop {
            let Some(page) = up_to(commits.min(count_max), range) else {
                return Ok(links);
            };
            let found = self.read_range(page.clone())?;
            let is_last = found.len() < page.count_max;
            let mut last = None;
            for entry in &found {
                let commit = commit_of(entry)?;
                last = Some(commit.head().id);
                let rest = count_max - links.len();
                links.extend(
                    commit
                        .links()
                        .filter(|link| after.is_none_or(|after| link.id > after))
                        .take(rest),
                );
            }
            match last {
                Some(last) if !is_last && links.len() < count_max => {
                    range = self.keys.events_behind(last)
                }
                Some(_) | None => return Ok(links),
            }
            // As many as will be enough if those that follow are like those that were read.
            let for_each = links.len().div_ceil(found.len()).max(1);
            commits = (count_max - links.len())
                .div_ceil(for_each)
                .clamp(1, COMMITS_READ_MAX);
        }
    }

    /// An event of a ledger; `None` if it is not there.
    pub(super) fn link(&self, id: EventId) -> Result<Option<Link>, StoreError> {
        let commit = self.commit_at(id)?;
        Ok(commit.and_then(|commit| commit.links().find(|link| link.id == id)))
    }

    /// The append whose last event is `last`; `None` if there is none.
    pub(super) fn append(&self, last: EventId) -> Result<Option<FoundAppend>, StoreError> {
        let Some(row) = self.row_at(last)? else {
            return Ok(None);
        };
        let commit = commit_of(&row)?;
        let Some(append) = commit
            .appends
            .iter()
            .find(|append| append.head().id == last)
        else {
            return Ok(None);
        };
        let is_of_it =
            |link: &Link| (append.first_place..=append.head().place).contains(&link.place);
        let links = commit.links().filter(is_of_it).collect();
        Ok(Some(FoundAppend {
            append: append.clone(),
            links,
            row,
        }))
    }

    /// The commit that the event would be in.
    fn commit_at(&self, id: EventId) -> Result<Option<Commit>, StoreError> {
        self.row_at(id)?.as_ref().map(commit_of).transpose()
    }

    /// The row that the event would be in.
    fn row_at(&self, id: EventId) -> Result<Option<KeyValue>, StoreError> {
        let range = Range {
            count_max: 1,
            ..self.keys.events_from(id)
        };
        Ok(self.read_range(range)?.pop())
    }
}

/// An append that is stored.
pub(super) struct FoundAppend {
    pub(super) append: StoredAppend,
    /// Its events in their chain.
    pub(super) links: Vec<Link>,
    /// The row that it is in.
    pub(super) row: KeyValue,
}

/// A range of at most `count_max` entries; `None` of none, which etcd would take for all.
fn up_to(count_max: usize, range: Range) -> Option<Range> {
    (count_max > 0).then_some(Range { count_max, ..range })
}

/// The ledger of a row.
pub(super) fn ledger_of(entry: &KeyValue) -> Result<LedgerSummary, StoreError> {
    ledger_of_bytes(&entry.key, &entry.value).ok_or_else(|| damaged(&entry.key))
}

fn commit_of(entry: &KeyValue) -> Result<Commit, StoreError> {
    let last = entry
        .key
        .rsplit_once('/')
        .and_then(|(_, last)| EventId::from_text(last).ok());
    last.and_then(|last| commit_of_bytes(last, &entry.value))
        .ok_or_else(|| damaged(&entry.key))
}
