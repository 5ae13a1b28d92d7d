//! Imports rows from the journals of nodes into a coordinator that has lost these rows. A row is
//! written only if it continues the stored data. The events of ledgers are written unchanged.
//!
//! Each transaction writes commits of one ledger together with the ledger's new head, and compares
//! the previous head. So no ledger gets a gap if the import is interrupted, and another run
//! continues the import.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::chain_choice::ChainChoice;
use super::journal_copies::{JournalCopies, JournalError, JournalledAnchor};
use super::journalled_commit::JournalledCommit;
use super::reimported::{LostAppend, LostConjunction, Reimported};
use crate::coordinator::{Compare, Coordinator, Range, Revision, Transaction, Write};
use crate::records::adoption::write_lists;
use crate::records::conjunctions::anchors_of;
use crate::records::keys::Keys;
use crate::records::known_fleet::{AgreedMeta, FleetEra, KnownFleet};
use crate::records::ledgers::ledger_of;
use crate::records::requests::request_of;
use crate::records::rows::{
    ANCHOR_LEN, Attempt, Commit, conjunction_to_bytes, ledger_to_bytes, pair_to_bytes,
    request_to_bytes,
};
use crate::records::shared_store::{BYTES_MAX, NotWritten, OPERATIONS_MAX, SharedStore, Written};
use crate::records::transaction_draft::{REQUESTS_MAX, has_landed};
use idmint_records::conjunction::Anchor;
use idmint_records::ledger::{EventTime, LedgerId};
use idmint_storage::Namespace;
use idmint_storage::{DoneRequest, LedgerSummary, WrittenDay, remembered_among, remembered_since};
use idmint_storage::{FailureKind, StoreError};

/// The maximum number of journalled commits that are looked up in the coordinator at a time.
const ROWS_READ_MAX: usize = 100;

/// The maximum number of pairs of objects whose anchors are read and written together.
const PAIRS_MAX: usize = 20;

/// The attempt number in the rows that an import builds itself: anchors, issued and void numbers,
/// and closed series. It is constant, so that a repeated import writes the same bytes.
pub(super) const IMPORTED: Attempt = Attempt(0);

/// An import of journalled rows into a coordinator.
pub struct JournalImport<'a> {
    pub(super) store: SharedStore,
    pub(super) copies: &'a JournalCopies,
    /// Idempotency keys that were recorded before this time are not imported. They have expired,
    /// and callers may use them for other requests.
    since: EventTime,
}

/// The error that interrupted an import. The rows written so far are consistent, and another run
/// continues the import.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A journal can no longer be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The coordinator failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Rows of a ledger, and idempotency keys, that one transaction of the import writes. Each row has
/// the appends of one commit. All of them together stay within the size limits of a transaction.
#[derive(Default)]
struct Part {
    rows: Vec<(Commit, Vec<u8>)>,
    requests: Vec<DoneRequest>,
    bytes: usize,
}

impl<'a> JournalImport<'a> {
    /// Creates an import of `copies` into `coordinator`. The import writes only while the agreement
    /// `meta` has the revision `agreed`.
    pub fn new(
        coordinator: Arc<dyn Coordinator>,
        namespace: &Namespace,
        agreed: Revision,
        copies: &'a JournalCopies,
    ) -> JournalImport<'a> {
        let known = Arc::new(KnownFleet::agreeing(AgreedMeta {
            revision: agreed,
            ..AgreedMeta::default()
        }));
        let since = remembered_among(copies.recorded());
        JournalImport {
            store: SharedStore::new(coordinator, Keys::of(namespace), known),
            copies,
            since,
        }
    }

    /// Writes all journalled rows that the coordinator lacks, if they continue the stored data.
    /// Returns the counts of these rows, and lists of the rows that are lost.
    ///
    /// # Errors
    /// Returns [`ImportError`] if a journal or the coordinator fails.
    pub fn run(&self) -> Result<Reimported, ImportError> {
        let mut done = Reimported {
            damaged: self.copies.damaged.clone(),
            ..Reimported::default()
        };
        for ledger in self.copies.ledgers.keys() {
            self.import_ledger(*ledger, &mut done)?;
        }
        self.import_pairs(&mut done)?;
        self.import_numbers(&mut done)?;
        Ok(done)
    }

    fn import_ledger(&self, ledger: LedgerId, done: &mut Reimported) -> Result<(), ImportError> {
        let commits = &self.copies.ledgers[&ledger];
        let there = self.ledger(ledger)?.1;
        let ChainChoice { next, others } = ChainChoice::of(
            there.map(|there| (there.head.id, there.head.place)),
            commits,
        );
        if !next.is_empty() {
            done.ledgers += 1;
        }
        let (mut part, mut head) = (Part::default(), there);
        for commit in &next {
            let (commit, row) = self.copies.row(commit.last, commit.row)?;
            let mut requests = requests_of(&commit, self.since);
            if !part.has_room(&row, &requests) && !part.rows.is_empty() {
                head = Some(self.write(ledger, head, std::mem::take(&mut part), done)?);
            }
            if !part.has_room(&row, &requests) {
                self.write_requests(&std::mem::take(&mut requests), done)?;
            }
            part.add(commit, row, requests);
        }
        if !part.rows.is_empty() {
            head = Some(self.write(ledger, head, part, done)?);
        }
        self.report_lost(&others, head, done)
    }

    /// Reads the row of a ledger from the coordinator. Returns its revision and content, or
    /// [`Revision::ABSENT`] and `None` if the ledger does not exist.
    fn ledger(&self, ledger: LedgerId) -> Result<(Revision, Option<LedgerSummary>), StoreError> {
        let entry = self.store.read_key(self.store.keys.ledger(ledger))?;
        let revision = entry
            .as_ref()
            .map_or(Revision::ABSENT, |entry| entry.modified);
        Ok((revision, entry.as_ref().map(ledger_of).transpose()?))
    }

    /// Writes commits that follow the last event of a ledger. `before` is the ledger with that
    /// event. Returns the ledger with its new last event.
    fn write(
        &self,
        ledger: LedgerId,
        before: Option<LedgerSummary>,
        Part { rows, requests, .. }: Part,
        done: &mut Reimported,
    ) -> Result<LedgerSummary, ImportError> {
        let (revision, there) = self.ledger(ledger)?;
        if there != before {
            return Err(overtaken().into());
        }
        let mut transaction = Transaction::default();
        let first = rows.first().expect("a part has a commit");
        let last = rows.last().expect("a part has a commit");
        let genesis = before.map_or(first.0.appends[0].entries[0].id, |before| before.genesis);
        let summary = LedgerSummary {
            genesis,
            head: last.0.head(),
        };
        let key = self.store.keys.ledger(ledger);
        transaction
            .compare
            .push(Compare::Modified(key.clone(), revision));
        transaction
            .write
            .push(Write::put(key.clone(), ledger_to_bytes(&key, &summary)));
        for (commit, row) in &rows {
            let key = self.store.keys.event(commit.head().id);
            transaction
                .compare
                .push(Compare::Created(key.clone(), Revision::ABSENT));
            transaction.otherwise.push(Range::one(key.clone()));
            transaction.write.push(Write::put(key, row.clone()));
        }
        let written = self.put_requests(&requests, &mut transaction)?;
        self.commit(&transaction)?;
        done.events += rows
            .iter()
            .map(|(commit, _)| count(commit.links()))
            .sum::<u64>();
        done.requests += written;
        Ok(summary)
    }

    /// Writes the requests of the appends in one row. There may be too many for one transaction,
    /// for example after an adoption. They are written before the row, because a repeated import
    /// writes only the requests of rows that are still missing.
    fn write_requests(
        &self,
        requests: &[DoneRequest],
        done: &mut Reimported,
    ) -> Result<(), ImportError> {
        let mut rest = requests;
        while !rest.is_empty() {
            let mut keys = BTreeSet::new();
            let fits = rest.iter().take(REQUESTS_MAX);
            let count = fits.take_while(|done| keys.insert(done.key.0)).count();
            let (some, others) = rest.split_at(count);
            let mut transaction = Transaction::default();
            done.requests += self.put_requests(some, &mut transaction)?;
            let compared = transaction.compare.iter().take(1);
            transaction.otherwise = compared.map(|one| Range::one(one.key().clone())).collect();
            if !transaction.write.is_empty() {
                self.commit(&transaction)?;
            }
            rest = others;
        }
        Ok(())
    }

    /// Adds each request to the transaction, unless the coordinator has one with the same key that
    /// was still valid when this one was recorded. Returns the number of added requests.
    fn put_requests(
        &self,
        requests: &[DoneRequest],
        transaction: &mut Transaction,
    ) -> Result<u64, StoreError> {
        let ranges: Vec<Range> = requests
            .iter()
            .map(|done| Range::one(self.store.keys.request(done.key)))
            .collect();
        let mut put_now = Vec::new();
        for (done, found) in requests.iter().zip(self.store.read(&ranges)?) {
            let there = found
                .first()
                .map(|entry| request_of(entry, done.key))
                .transpose()?;
            let revision = found
                .first()
                .map_or(Revision::ABSENT, |entry| entry.modified);
            let is_free =
                there.is_none_or(|there| there.recorded < remembered_since(done.recorded));
            if is_free {
                let key = self.store.keys.request(done.key);
                transaction
                    .compare
                    .push(Compare::Modified(key.clone(), revision));
                transaction
                    .write
                    .push(Write::put(key.clone(), request_to_bytes(&key, done)));
                put_now.push(*done);
            }
        }
        write_lists(&self.store.keys, &put_now, transaction);
        Ok(count(put_now))
    }

    /// Looks up the commits `others` in the coordinator, and adds the missing ones to the lost
    /// appends in `done`. `head` is the summary of the ledger, with its last event.
    fn report_lost(
        &self,
        others: &[JournalledCommit],
        head: Option<LedgerSummary>,
        done: &mut Reimported,
    ) -> Result<(), ImportError> {
        let head = head.map_or(0, |ledger| ledger.head.place);
        for some in others.chunks(ROWS_READ_MAX) {
            let ranges: Vec<Range> = some
                .iter()
                .map(|commit| Range::one(self.store.keys.event(commit.last)))
                .collect();
            for (commit, found) in some.iter().zip(self.store.read(&ranges)?) {
                if found.is_empty() {
                    let (row, _) = self.copies.row(commit.last, commit.row)?;
                    let events = row.links().map(|link| link.id).collect();
                    let is_replaced = commit.first_place <= head;
                    done.lost.push(LostAppend {
                        first_place: commit.first_place,
                        events,
                        is_replaced,
                    });
                }
            }
        }
        Ok(())
    }

    /// Adds the journalled anchors that the coordinator lacks, for all pairs of objects. If not all
    /// anchors of a pair fit into a transaction, the next transaction adds the others.
    fn import_pairs(&self, done: &mut Reimported) -> Result<(), ImportError> {
        let mut waiting: VecDeque<_> = self.copies.pairs.iter().collect();
        while !waiting.is_empty() {
            let keys = &self.store.keys;
            let some: Vec<_> = waiting.drain(..waiting.len().min(PAIRS_MAX)).collect();
            let ranges: Vec<Range> = some
                .iter()
                .map(|((format, pair), _)| Range::one(keys.pair(format, *pair)))
                .collect();
            let mut transaction = Transaction::default();
            for (of, found) in some.into_iter().zip(self.store.read(&ranges)?) {
                let ((format, pair), journalled) = of;
                let (mut anchors, before) = (
                    anchors_of(&found)?,
                    found.first().map_or(Revision::ABSENT, |e| e.modified),
                );
                let there = anchors.len();
                let lost = missing(journalled, &mut anchors);
                // Reserve one operation for the row of the pair.
                let mut room = OPERATIONS_MAX.saturating_sub(transaction.write.len() + 1);
                let size = transaction.size() + ANCHOR_LEN * anchors.len();
                if size > BYTES_MAX && !transaction.write.is_empty() {
                    room = 0;
                }
                if anchors.len() - there > room {
                    anchors.truncate(there + room);
                    waiting.push_front(of);
                } else {
                    let lost = lost.into_iter().map(|anchor| LostConjunction {
                        format: format.clone(),
                        pair: *pair,
                        anchor,
                    });
                    done.lost_conjunctions.extend(lost);
                }
                let new = &anchors[there..];
                if new.is_empty() {
                    continue;
                }
                let key = keys.pair(format, *pair);
                transaction
                    .compare
                    .push(Compare::Modified(key.clone(), before));
                transaction.otherwise.push(Range::one(key.clone()));
                for anchor in new {
                    let key = keys.conjunction(format, (anchor.tca, *pair));
                    transaction.write.push(Write::put(
                        key.clone(),
                        conjunction_to_bytes(&key, anchor.rank, None),
                    ));
                }
                transaction.write.push(Write::put(
                    key.clone(),
                    pair_to_bytes(&key, IMPORTED, &anchors),
                ));
                done.conjunctions += count(new);
            }
            if !transaction.write.is_empty() {
                self.commit(&transaction)?;
            }
        }
        Ok(())
    }

    pub(super) fn commit(&self, transaction: &Transaction) -> Result<(), StoreError> {
        match self.store.write(transaction.clone(), |stored| {
            has_landed(transaction, stored)
        }) {
            Ok(Written::Committed(_)) => Ok(()),
            Ok(Written::Stale) => Err(overtaken()),
            Err(NotWritten::Refused(error) | NotWritten::Unknown(error)) => Err(error),
        }
    }
}

impl Part {
    fn has_room(&self, row: &[u8], requests: &[DoneRequest]) -> bool {
        // One more operation for the ledger, and one for the row.
        let operations = self.rows.len() + self.requests.len() + requests.len() + 2;
        let all = || self.requests.iter().chain(requests);
        let days: BTreeSet<WrittenDay> = all().map(|done| WrittenDay::of(done.recorded)).collect();
        // If the clocks of nodes differ, an idempotency key may occur twice within a day. A
        // transaction cannot write a key twice, so the second request must go into another one.
        let keys: BTreeSet<u128> = all().map(|done| done.key.0).collect();
        keys.len() == all().count()
            && operations + days.len() <= OPERATIONS_MAX
            && keys.len() <= REQUESTS_MAX
            && self.bytes + row.len() <= BYTES_MAX
    }

    fn add(&mut self, commit: Commit, row: Vec<u8>, requests: Vec<DoneRequest>) {
        // Estimate 200 bytes for the row's key, and 300 bytes for each request that is written with
        // the row.
        self.bytes += row.len() + 200 + 300 * requests.len();
        self.rows.push((commit, row));
        self.requests.extend(requests);
    }
}

/// Returns the requests of a commit that were recorded at `since` or later. Earlier idempotency
/// keys have expired, and callers may use them for other requests.
fn requests_of(commit: &Commit, since: EventTime) -> Vec<DoneRequest> {
    let done = commit
        .appends
        .iter()
        .filter(|append| append.recorded >= since)
        .filter_map(|append| {
            let key = append.mark?.key;
            Some(DoneRequest {
                key,
                recorded: append.recorded,
                last: append.head().id,
            })
        });
    done.collect()
}

/// Adds the missing journalled anchors to `there`, those of the latest era first. Returns the
/// anchors that cannot be added, because another anchor is so close in time that both would be the
/// same conjunction. Two such anchors are both added if they come from the same journalled row.
fn missing(journalled: &[JournalledAnchor], there: &mut Vec<Anchor>) -> Vec<Anchor> {
    let mut lost = Vec::new();
    let eras: BTreeSet<FleetEra> = journalled.iter().map(|journalled| journalled.era).collect();
    for era in eras.into_iter().rev() {
        for JournalledAnchor { anchor, beside, .. } in
            journalled.iter().filter(|journalled| journalled.era == era)
        {
            let near = anchor.tca.reach();
            if there.iter().any(|other| other.tca == anchor.tca) {
                continue;
            }
            match there
                .iter()
                .any(|other| near.contains(&other.tca) && !beside.contains(other))
            {
                true => lost.push(*anchor),
                false => there.push(*anchor),
            }
        }
    }
    lost
}

pub(super) fn overtaken() -> StoreError {
    let error = "another process writes records to the fleet; stop the nodes that were started, and run this again";
    StoreError::new(FailureKind::Unreachable, error)
}

fn count(items: impl IntoIterator) -> u64 {
    u64::try_from(items.into_iter().count()).expect("a count")
}
