//! Reads ledgers and their events.

use super::fleet_records::FleetRecords;
use super::rows::{Commit, commit_of_bytes, ledger_of_bytes};
use super::shared_store::unreadable;
use crate::coordinator::{KeyValue, Range};
use idmint_records::ledger::{EventId, LedgerId, Link};
use idmint_storage::{LedgerStore, LedgerSummary, StoreError, StoredAppend};

/// The number of rows in the first read of a ledger's events. It is small, because a single row may
/// contain the events of a whole append request.
const COMMITS_READ_FIRST: usize = 8;

/// The maximum number of rows in each later read of a ledger's events. A later read asks for as
/// many rows as the missing events probably need, judging by the rows that were read before.
const COMMITS_READ_MAX: usize = 1_024;

impl LedgerStore for FleetRecords {
    fn ledger(&self, ledger: LedgerId) -> Result<Option<LedgerSummary>, StoreError> {
        self.store
            .read_key(self.store.keys.ledger(ledger))?
            .as_ref()
            .map(ledger_of)
            .transpose()
    }

    fn ledgers(
        &self,
        after: Option<LedgerId>,
        count_max: usize,
    ) -> Result<Vec<LedgerSummary>, StoreError> {
        let Some(range) = up_to(count_max, self.store.keys.ledgers(after)) else {
            return Ok(Vec::new());
        };
        self.store
            .read_range(range)?
            .iter()
            .map(ledger_of)
            .collect()
    }

    fn chain(
        &self,
        ledger: LedgerId,
        after: Option<EventId>,
        count_max: usize,
    ) -> Result<Vec<Link>, StoreError> {
        let (mut links, mut commits) = (Vec::new(), COMMITS_READ_FIRST);
        let mut range = after.map_or_else(
            || self.store.keys.events_of(ledger),
            |after| self.store.keys.events_behind(after),
        );
        loop {
            let Some(page) = up_to(commits.min(count_max), range) else {
                return Ok(links);
            };
            let found = self.store.read_range(page.clone())?;
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
                    range = self.store.keys.events_behind(last)
                }
                Some(_) | None => return Ok(links),
            }
            // Estimate how many rows the missing events need from the number of events per row so
            // far.
            let for_each = links.len().div_ceil(found.len()).max(1);
            commits = (count_max - links.len())
                .div_ceil(for_each)
                .clamp(1, COMMITS_READ_MAX);
        }
    }

    fn link(&self, id: EventId) -> Result<Option<Link>, StoreError> {
        let Some(row) = self.row_at(id)? else {
            return Ok(None);
        };
        Ok(commit_of(&row)?.links().find(|link| link.id == id))
    }

    fn append(&self, last: EventId) -> Result<Option<(StoredAppend, Vec<Link>)>, StoreError> {
        let (asked, era) = (self.store.asking(), self.store.era());
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
        self.keep_read(asked, era, &[row])?;
        let is_of_it =
            |link: &Link| (append.first_place..=append.head().place).contains(&link.place);
        let links = commit.links().filter(is_of_it).collect();
        Ok(Some((append.clone(), links)))
    }
}

impl FleetRecords {
    /// Returns the row that contains the event `id`. If no row contains it, returns the next row of
    /// its ledger, or `None` after the last row.
    fn row_at(&self, id: EventId) -> Result<Option<KeyValue>, StoreError> {
        let range = Range {
            count_max: 1,
            ..self.store.keys.events_from(id)
        };
        Ok(self.store.read_range(range)?.pop())
    }
}

/// Limits a range to `count_max` entries. Returns `None` for 0, because a limit of 0 means "all" in
/// etcd.
fn up_to(count_max: usize, range: Range) -> Option<Range> {
    (count_max > 0).then_some(Range { count_max, ..range })
}

/// Parses the row of a ledger.
pub(super) fn ledger_of(entry: &KeyValue) -> Result<LedgerSummary, StoreError> {
    ledger_of_bytes(&entry.key, &entry.value).ok_or_else(|| unreadable(&entry.key, &entry.value))
}

fn commit_of(entry: &KeyValue) -> Result<Commit, StoreError> {
    let last = entry
        .key
        .rsplit_once('/')
        .and_then(|(_, last)| EventId::from_text(last).ok());
    last.and_then(|last| commit_of_bytes(last, &entry.value))
        .ok_or_else(|| unreadable(&entry.key, &entry.value))
}
