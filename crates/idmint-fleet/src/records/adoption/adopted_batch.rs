//! Writes the rows of an adopted folder to the fleet's store, in order and with as few transactions
//! as etcd allows.

use std::collections::BTreeMap;

use crate::coordinator::{Compare, Key, Range, Revision, Snapshot, Transaction, Write};
use crate::records::keys::Keys;
use crate::records::rows::{request_list_to_bytes, request_to_bytes};
use crate::records::shared_store::{BYTES_MAX, NotWritten, OPERATIONS_MAX, SharedStore, Written};
use crate::records::transaction_draft::REQUESTS_MAX;
use idmint_records::ledger::{EventId, KeyHash};
use idmint_storage::{DoneRequest, WrittenDay};
use idmint_storage::{FailureKind, StoreError};

/// A batch of rows to write to the fleet's store, in the order in which they were added. Each
/// transaction writes several rows.
pub(super) struct AdoptedBatch<'a> {
    store: &'a SharedStore,
    /// `true` if the rows are only checked and not written.
    is_trial: bool,
    transaction: Transaction,
    requests: Vec<DoneRequest>,
    bytes: usize,
}

impl<'a> AdoptedBatch<'a> {
    pub(super) fn new(store: &'a SharedStore, is_trial: bool) -> AdoptedBatch<'a> {
        AdoptedBatch {
            store,
            is_trial,
            transaction: Transaction::default(),
            requests: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds a row to the batch. Writing the batch fails if the fleet's store already has a row with
    /// this key.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the batch was full and its earlier rows could not be written.
    pub(super) fn create(&mut self, key: Key, value: Vec<u8>) -> Result<(), StoreError> {
        self.update(key, value, Revision::ABSENT)
    }

    /// Adds a row to the batch. Writing the batch fails unless the store last wrote the key at
    /// `revision`.
    ///
    /// # Errors
    /// Returns the errors of [`AdoptedBatch::create`].
    pub(super) fn update(
        &mut self,
        key: Key,
        value: Vec<u8>,
        revision: Revision,
    ) -> Result<(), StoreError> {
        self.make_room(value.len())?;
        self.transaction
            .compare
            .push(Compare::Modified(key.clone(), revision));
        self.put(key, value);
        if self.transaction.size() > BYTES_MAX && self.transaction.write.len() == 1 {
            // Report this on trial as well, because an adoption that has begun cannot be undone.
            return Err(self.store.too_long(&self.transaction));
        }
        Ok(())
    }

    /// Compares the rows of a record with the fleet's rows. Returns the first key whose row
    /// differs, or `None` if no row differs. A row that the fleet lacks is added to the batch if
    /// `is_new` is `true`, and counts as a difference otherwise.
    ///
    /// # Errors
    /// Returns the errors of [`AdoptedBatch::create`], and [`StoreError`] if the fleet cannot be
    /// read.
    pub(super) fn create_missing<'r>(
        &mut self,
        rows: &'r [(Key, Vec<u8>)],
        is_new: bool,
    ) -> Result<Option<&'r Key>, StoreError> {
        let ranges: Vec<Range> = rows
            .iter()
            .map(|(key, _)| Range::one(key.clone()))
            .collect();
        for ((key, value), found) in rows.iter().zip(self.store.read(&ranges)?) {
            match found.first() {
                Some(entry) if entry.value == *value => {}
                None if is_new => self.create(key.clone(), value.clone())?,
                Some(_) | None => return Ok(Some(key)),
            }
        }
        Ok(None)
    }

    /// Adds a row to the batch that overwrites any value under its key. This is safe, because the
    /// row has no effect until a later row of the batch refers to it.
    ///
    /// # Errors
    /// Returns the errors of [`AdoptedBatch::create`].
    pub(super) fn replace(&mut self, key: Key, value: Vec<u8>) -> Result<(), StoreError> {
        self.make_room(value.len())?;
        self.put(key, value);
        Ok(())
    }

    /// Adds the row of a completed append request to the batch. `revision` is the revision of the
    /// fleet's row under the same key, or [`Revision::ABSENT`] if there is none.
    ///
    /// # Errors
    /// Returns the errors of [`AdoptedBatch::create`].
    pub(super) fn put_request(
        &mut self,
        done: DoneRequest,
        revision: Revision,
    ) -> Result<(), StoreError> {
        let key = self.store.keys.request(done.key);
        if self.requests.len() == REQUESTS_MAX
            || self.requests.iter().any(|other| other.key == done.key)
        {
            self.flush()?;
        }
        let value = request_to_bytes(&key, &done);
        self.make_room(value.len())?;
        self.transaction
            .compare
            .push(Compare::Modified(key.clone(), revision));
        self.put(key, value);
        self.requests.push(done);
        Ok(())
    }

    /// Writes all rows of the batch to the fleet's store, and empties the batch. On trial, no row
    /// is written.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the rows may not have been written. The next run of the adoption
    /// finds out which rows exist.
    pub(super) fn flush(&mut self) -> Result<(), StoreError> {
        let mut transaction = std::mem::take(&mut self.transaction);
        write_lists(
            &self.store.keys,
            &std::mem::take(&mut self.requests),
            &mut transaction,
        );
        self.bytes = 0;
        if self.is_trial || transaction.write.is_empty() {
            return Ok(());
        }
        transaction.otherwise = transaction
            .compare
            .iter()
            .map(|compare| Range::one(compare.key().clone()))
            .collect();
        match self.store.write(transaction.clone(), |stored| {
            has_landed(&transaction, stored)
        }) {
            Ok(Written::Committed(_)) => Ok(()),
            Ok(Written::Stale) => {
                let error = "another process writes the same records to the fleet; run this again";
                Err(StoreError::new(FailureKind::Unreachable, error))
            }
            Err(NotWritten::Refused(error) | NotWritten::Unknown(error)) => Err(error),
        }
    }

    fn put(&mut self, key: Key, value: Vec<u8>) {
        self.bytes += key.len() + value.len();
        self.transaction.write.push(Write::put(key, value));
    }

    /// Writes the rows so far if the current transaction has no room for another row of `len` bytes
    /// and the lists that [`write_lists`] adds.
    fn make_room(&mut self, len: usize) -> Result<(), StoreError> {
        let days: usize = days_of(&self.requests).len() + 1;
        let is_crowded = self.transaction.write.len() + days >= OPERATIONS_MAX;
        if is_crowded || self.bytes + len > BYTES_MAX {
            self.flush()
        } else {
            Ok(())
        }
    }
}

/// `true` if an earlier copy of the transaction was committed. Then each key that the transaction
/// compares has the value that the transaction writes.
fn has_landed(transaction: &Transaction, stored: &Snapshot) -> bool {
    let compared = transaction
        .compare
        .iter()
        .map(Compare::key)
        .zip(&stored.ranges);
    compared.into_iter().all(|(key, found)| {
        let is_it = |write: &Write| match (write, found.first()) {
            (
                Write::Put {
                    key: put, value, ..
                },
                Some(entry),
            ) => put == key && *value == entry.value,
            _ => false,
        };
        transaction.write.iter().any(is_it)
    })
}

/// Groups idempotency keys by the day on which they were recorded. Each group also has the id of
/// the last event of its first request, which makes its store key `request-day/DAY/EVENT` unique.
fn days_of(requests: &[DoneRequest]) -> BTreeMap<WrittenDay, (EventId, Vec<KeyHash>)> {
    let mut days: BTreeMap<WrittenDay, (EventId, Vec<KeyHash>)> = BTreeMap::new();
    for done in requests {
        days.entry(WrittenDay::of(done.recorded))
            .or_insert((done.last, Vec::new()))
            .1
            .push(done.key);
    }
    days
}

/// Adds lists of these requests' keys to a transaction, one list for each day. The cleanup of
/// expired idempotency keys finds them by these lists.
pub(in crate::records) fn write_lists(
    keys: &Keys,
    requests: &[DoneRequest],
    transaction: &mut Transaction,
) {
    for (day, (last, hashes)) in days_of(requests) {
        let key = keys.request_day(day, last);
        let value = request_list_to_bytes(&key, &hashes);
        transaction.write.push(Write::put(key, value));
    }
}
