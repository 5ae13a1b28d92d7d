//! Builds one transaction from several plans. Each plan adds or changes a record, and may depend on
//! the plans before it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use super::conjunctions::anchors_of;
use super::keys::Keys;
use super::ledgers::ledger_of;
use super::numbers::{NumberDraft, NumbersNeed, series_of_bytes};
use super::requests::request_of;
use super::rows::{
    Attempt, Commit, commit_to_bytes, conjunction_to_bytes, ledger_to_bytes, pair_to_bytes,
    request_list_to_bytes, request_to_bytes,
};
use super::shared_store::{BYTES_MAX, OPERATIONS_MAX, SharedStore};
use crate::coordinator::{Compare, Key, KeyValue, Range, Revision, Snapshot, Transaction, Write};
use idmint_records::conjunction::{Anchor, AnchorPlan, Pair};
use idmint_records::ledger::{AppendPlan, EventId, KeyHash, LedgerId};
use idmint_storage::StoreError;
use idmint_storage::rows::append_row;
use idmint_storage::{DoneRequest, LedgerSummary, RecordPlan, StoredAppend, WrittenDay};

/// The assumed size in bytes of a row with the anchors of a pair, unless the row is known to be
/// longer. It is enough for about a thousand anchors.
pub(super) const PAIR_LEN: usize = 12_000;

/// The maximum number of idempotency keys that a transaction records. They are listed by day, and
/// one transaction must be able to delete such a list together with all its keys.
pub(super) const REQUESTS_MAX: usize = 100;

/// Returns how many of the first plans fit into one transaction. The result is at least 1, unless
/// `plans` is empty. `pair_len` returns the size of a pair's row.
pub(super) fn fitting(plans: &[RecordPlan], pair_len: impl Fn(&str, Pair) -> usize) -> usize {
    let mut need = Need::default();
    let fits = plans.iter().take_while(|plan| {
        need.add(plan, &pair_len);
        need.fits()
    });
    fits.count().max(plans.len().min(1))
}

/// An estimate of the operations and bytes that a transaction needs for a list of plans.
#[derive(Default)]
struct Need<'a> {
    ledgers: BTreeSet<LedgerId>,
    pairs: BTreeSet<(&'a str, Pair)>,
    days: BTreeSet<WrittenDay>,
    requests: usize,
    anchors: usize,
    numbers: NumbersNeed<'a>,
    bytes: usize,
}

impl<'a> Need<'a> {
    fn add(&mut self, plan: &'a RecordPlan, pair_len: impl Fn(&str, Pair) -> usize) {
        match plan {
            RecordPlan::Append(plan) => {
                self.ledgers.insert(plan.ledger());
                self.bytes += append_row::to_bytes(&StoredAppend::of(plan)).len() + 500;
                if plan.mark.is_some() {
                    self.requests += 1;
                    self.days.insert(WrittenDay::of(plan.recorded));
                }
            }
            RecordPlan::Anchor(plan) => {
                self.anchors += 1;
                self.bytes += 500;
                if self.pairs.insert((&plan.format, plan.pair)) {
                    self.bytes += pair_len(&plan.format, plan.pair);
                }
            }
            RecordPlan::Number(plan) => self.bytes += self.numbers.add_number(plan),
            RecordPlan::Void(plan) => self.bytes += self.numbers.add_void(plan),
            RecordPlan::Close(plan) => self.bytes += self.numbers.add_close(plan),
        }
    }

    fn fits(&self) -> bool {
        let (ledgers, pairs) = (self.ledgers.len(), self.pairs.len());
        let numbers = self.numbers.rows();
        let written =
            2 * ledgers + self.requests + self.days.len() + pairs + self.anchors + numbers;
        let compared = 2 * ledgers + self.requests + pairs + numbers;
        let is_short = written <= OPERATIONS_MAX && compared <= OPERATIONS_MAX;
        is_short && self.requests <= REQUESTS_MAX && self.bytes <= BYTES_MAX
    }
}

/// A transaction under construction, based on the stored rows.
pub(super) struct TransactionDraft<'a> {
    keys: &'a Keys,
    attempt: Attempt,
    ledgers: BTreeMap<LedgerId, OfLedger>,
    requests: BTreeMap<KeyHash, OfRequest>,
    pairs: BTreeMap<(String, Pair), OfPair>,
    numbers: NumberDraft,
    /// The stored rows that directly precede the new events, numbers and closings of series.
    predecessors: Vec<KeyValue>,
}

/// The stored state of a ledger, and the appends that the transaction adds to it.
struct OfLedger {
    revision: Revision,
    before: Option<LedgerSummary>,
    previous: Option<EventId>,
    appends: Vec<StoredAppend>,
}

/// The request that is stored under an idempotency key (`before`), and the one that the transaction
/// stores under it (`done`).
struct OfRequest {
    revision: Revision,
    before: Option<DoneRequest>,
    done: Option<DoneRequest>,
}

/// The anchors of a pair of objects after the transaction. The last `new` of them are added by the
/// transaction.
struct OfPair {
    revision: Revision,
    anchors: Vec<Anchor>,
    new: usize,
}

impl<'a> TransactionDraft<'a> {
    /// Reads the rows that the plans are based on. Also reads the rows that directly precede the
    /// new events and numbers, if the journal may lack them. `lacks` returns `true` for the key of
    /// such a row.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the rows cannot be read.
    pub(super) fn read(
        store: &'a SharedStore,
        attempt: Attempt,
        plans: &[RecordPlan],
        lacks: &dyn Fn(&str) -> bool,
    ) -> Result<TransactionDraft<'a>, StoreError> {
        let keys = &store.keys;
        let (mut ledgers, mut requests, mut pairs) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for plan in plans {
            match plan {
                RecordPlan::Append(plan) => {
                    ledgers.insert(plan.ledger());
                    requests.extend(plan.mark.map(|mark| mark.key));
                }
                RecordPlan::Anchor(plan) => drop(pairs.insert((plan.format.clone(), plan.pair))),
                RecordPlan::Number(_) | RecordPlan::Void(_) | RecordPlan::Close(_) => {}
            }
        }
        let of_ledgers = ledgers
            .iter()
            .map(|ledger| Range::one(keys.ledger(*ledger)));
        let of_requests = requests.iter().map(|key| Range::one(keys.request(*key)));
        let of_pairs = pairs
            .iter()
            .map(|(format, pair)| Range::one(keys.pair(format, *pair)));
        let mut numbers = NumberDraft::of(plans);
        let before = predecessors(keys, plans)
            .into_iter()
            .chain(NumberDraft::predecessors(keys, plans));
        let before = before.filter(|key| lacks(key)).map(Range::one);
        let of_numbers = numbers.ranges(keys);
        let ranges: Vec<Range> = of_ledgers
            .chain(of_requests)
            .chain(of_pairs)
            .chain(of_numbers)
            .chain(before)
            .collect();
        let mut found = store.read(&ranges)?.into_iter();
        let mut next = || found.next().expect("there is an answer to each range");
        let mut round = TransactionDraft {
            keys,
            attempt,
            ledgers: BTreeMap::new(),
            requests: BTreeMap::new(),
            pairs: BTreeMap::new(),
            numbers: NumberDraft::default(),
            predecessors: Vec::new(),
        };
        for ledger in ledgers {
            let found = next();
            let before = found.first().map(ledger_of).transpose()?;
            let of_ledger = OfLedger {
                revision: revision_of(&found),
                before,
                previous: None,
                appends: Vec::new(),
            };
            round.ledgers.insert(ledger, of_ledger);
        }
        for key in requests {
            let found = next();
            let before = found
                .first()
                .map(|entry| request_of(entry, key))
                .transpose()?;
            round.requests.insert(
                key,
                OfRequest {
                    revision: revision_of(&found),
                    before,
                    done: None,
                },
            );
        }
        for pair in pairs {
            let found = next();
            let of_pair = OfPair {
                revision: revision_of(&found),
                anchors: anchors_of(&found)?,
                new: 0,
            };
            round.pairs.insert(pair, of_pair);
        }
        numbers.take(keys, || next().into_iter().next())?;
        if numbers.finds_hold() {
            store.may_hold.store(true, Ordering::Relaxed);
        }
        round.numbers = numbers;
        round.predecessors = found.flatten().collect();
        Ok(round)
    }

    /// Adds a plan to this draft. Returns `false` if the plan is based on outdated rows. Also
    /// returns `false` if its series is held, unless the plan resumes the series or voids a number.
    /// The draft must then not be committed.
    #[must_use]
    pub(super) fn add(&mut self, plan: &RecordPlan) -> bool {
        match plan {
            RecordPlan::Append(plan) => self.add_append(plan),
            RecordPlan::Anchor(plan) => self.add_anchor(plan),
            RecordPlan::Number(plan) => self.numbers.add_number(plan),
            RecordPlan::Void(plan) => self.numbers.add_void(plan),
            RecordPlan::Close(plan) => self.numbers.add_close(plan),
        }
    }

    fn add_append(&mut self, plan: &AppendPlan) -> bool {
        let of_ledger = self
            .ledgers
            .get_mut(&plan.ledger())
            .expect("its ledger was read");
        let stored = of_ledger.before.map(|ledger| ledger.head);
        let head = of_ledger
            .appends
            .last()
            .map_or(stored, |append| Some(append.head()));
        if head != plan.before {
            return false;
        }
        of_ledger.previous.get_or_insert(plan.previous());
        of_ledger.appends.push(StoredAppend::of(plan));
        let Some(mark) = plan.mark else { return true };
        let of_request = self.requests.get_mut(&mark.key).expect("its key was read");
        of_request.done = DoneRequest::of(&RecordPlan::Append(plan.clone()));
        // The plan is valid only if its idempotency key is still unused.
        of_request.before.is_none()
    }

    fn add_anchor(&mut self, plan: &AnchorPlan) -> bool {
        let AnchorPlan {
            format,
            pair,
            anchor,
            free,
        } = plan;
        let of_pair = self
            .pairs
            .get_mut(&(format.clone(), *pair))
            .expect("its pair was read");
        let is_free = free.iter().all(|times| {
            !of_pair
                .anchors
                .iter()
                .any(|other| times.contains(&other.tca))
        });
        let around = anchor.tca.neighbourhood();
        let near: Vec<Anchor> = of_pair
            .anchors
            .iter()
            .copied()
            .filter(|other| around.contains(&other.tca))
            .collect();
        of_pair.anchors.push(*anchor);
        of_pair.new += 1;
        is_free && Anchor::create(anchor.tca, &near) == *anchor
    }

    /// Returns the transaction that writes all plans.
    pub(super) fn transaction(&self) -> Transaction {
        let mut transaction = Transaction::default();
        let mut days: BTreeMap<WrittenDay, (EventId, Vec<KeyHash>)> = BTreeMap::new();
        for (ledger, of_ledger) in &self.ledgers {
            self.write_ledger(*ledger, of_ledger, &mut transaction);
        }
        for (hash, of_request) in &self.requests {
            let done = of_request.done.expect("its plan was added");
            let key = self.keys.request(*hash);
            transaction
                .compare
                .push(Compare::Modified(key.clone(), of_request.revision));
            transaction
                .write
                .push(Write::put(key.clone(), request_to_bytes(&key, &done)));
            days.entry(WrittenDay::of(done.recorded))
                .or_insert((done.last, Vec::new()))
                .1
                .push(*hash);
        }
        for (day, (last, hashes)) in days {
            let key = self.keys.request_day(day, last);
            transaction.write.push(Write::put(
                key.clone(),
                request_list_to_bytes(&key, &hashes),
            ));
        }
        for ((format, pair), of_pair) in &self.pairs {
            let key = self.keys.pair(format, *pair);
            transaction
                .compare
                .push(Compare::Modified(key.clone(), of_pair.revision));
            transaction.otherwise.push(Range::one(key.clone()));
            transaction.write.push(Write::put(
                key.clone(),
                pair_to_bytes(&key, self.attempt, &of_pair.anchors),
            ));
            for anchor in &of_pair.anchors[of_pair.anchors.len() - of_pair.new..] {
                let key = self.keys.conjunction(format, (anchor.tca, *pair));
                transaction.write.push(Write::put(
                    key.clone(),
                    conjunction_to_bytes(&key, anchor.rank, None),
                ));
            }
        }
        self.numbers
            .write(self.keys, self.attempt, &mut transaction);
        transaction
    }

    /// Returns the stored rows that directly precede the new events, numbers and closings of
    /// series, and the rows with forms of numbers. Rows that the journal already has are left out
    /// if they were not read.
    pub(super) fn predecessors(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.predecessors
            .iter()
            .chain(self.numbers.form_rows())
            .map(|entry| (entry.key.as_str(), entry.value.as_slice()))
    }

    fn write_ledger(&self, ledger: LedgerId, of_ledger: &OfLedger, transaction: &mut Transaction) {
        let previous = of_ledger.previous.expect("a plan of it was added");
        let commit = Commit {
            attempt: self.attempt,
            previous,
            appends: of_ledger.appends.clone(),
        };
        let genesis = of_ledger
            .before
            .map_or(commit.appends[0].entries[0].id, |before| before.genesis);
        let (key, event) = (self.keys.ledger(ledger), self.keys.event(commit.head().id));
        transaction
            .compare
            .push(Compare::Modified(key.clone(), of_ledger.revision));
        transaction
            .compare
            .push(Compare::Created(event.clone(), Revision::ABSENT));
        transaction.otherwise.push(Range::one(event.clone()));
        let summary = LedgerSummary {
            genesis,
            head: commit.head(),
        };
        transaction
            .write
            .push(Write::put(key.clone(), ledger_to_bytes(&key, &summary)));
        transaction
            .write
            .push(Write::put(event, commit_to_bytes(&commit)));
    }
}

/// Returns the rows of a transaction that are journalled after its commit: events, anchors, numbers
/// and their forms, void numbers and closed series. All other rows can be derived from these.
/// Deletions are not journalled.
pub(super) fn journalled<'t>(
    keys: &'t Keys,
    transaction: &'t Transaction,
) -> impl Iterator<Item = (&'t str, &'t [u8])> {
    let is_kept = |key: &str, value: &[u8]| {
        let is_record = keys.event_of(key).is_some() || keys.pair_of(key).is_some();
        let is_number = keys.numbers_of(key).is_some() || keys.void_of(key).is_some();
        is_record || is_number || keys.form_of(key).is_some() || is_closed(keys, key, value)
    };
    transaction
        .write
        .iter()
        .filter_map(move |write| match write {
            Write::Put { key, value, .. } if is_kept(key, value) => {
                Some((key.as_str(), value.as_slice()))
            }
            Write::Put { .. } | Write::Delete(_) => None,
        })
}

/// `true` if this is the row of a closed series.
fn is_closed(keys: &Keys, key: &str, value: &[u8]) -> bool {
    let summary = keys
        .series_of(key)
        .and_then(|series| series_of_bytes(key, series, value));
    summary.is_some_and(|summary| summary.closed.is_some())
}

/// Returns, for each ledger, the key of its last row of events before the transaction.
fn predecessors(keys: &Keys, plans: &[RecordPlan]) -> Vec<Key> {
    let mut seen = BTreeSet::new();
    let head_before = |plan: &RecordPlan| match plan {
        RecordPlan::Append(plan) if seen.insert(plan.ledger()) => {
            plan.before.map(|head| keys.event(head.id))
        }
        RecordPlan::Append(_)
        | RecordPlan::Anchor(_)
        | RecordPlan::Number(_)
        | RecordPlan::Void(_)
        | RecordPlan::Close(_) => None,
    };
    plans.iter().filter_map(head_before).collect()
}

/// `true` if an earlier copy of a refused transaction was committed. Then `stored` has a row with
/// exactly the bytes that the transaction writes. No other transaction writes the same bytes,
/// because they contain its number ([`Attempt`]).
pub(super) fn has_landed(transaction: &Transaction, stored: &Snapshot) -> bool {
    let is_written = |entry: &KeyValue| {
        let is_it = |write: &Write| matches!(write, Write::Put { key, value, .. } if (key, value) == (&entry.key, &entry.value));
        transaction.write.iter().any(is_it)
    };
    stored.ranges.iter().flatten().any(is_written)
}

fn revision_of(found: &[KeyValue]) -> Revision {
    found
        .first()
        .map_or(Revision::ABSENT, |entry| entry.modified)
}
