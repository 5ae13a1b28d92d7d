//! The records of a node that moves into a fleet: written as they are, each once, however often this is done again.
//!
//! A ledger is there for the nodes of the fleet with its own row, and a pair with its own. These rows come last, so nobody
//! appends to half a ledger, and whoever goes on after a kill finds out what is there by comparing.

use std::sync::Arc;

use super::adopted_batch::AdoptedBatch;
use crate::conjunction::Anchor;
use crate::ledger::{EventId, EventTime, LedgerId};
use crate::storage::coordinator::{Coordinator, Key, Range, Revision};
use crate::storage::etcd::Namespace;
use crate::storage::failure::{FailureKind, StoreError};
use crate::storage::fleet::conjunctions::anchors_of;
use crate::storage::fleet::keys::Keys;
use crate::storage::fleet::known_fleet::KnownFleet;
use crate::storage::fleet::ledgers::ledger_of;
use crate::storage::fleet::requests::request_of;
use crate::storage::fleet::rows::{
    Attempt, Commit, commit_to_bytes, conjunction_to_bytes, externals_to_bytes, ledger_to_bytes,
    pair_to_bytes,
};
use crate::storage::fleet::shared_store::SharedStore;
use crate::storage::records::{
    AnchorKey, DoneRequest, LedgerSummary, StoredAnchor, StoredAppend, StoredPair, append_row,
    remembered_since,
};

/// Rows of adopted records have this attempt: what is written again is the same bytes.
pub(super) const ADOPTED: Attempt = Attempt(0);

/// Bytes of appends that share a row, about. Each row of a ledger is read as a whole.
const ROW_LEN: usize = 64 * 1024;

/// Rows of a ledger that are read at once: each may have the events of the largest request.
const ROWS_READ_MAX: usize = 6;

/// Appends that are read from a folder at once.
const PAGE_LEN: usize = 200;

/// Writes records into the store of a fleet, or only compares them with what is there.
pub struct RecordAdopter {
    pub(super) store: SharedStore,
    pub(super) is_trial: bool,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AdoptedCount {
    /// Ledgers, pairs and series that were not there.
    pub written: u64,
    /// Those that were there already.
    pub found: u64,
    /// Appends of these ledgers, anchors of these pairs, or numbers of these series.
    pub parts: u64,
    /// Keys of requests that came with these appends, or numbers.
    pub requests: u64,
}

impl std::ops::AddAssign for AdoptedCount {
    fn add_assign(&mut self, more: AdoptedCount) {
        let AdoptedCount {
            written,
            found,
            parts,
            requests,
        } = more;
        self.written += written;
        self.found += found;
        self.parts += parts;
        self.requests += requests;
    }
}

/// Why a record cannot be adopted.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// The fleet has another record in its place. Nothing was written over.
    #[error("{what} is not the same in the folder and in the fleet (at {key})")]
    Differs {
        /// The record.
        what: String,
        /// Where it is in the store of the fleet.
        key: Key,
    },
    /// The folder or the store of the fleet refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AdoptError {
    /// What kind of failure this is.
    pub fn failure_kind(&self) -> FailureKind {
        match self {
            AdoptError::Differs { .. } => FailureKind::Damaged,
            AdoptError::Store(error) => error.failure_kind(),
        }
    }
}

impl RecordAdopter {
    /// Writes to the store of a fleet, as long as what the fleet has agreed on is `meta`.
    pub fn new(
        coordinator: Arc<dyn Coordinator>,
        namespace: &Namespace,
        known: Arc<KnownFleet>,
    ) -> RecordAdopter {
        RecordAdopter {
            store: SharedStore::new(coordinator, Keys::of(namespace), known),
            is_trial: false,
        }
    }

    /// The same, which writes nothing and only says what differs.
    #[must_use]
    pub fn on_trial(self) -> RecordAdopter {
        RecordAdopter {
            is_trial: true,
            ..self
        }
    }

    /// Adopts a ledger, of which `read` gives so many appends behind one of them, and the keys of its requests since then.
    ///
    /// # Errors
    /// [`AdoptError`].
    pub fn adopt_ledger(
        &self,
        ledger: &LedgerSummary,
        since: EventTime,
        read: &dyn Fn(Option<EventId>, usize) -> Result<Vec<StoredAppend>, StoreError>,
    ) -> Result<AdoptedCount, AdoptError> {
        let id = ledger.head.id.ledger();
        let key = self.store.keys.ledger(id);
        let there = self
            .store
            .read_key(key.clone())?
            .as_ref()
            .map(ledger_of)
            .transpose()?;
        let differs = |key: &Key| AdoptError::Differs {
            what: format!("ledger {id}"),
            key: key.clone(),
        };
        if there.is_some_and(|there| {
            there.genesis != ledger.genesis || there.head.place < ledger.head.place
        }) {
            return Err(differs(&key));
        }
        let mut batch = AdoptedBatch::new(&self.store, self.is_trial);
        let (mut count, mut previous) = (AdoptedCount::default(), None);
        loop {
            let page = read(previous, PAGE_LEN)?;
            let Some(last) = page.last() else { break };
            count.parts += u64::try_from(page.len()).expect("a page is short");
            let requests: Vec<DoneRequest> = page
                .iter()
                .filter_map(|append| remembered(append, since))
                .collect();
            let rows = rows_of(&self.store.keys, &page, previous);
            previous = Some(last.head().id);
            for some in rows.chunks(ROWS_READ_MAX) {
                batch
                    .create_missing(some, there.is_none())?
                    .map_or(Ok(()), |key| Err(differs(key)))?;
            }
            count.requests += self.adopt_requests(id, &requests, &mut batch)?;
        }
        match there {
            Some(_) => count.found += 1,
            None => {
                let value = ledger_to_bytes(&key, ledger);
                batch.create(key, value)?;
                count.written += 1;
            }
        }
        batch.flush()?;
        Ok(count)
    }

    /// Puts the requests that are not there, and says how many the folder has.
    fn adopt_requests(
        &self,
        ledger: LedgerId,
        requests: &[DoneRequest],
        batch: &mut AdoptedBatch<'_>,
    ) -> Result<u64, AdoptError> {
        if requests.is_empty() {
            return Ok(0);
        }
        let ranges: Vec<Range> = requests
            .iter()
            .map(|done| Range::one(self.store.keys.request(done.key)))
            .collect();
        for (done, found) in requests.iter().zip(self.store.read(&ranges)?) {
            let there = found
                .first()
                .map(|entry| request_of(entry, done.key))
                .transpose()?;
            let revision = found
                .first()
                .map_or(Revision::ABSENT, |entry| entry.modified);
            match there {
                None => batch.put_request(*done, revision)?,
                Some(there) if there == *done => {}
                // Used again since, after a day.
                Some(there) if done.recorded < remembered_since(there.recorded) => {}
                Some(there) if there.recorded < remembered_since(done.recorded) => {
                    batch.put_request(*done, revision)?
                }
                Some(_) => {
                    let what = format!("a request with a key, of ledger {ledger},");
                    return Err(AdoptError::Differs {
                        what,
                        key: self.store.keys.request(done.key),
                    });
                }
            }
        }
        Ok(u64::try_from(requests.len()).expect("a page is short"))
    }

    /// Adopts pairs of objects with their anchors.
    ///
    /// # Errors
    /// [`AdoptError`].
    pub fn adopt_pairs(&self, pairs: &[StoredPair]) -> Result<AdoptedCount, AdoptError> {
        let keys = &self.store.keys;
        let ranges: Vec<Range> = pairs
            .iter()
            .map(|of| Range::one(keys.pair(&of.format, of.pair)))
            .collect();
        let mut batch = AdoptedBatch::new(&self.store, self.is_trial);
        let mut count = AdoptedCount::default();
        for (
            StoredPair {
                format,
                pair,
                anchors,
            },
            found,
        ) in pairs.iter().zip(self.store.read(&ranges)?)
        {
            let key = keys.pair(format, *pair);
            count.parts += u64::try_from(anchors.len()).expect("a pair has few");
            if found.is_empty() {
                for StoredAnchor {
                    anchor,
                    tally,
                    externals,
                } in anchors
                {
                    let key = keys.conjunction(format, (anchor.tca, *pair));
                    let value = conjunction_to_bytes(&key, anchor.rank, tally.as_ref());
                    batch.replace(key, value)?;
                    if externals.is_empty() {
                        continue;
                    }
                    let anchor = AnchorKey {
                        format: format.clone(),
                        pair: *pair,
                        tca: anchor.tca,
                    };
                    for external in externals {
                        batch.replace(keys.external(&anchor, external), Vec::new())?;
                    }
                    let key = keys.externals(&anchor);
                    let value = externals_to_bytes(&key, externals);
                    batch.replace(key, value)?;
                }
                let mut created: Vec<Anchor> = anchors.iter().map(|stored| stored.anchor).collect();
                created.sort_by_key(|anchor| (anchor.rank, anchor.tca));
                let value = pair_to_bytes(&key, ADOPTED, &created);
                batch.create(key, value)?;
                count.written += 1;
            } else {
                let there = anchors_of(&found)?;
                if !anchors.iter().all(|stored| there.contains(&stored.anchor)) {
                    let what = format!(
                        "the conjunctions of {} and {} in {format}",
                        pair.primary, pair.secondary
                    );
                    return Err(AdoptError::Differs { what, key });
                }
                count.found += 1;
            }
        }
        batch.flush()?;
        Ok(count)
    }
}

/// The request that an append came with, if its key is not free again.
fn remembered(append: &StoredAppend, since: EventTime) -> Option<DoneRequest> {
    let mark = append.mark.filter(|_| append.recorded >= since)?;
    Some(DoneRequest {
        key: mark.key,
        recorded: append.recorded,
        last: append.head().id,
    })
}

/// Appends as rows of the fleet, which several share. `previous` is the event before them; `None` at the beginning.
fn rows_of(
    keys: &Keys,
    appends: &[StoredAppend],
    previous: Option<EventId>,
) -> Vec<(Key, Vec<u8>)> {
    let (mut rows, mut shared, mut len) = (Vec::new(), Vec::new(), 0);
    let mut previous = previous.unwrap_or_else(|| {
        let genesis = appends[0].entries[0].id;
        EventId::before_genesis(genesis.timestamp(), genesis.ledger())
    });
    for (at, append) in appends.iter().enumerate() {
        len += append_row::to_bytes(append).len();
        shared.push(append.clone());
        if len >= ROW_LEN || at + 1 == appends.len() {
            let commit = Commit {
                attempt: ADOPTED,
                previous,
                appends: std::mem::take(&mut shared),
            };
            previous = commit.head().id;
            rows.push((keys.event(previous), commit_to_bytes(&commit)));
            len = 0;
        }
    }
    rows
}
