//! Rows of a node that moves in, on their way into the store of the fleet: in order, in as few transactions as etcd allows.

use std::collections::BTreeMap;

use crate::ledger::{EventId, KeyHash};
use crate::storage::coordinator::{Compare, Key, Range, Revision, Snapshot, Transaction, Write};
use crate::storage::failure::{FailureKind, StoreError};
use crate::storage::fleet::keys::Keys;
use crate::storage::fleet::rows::{request_list_to_bytes, request_to_bytes};
use crate::storage::fleet::shared_store::{
    BYTES_MAX, NotWritten, OPERATIONS_MAX, SharedStore, Written,
};
use crate::storage::fleet::transaction_draft::REQUESTS_MAX;
use crate::storage::records::{DoneRequest, WrittenDay};

/// What is written next. A row is written after those that were put before it, or together with them.
pub(super) struct AdoptedBatch<'a> {
    store: &'a SharedStore,
    /// Nothing is written.
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

    /// Puts a row that must not be there yet.
    ///
    /// # Errors
    /// [`StoreError`]: what was put before could not be written.
    pub(super) fn create(&mut self, key: Key, value: Vec<u8>) -> Result<(), StoreError> {
        self.make_room(value.len())?;
        self.transaction
            .compare
            .push(Compare::Created(key.clone(), Revision::ABSENT));
        self.put(key, value);
        Ok(())
    }

    /// Puts those of the rows of a record that are not there, if the record is new. Returns the key of the first that the fleet has
    /// in another way, or lacks though it has the record.
    ///
    /// # Errors
    /// As [`AdoptedBatch::create`].
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

    /// Puts a row, whatever is there: nothing is decided by it before a later row names it.
    ///
    /// # Errors
    /// As [`AdoptedBatch::create`].
    pub(super) fn replace(&mut self, key: Key, value: Vec<u8>) -> Result<(), StoreError> {
        self.make_room(value.len())?;
        self.put(key, value);
        Ok(())
    }

    /// Puts a request with a key whose row was written last by this revision.
    ///
    /// # Errors
    /// As [`AdoptedBatch::create`].
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

    /// Writes what was put.
    ///
    /// # Errors
    /// [`StoreError`]; what is there then is for the next attempt to find.
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
                let error = "somebody else writes the same records to the fleet; run it again";
                Err(StoreError::new(FailureKind::Unreachable, error))
            }
            Err(NotWritten::Refused(error) | NotWritten::Unknown(error)) => Err(error),
        }
    }

    fn put(&mut self, key: Key, value: Vec<u8>) {
        self.bytes += key.len() + value.len();
        self.transaction.write.push(Write::put(key, value));
    }

    /// Writes what was put, if one row more, and the lists of requests, might not fit into the same transaction.
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

/// Whether a transaction has landed, by what is stored under each key that it compared: what it writes there.
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

/// The keys of requests by the day of their recording, and of each day the event that names their list.
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

/// Puts the lists of these keys of requests, for the sweep.
pub(in crate::storage::fleet) fn write_lists(
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
