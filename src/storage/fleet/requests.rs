//! Requests with a key: found by it, and forgotten when they are old.

use super::rows::{request_list_of_bytes, request_of_bytes};
use super::shared_store::{NotWritten, SharedStore, Written, damaged};
use crate::ledger::{EventTime, KeyHash};
use crate::storage::coordinator::{Compare, KeyValue, Range, Transaction, Write};
use crate::storage::failure::StoreError;
use crate::storage::records::{DoneRequest, WrittenDay, days_to_forget};

impl SharedStore {
    /// Of each of these keys the last request.
    pub(super) fn requests(
        &self,
        keys: &[KeyHash],
    ) -> Result<Vec<Option<DoneRequest>>, StoreError> {
        let ranges: Vec<Range> = keys
            .iter()
            .map(|key| Range::one(self.keys.request(*key)))
            .collect();
        let found = self.read(&ranges)?;
        let done = |(hash, found): (&KeyHash, Vec<KeyValue>)| {
            found
                .first()
                .map(|entry| request_of(entry, *hash))
                .transpose()
        };
        keys.iter().zip(found).map(done).collect()
    }

    /// Forgets about `count_max` keys of the oldest day, if it can be forgotten. Returns whether there was one.
    pub(super) fn forget_requests(
        &self,
        since: EventTime,
        count_max: usize,
    ) -> Result<bool, StoreError> {
        let days = self.first_and_last_days()?;
        let Some(oldest) = days_to_forget(&days, since).first().copied() else {
            return Ok(false);
        };
        let mut forgotten = 0;
        while forgotten < count_max.max(1) {
            let list = self
                .read_range(Range {
                    count_max: 1,
                    ..self.keys.requests_of(oldest)
                })?
                .pop();
            let Some(list) = list else { break };
            let hashes =
                request_list_of_bytes(&list.key, &list.value).ok_or_else(|| damaged(&list.key))?;
            forgotten += hashes.len();
            if !self.forget(&list, oldest, &hashes)? {
                // Another node forgets the same, or a caller has just used one of the keys again.
                break;
            }
        }
        Ok(true)
    }

    /// Forgets the keys of a list, those that were not used again since, and the list. Returns whether nobody else did.
    fn forget(
        &self,
        list: &KeyValue,
        day: WrittenDay,
        hashes: &[KeyHash],
    ) -> Result<bool, StoreError> {
        let ranges: Vec<Range> = hashes
            .iter()
            .map(|hash| Range::one(self.keys.request(*hash)))
            .collect();
        let mut transaction = Transaction {
            compare: vec![Compare::Modified(list.key.clone(), list.modified)],
            write: vec![Write::Delete(list.key.clone())],
            ..Transaction::default()
        };
        for (hash, found) in hashes.iter().zip(self.read(&ranges)?) {
            let Some(entry) = found.first() else { continue };
            if WrittenDay::of(request_of(entry, *hash)?.recorded) == day {
                transaction
                    .compare
                    .push(Compare::Modified(entry.key.clone(), entry.modified));
                transaction.write.push(Write::Delete(entry.key.clone()));
            }
        }
        // Deleted twice is as good as once, so nobody has to know which one it was.
        match self.write(transaction, |_| false) {
            Ok(Written::Committed(_)) => Ok(true),
            Ok(Written::Stale) => Ok(false),
            Err(NotWritten::Refused(error) | NotWritten::Unknown(error)) => Err(error),
        }
    }

    /// The first day of which there are keys, and the last three, in their order.
    pub(super) fn first_and_last_days(&self) -> Result<Vec<WrittenDay>, StoreError> {
        let all = self.keys.request_days();
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
                ..self.keys.request_days_before(day)
            };
        }
        days.extend(first.filter(|first| !days.contains(first)));
        days.reverse();
        Ok(days)
    }

    fn day_of_one(&self, range: Range) -> Result<Option<WrittenDay>, StoreError> {
        let found = self.read_range(range)?.pop();
        found
            .map(|entry| {
                self.keys
                    .day_of(&entry.key)
                    .ok_or_else(|| damaged(&entry.key))
            })
            .transpose()
    }
}

/// The request of a row, which is under the key of this hash.
pub(super) fn request_of(entry: &KeyValue, hash: KeyHash) -> Result<DoneRequest, StoreError> {
    request_of_bytes(&entry.key, hash, &entry.value).ok_or_else(|| damaged(&entry.key))
}
