//! What journals have and a coordinator has forgotten, written to it: as it was, and only as far as it continues what is there.
//!
//! Each transaction writes commits of one ledger with its head behind them, and compares the head before them. So a ledger is
//! whole whenever this is broken off, and whoever does it again goes on from what is there.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::chain_choice::ChainChoice;
use super::journal_copies::{JournalCopies, JournalError, JournalledAnchor};
use super::journalled_commit::JournalledCommit;
use super::reimported::{LostAppend, LostConjunction, Reimported};
use crate::conjunction::Anchor;
use crate::ledger::{EventTime, LedgerId};
use crate::storage::coordinator::{Compare, Coordinator, Range, Revision, Transaction, Write};
use crate::storage::etcd::Namespace;
use crate::storage::failure::{FailureKind, StoreError};
use crate::storage::fleet::adoption::write_lists;
use crate::storage::fleet::conjunctions::anchors_of;
use crate::storage::fleet::keys::Keys;
use crate::storage::fleet::known_fleet::{AgreedMeta, FleetEra, KnownFleet};
use crate::storage::fleet::ledgers::ledger_of;
use crate::storage::fleet::requests::request_of;
use crate::storage::fleet::rows::{
    Attempt, Commit, conjunction_to_bytes, ledger_to_bytes, pair_to_bytes, request_to_bytes,
};
use crate::storage::fleet::shared_store::{
    BYTES_MAX, NotWritten, OPERATIONS_MAX, SharedStore, Written,
};
use crate::storage::fleet::transaction_draft::{REQUESTS_MAX, has_landed};
use crate::storage::records::{DoneRequest, LedgerSummary, remembered_among, remembered_since};

/// Rows that are looked for at once.
const ROWS_READ_MAX: usize = 100;

/// Pairs that are written at once.
const PAIRS_MAX: usize = 20;

/// Rows of a ledger and pairs have this attempt where they are put together anew: written again they are the same bytes.
pub(super) const IMPORTED: Attempt = Attempt(0);

/// Writes what journals have to a coordinator.
pub struct JournalImport<'a> {
    pub(super) store: SharedStore,
    pub(super) copies: &'a JournalCopies,
    /// Keys of requests before that are free again.
    since: EventTime,
}

/// Why an import was broken off. What was written is whole; run again it goes on.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A journal cannot be read any more.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The coordinator refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Commits that go into one transaction, as far as it has room.
#[derive(Default)]
struct Part {
    rows: Vec<(Commit, Vec<u8>)>,
    requests: Vec<DoneRequest>,
    bytes: usize,
}

impl<'a> JournalImport<'a> {
    /// Will write to this coordinator, as long as what the fleet has agreed on there is of this revision.
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

    /// Writes all that continues what is there, and says what does not.
    ///
    /// # Errors
    /// [`ImportError`].
    pub fn run(&self) -> Result<Reimported, ImportError> {
        let mut done = Reimported::default();
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
            let requests = requests_of(&commit, self.since);
            if !part.has_room(&row, &requests) {
                head = Some(self.write(ledger, head, std::mem::take(&mut part), done)?);
            }
            part.add(commit, row, requests);
        }
        if !part.rows.is_empty() {
            head = Some(self.write(ledger, head, part, done)?);
        }
        self.report_lost(&others, head, done)
    }

    /// A ledger as it is there, and the revision that wrote it.
    fn ledger(&self, ledger: LedgerId) -> Result<(Revision, Option<LedgerSummary>), StoreError> {
        let entry = self.store.read_key(self.store.keys.ledger(ledger))?;
        let revision = entry
            .as_ref()
            .map_or(Revision::ABSENT, |entry| entry.modified);
        Ok((revision, entry.as_ref().map(ledger_of).transpose()?))
    }

    /// Writes commits that stand behind this head, and returns the head after them.
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

    /// Puts the requests whose keys are not in use for another one, and says how many.
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

    /// Says of commits that continue nothing whether they are lost, where the ledger ends with this head.
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

    fn import_pairs(&self, done: &mut Reimported) -> Result<(), ImportError> {
        let pairs: Vec<_> = self.copies.pairs.iter().collect();
        for some in pairs.chunks(PAIRS_MAX) {
            let keys = &self.store.keys;
            let ranges: Vec<Range> = some
                .iter()
                .map(|((format, pair), _)| Range::one(keys.pair(format, *pair)))
                .collect();
            let mut transaction = Transaction::default();
            for (((format, pair), journalled), found) in some.iter().zip(self.store.read(&ranges)?)
            {
                let (mut anchors, before) = (
                    anchors_of(&found)?,
                    found.first().map_or(Revision::ABSENT, |e| e.modified),
                );
                let there = anchors.len();
                for anchor in missing(journalled, &mut anchors) {
                    done.lost_conjunctions.push(LostConjunction {
                        format: format.clone(),
                        pair: *pair,
                        anchor,
                    });
                }
                let new = &anchors[there..];
                if new.is_empty() {
                    continue;
                }
                if transaction.write.len() + new.len() + 2 > OPERATIONS_MAX {
                    self.commit(&std::mem::take(&mut transaction))?;
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
        // The ledger, a list for each of two days, and the row.
        let operations = self.rows.len() + self.requests.len() + requests.len() + 4;
        // A key that came twice within a day, by clocks that differ.
        let is_twice = |done: &DoneRequest| self.requests.iter().any(|other| other.key == done.key);
        let comes_twice = requests.iter().any(is_twice);
        let requests = self.requests.len() + requests.len();
        self.rows.is_empty()
            || !comes_twice
                && operations <= OPERATIONS_MAX
                && requests <= REQUESTS_MAX
                && self.bytes + row.len() <= BYTES_MAX
    }

    fn add(&mut self, commit: Commit, row: Vec<u8>, requests: Vec<DoneRequest>) {
        // A row, its key, and what comes with it.
        self.bytes += row.len() + 200 + 300 * requests.len();
        self.rows.push((commit, row));
        self.requests.extend(requests);
    }
}

/// The requests of a commit whose keys are not free again.
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

/// Adds the anchors that are not there, those of the last era first, and returns those that cannot be added: another one is
/// within their reach that did not stand there beside them.
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
    let error = "somebody else writes records to the fleet; end the nodes that were started, and run it again";
    StoreError::new(FailureKind::Unreachable, error)
}

fn count(items: impl IntoIterator) -> u64 {
    u64::try_from(items.into_iter().count()).expect("a count")
}
