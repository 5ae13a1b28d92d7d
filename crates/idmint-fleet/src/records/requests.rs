//! Reads completed requests by their idempotency keys, and removes old keys.

use super::fleet_records::FleetRecords;
use super::rows::{request_list_of_bytes, request_of_bytes};
use super::shared_store::{NotWritten, Written, unreadable};
use crate::coordinator::{Compare, KeyValue, Range, Transaction, Write};
use idmint_records::ledger::{EventTime, KeyHash};
use idmint_storage::{DoneRequest, RequestStore, StoreError, WrittenDay, days_to_forget};

impl RequestStore for FleetRecords {
    fn requests(&self, keys: &[KeyHash]) -> Result<Vec<Option<DoneRequest>>, StoreError> {
        let ranges: Vec<Range> = keys
            .iter()
            .map(|key| Range::one(self.store.keys.request(*key)))
            .collect();
        let found = self.store.read(&ranges)?;
        let done = |(hash, found): (&KeyHash, Vec<KeyValue>)| {
            found
                .first()
                .map(|entry| request_of(entry, *hash))
                .transpose()
        };
        keys.iter().zip(found).map(done).collect()
    }

    fn forget_requests(&self, since: EventTime, count_max: usize) -> Result<bool, StoreError> {
        let days = self.request_days()?;
        let Some(oldest) = days_to_forget(&days, since).first().copied() else {
            return Ok(false);
        };
        let mut forgotten = 0;
        while forgotten < count_max.max(1) {
            let list = self
                .store
                .read_range(Range {
                    count_max: 1,
                    ..self.store.keys.requests_of(oldest)
                })?
                .pop();
            let Some(list) = list else { break };
            let hashes = request_list_of_bytes(&list.key, &list.value)
                .ok_or_else(|| unreadable(&list.key, &list.value))?;
            forgotten += hashes.len();
            if !self.forget(&list, oldest, &hashes)? {
                // Another node is removing the same idempotency keys, or a caller has just used one
                // of them again.
                break;
            }
        }
        Ok(true)
    }

    /// Returns the earliest day and the latest three days on which idempotency keys were recorded,
    /// in ascending order.
    fn request_days(&self) -> Result<Vec<WrittenDay>, StoreError> {
        let all = self.store.keys.request_days();
        let first = self.day_of_one(Range {
            count_max: 1,
            ..all.clone()
        })?;
        let mut days: Vec<WrittenDay> = Vec::new();
        let mut range = Range {
            count_max: 1,
            is_descending: true,
            ..all
        };
        while let Some(day) = self.day_of_one(range)? {
            days.push(day);
            if days.len() == 3 {
                break;
            }
            range = Range {
                count_max: 1,
                is_descending: true,
                ..self.store.keys.request_days_before(day)
            };
        }
        days.extend(first.filter(|first| !days.contains(first)));
        days.reverse();
        Ok(days)
    }
}

impl FleetRecords {
    /// Removes `list`, a list of expired idempotency keys that were recorded on `day`, together
    /// with the rows of these keys. Keeps the row of a key that was used again on another day.
    /// Returns `false` if one of the rows was changed first.
    fn forget(
        &self,
        list: &KeyValue,
        day: WrittenDay,
        hashes: &[KeyHash],
    ) -> Result<bool, StoreError> {
        let ranges: Vec<Range> = hashes
            .iter()
            .map(|hash| Range::one(self.store.keys.request(*hash)))
            .collect();
        let mut transaction = Transaction {
            compare: vec![Compare::Modified(list.key.clone(), list.modified)],
            write: vec![Write::Delete(list.key.clone())],
            ..Transaction::default()
        };
        for (hash, found) in hashes.iter().zip(self.store.read(&ranges)?) {
            let Some(entry) = found.first() else { continue };
            if WrittenDay::of(request_of(entry, *hash)?.recorded) == day {
                transaction
                    .compare
                    .push(Compare::Modified(entry.key.clone(), entry.modified));
                transaction.write.push(Write::Delete(entry.key.clone()));
            }
        }
        // An earlier attempt may have been committed, although its response was lost. The retry is
        // then refused, and the result is `false`. The rows are gone nevertheless, and the next
        // cleanup continues with the remaining keys.
        match self.store.write(transaction, |_| false) {
            Ok(Written::Committed(_)) => Ok(true),
            Ok(Written::Stale) => Ok(false),
            Err(NotWritten::Refused(error) | NotWritten::Unknown(error)) => Err(error),
        }
    }

    fn day_of_one(&self, range: Range) -> Result<Option<WrittenDay>, StoreError> {
        let found = self.store.read_range(range)?.pop();
        found
            .map(|entry| {
                self.store
                    .keys
                    .day_of(&entry.key)
                    .ok_or_else(|| unreadable(&entry.key, &entry.value))
            })
            .transpose()
    }
}

/// Parses the row of the request with this key hash.
pub(super) fn request_of(entry: &KeyValue, hash: KeyHash) -> Result<DoneRequest, StoreError> {
    request_of_bytes(&entry.key, hash, &entry.value)
        .ok_or_else(|| unreadable(&entry.key, &entry.value))
}
