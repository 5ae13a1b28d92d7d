//! Copies the ledgers and conjunctions of a single node into a fleet, unchanged. Each record is
//! written once, even if the adoption is repeated.
//!
//! The fleet sees a ledger or a pair of objects once its own row exists. That row is written last,
//! so that no node appends to an incomplete ledger. If a run was killed, the next run compares the
//! folder with the fleet to find out which rows exist. After a restore of the coordinator, an
//! import of journals may have brought back only the beginning of a ledger or series. The adoption
//! then adds the rest.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::adopted_batch::AdoptedBatch;
use crate::coordinator::{Coordinator, Key, Range, Revision};
use crate::records::conjunctions::anchors_of;
use crate::records::keys::Keys;
use crate::records::known_fleet::KnownFleet;
use crate::records::ledgers::ledger_of;
use crate::records::requests::request_of;
use crate::records::rows::{
    Attempt, Commit, commit_to_bytes, conjunction_to_bytes, externals_to_bytes, ledger_to_bytes,
    pair_to_bytes,
};
use crate::records::shared_store::SharedStore;
use idmint_records::conjunction::{Anchor, Tca};
use idmint_records::ledger::{EventId, EventTime, LedgerId, SeriesName};
use idmint_storage::Namespace;
use idmint_storage::rows::append_row;
use idmint_storage::{
    AnchorKey, DoneRequest, LedgerSummary, StoredAnchor, StoredAppend, StoredPair, remembered_since,
};
use idmint_storage::{FailureKind, StoreError};

/// The attempt number in adopted rows. Other attempt numbers identify one transaction each. This
/// one is constant, so that a repeated adoption writes the same bytes.
pub(super) const ADOPTED: Attempt = Attempt(0);

/// The approximate size of the appends in one row, in bytes. It is limited because a row is always
/// read as a whole.
const ROW_LEN: usize = 64 * 1024;

/// The maximum number of a ledger's rows in one read. It is small, because a single row may contain
/// the events of a whole append request.
const ROWS_READ_MAX: usize = 6;

/// The number of a ledger's appends that are read from the folder at a time.
const PAGE_LEN: usize = 200;

/// Copies the records of a single node into a fleet's store. On trial, the adopter only compares
/// these records with the fleet's.
pub(crate) struct RecordAdopter {
    pub(super) store: SharedStore,
    pub(super) is_trial: bool,
}

/// Counts of adopted records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AdoptedCount {
    /// The number of ledgers, series or pairs of objects that the fleet lacked completely or in
    /// part, and that were written.
    pub written: u64,
    /// The number of ledgers, series or pairs of objects that the fleet already had completely.
    pub found: u64,
    /// The number of appends, numbers or anchors in these ledgers, series or pairs.
    pub parts: u64,
    /// The number of idempotency keys of these appends or numbers.
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

/// The reason why a record cannot be adopted.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// The fleet's record under the same key differs from the folder's. It was not overwritten.
    #[error("{what} differs between the adopted folder and the fleet (etcd key {key})")]
    Differs {
        /// A description of the record.
        what: String,
        /// The key of the fleet's record in the coordinator.
        key: Key,
    },
    /// The single node and the fleet were last started with different templates for the texts of
    /// numbers, or the folder has no stored templates. The value lists the differences.
    #[error(
        "the [numbers] of the adopted node and of the fleet differ ({0}), so a text could be written for two numbers; \
         start a single node on the folder with the [numbers] of the fleet, stop it, and run this command again"
    )]
    OtherTemplates(String),
    /// A series would change its kind, because it has different kinds in the `[numbers]` settings
    /// of the single node and of the fleet.
    #[error(
        "the series {series} is of kind {own} in the folder, but of kind {there} in the [numbers] of the fleet: give it \
         the kind {own} there, restart the nodes, and run this command again"
    )]
    OtherKind {
        /// The series.
        series: SeriesName,
        /// The kind in the folder: `gapless` or `blocks`.
        own: String,
        /// The kind in the fleet.
        there: String,
    },
    /// The folder or the fleet's store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AdoptError {
    /// Returns the kind of failure.
    pub(crate) fn failure_kind(&self) -> FailureKind {
        match self {
            AdoptError::Differs { .. } => FailureKind::Damaged,
            AdoptError::OtherTemplates(_) | AdoptError::OtherKind { .. } => FailureKind::Disagrees,
            AdoptError::Store(error) => error.failure_kind(),
        }
    }
}

impl RecordAdopter {
    /// Creates an adopter, which copies records into a fleet's store. Each write fails if the
    /// fleet's agreement is no longer the one in `known`.
    pub(crate) fn new(
        coordinator: Arc<dyn Coordinator>,
        namespace: &Namespace,
        known: Arc<KnownFleet>,
    ) -> RecordAdopter {
        RecordAdopter {
            store: SharedStore::new(coordinator, Keys::of(namespace), known),
            is_trial: false,
        }
    }

    /// Returns an adopter that only reports differences and does not write.
    #[must_use]
    pub(crate) fn on_trial(self) -> RecordAdopter {
        RecordAdopter {
            is_trial: true,
            ..self
        }
    }

    /// Writes the fleet's agreement. `revision` is its current revision.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the agreement has changed, or if it may not have been written.
    pub(crate) fn write_meta(&self, value: Vec<u8>, revision: Revision) -> Result<(), StoreError> {
        let mut batch = AdoptedBatch::new(&self.store, self.is_trial);
        batch.update(self.store.keys.meta(), value, revision)?;
        batch.flush()
    }

    /// Copies a ledger into the fleet, with the idempotency keys that were recorded at `since` or
    /// later. `read` returns a page of the ledger's appends that follow an event.
    ///
    /// # Errors
    /// Returns [`AdoptError`] if the fleet's ledger differs, or if the fleet cannot be read or
    /// written.
    pub(crate) fn adopt_ledger(
        &self,
        ledger: &LedgerSummary,
        since: EventTime,
        read: &dyn Fn(Option<EventId>, usize) -> Result<Vec<StoredAppend>, StoreError>,
    ) -> Result<AdoptedCount, AdoptError> {
        let id = ledger.head.id.ledger();
        let key = self.store.keys.ledger(id);
        let found = self.store.read_key(key.clone())?;
        let revision = found.as_ref().map_or(Revision::ABSENT, |row| row.modified);
        let there = found.as_ref().map(ledger_of).transpose()?;
        let differs = |key: &Key| AdoptError::Differs {
            what: format!("ledger {id}"),
            key: key.clone(),
        };
        if there.is_some_and(|there| there.genesis != ledger.genesis) {
            return Err(differs(&key));
        }
        let known = there.map_or(0, |there| there.head.place);
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
            let commits = commits_of(&page, previous);
            previous = Some(last.head().id);
            for some in commits.chunks(ROWS_READ_MAX) {
                let (old, new): (Vec<&Commit>, Vec<&Commit>) =
                    some.iter().partition(|commit| commit.head().place <= known);
                for (commits, are_new) in [(old, false), (new, true)] {
                    let row = |commit: &&Commit| {
                        (
                            self.store.keys.event(commit.head().id),
                            commit_to_bytes(commit),
                        )
                    };
                    let rows: Vec<_> = commits.iter().map(row).collect();
                    batch
                        .create_missing(&rows, are_new)?
                        .map_or(Ok(()), |key| Err(differs(key)))?;
                    let cuts_a_row = |commit: &&&Commit| commit.appends[0].first_place <= known;
                    if let Some(cut) = commits.iter().find(|commit| are_new && cuts_a_row(commit)) {
                        return Err(differs(&self.store.keys.event(cut.head().id)));
                    }
                }
            }
            count.requests += self.adopt_requests(id, &requests, &mut batch)?;
        }
        if known >= ledger.head.place {
            count.found += 1;
        } else {
            let value = ledger_to_bytes(&key, ledger);
            batch.update(key, value, revision)?;
            count.written += 1;
        }
        batch.flush()?;
        Ok(count)
    }

    /// Adds each of `requests` to the batch, unless the fleet already has it. The fleet may have a
    /// later request with the same key, recorded more than 24 hours after this one, which is then
    /// kept. Fails if the fleet has a different request with the same key that was recorded within
    /// 24 hours of this one. Returns the number of `requests`.
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
                // The key was used again more than a day after its first use. Keep the later
                // request.
                Some(there) if done.recorded < remembered_since(there.recorded) => {}
                Some(there) if there.recorded < remembered_since(done.recorded) => {
                    batch.put_request(*done, revision)?
                }
                Some(_) => {
                    let what = format!("the request with an idempotency key to ledger {ledger}");
                    return Err(AdoptError::Differs {
                        what,
                        key: self.store.keys.request(done.key),
                    });
                }
            }
        }
        Ok(u64::try_from(requests.len()).expect("a page is short"))
    }

    /// Copies pairs of objects into the fleet, with their anchors and the anchors' report counts
    /// and external ids.
    ///
    /// Anchors that the fleet already has stay unchanged, with their report counts and external
    /// ids. A pair of the fleet may lack anchors of the folder, because the fleet removed them as
    /// too old before a restore. These are added, and the fleet's nodes remove them again.
    ///
    /// # Errors
    /// Returns [`AdoptError`] if an anchor that the fleet lacks is within two seconds of one that
    /// only the fleet has, because a report could join either. Also returns it if the fleet cannot
    /// be read or written. Other pairs may have been written before the error.
    pub(crate) fn adopt_pairs(&self, pairs: &[StoredPair]) -> Result<AdoptedCount, AdoptError> {
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
            let mut all = anchors_of(&found)?;
            let place = |anchor: &Anchor| (anchor.tca, anchor.rank);
            let there: BTreeSet<_> = all.iter().map(place).collect();
            let own: BTreeSet<_> = anchors.iter().map(|own| place(&own.anchor)).collect();
            let missing: BTreeSet<_> = own.difference(&there).copied().collect();
            let is_near = |(tca, _): &(Tca, u32)| {
                let (from, to) = tca.neighbourhood().into_inner();
                missing.range((from, 0)..=(to, u32::MAX)).next().is_some()
            };
            if there.difference(&own).any(is_near) {
                let what = format!(
                    "the conjunctions of {} and {} in {format}",
                    pair.primary, pair.secondary
                );
                return Err(AdoptError::Differs { what, key });
            }
            if missing.is_empty() {
                count.found += 1;
                continue;
            }
            for StoredAnchor {
                anchor,
                report_count,
                externals,
            } in anchors
            {
                if !missing.contains(&place(anchor)) {
                    continue;
                }
                all.push(*anchor);
                let key = keys.conjunction(format, (anchor.tca, *pair));
                let value = conjunction_to_bytes(&key, anchor.rank, report_count.as_ref());
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
            all.sort_by_key(|anchor| (anchor.rank, anchor.tca));
            let revision = found.first().map_or(Revision::ABSENT, |row| row.modified);
            let value = pair_to_bytes(&key, ADOPTED, &all);
            batch.update(key, value, revision)?;
            count.written += 1;
        }
        batch.flush()?;
        Ok(count)
    }
}

/// Returns the request of an append. Returns `None` if the append has no idempotency key, or was
/// recorded before `since`, so that its key has expired.
fn remembered(append: &StoredAppend, since: EventTime) -> Option<DoneRequest> {
    let mark = append.mark.filter(|_| append.recorded >= since)?;
    Some(DoneRequest {
        key: mark.key,
        recorded: append.recorded,
        last: append.head().id,
    })
}

/// Converts appends of a ledger to rows, with several appends in each row. `previous` is the event
/// before the first append, or `None` at the beginning of the ledger.
fn commits_of(appends: &[StoredAppend], previous: Option<EventId>) -> Vec<Commit> {
    let (mut commits, mut shared, mut len) = (Vec::new(), Vec::new(), 0);
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
            commits.push(commit);
            len = 0;
        }
    }
    commits
}
