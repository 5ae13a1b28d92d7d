//! The operations that a store supports for the idempotency keys of requests to ledgers.

use super::done_request::DoneRequest;
use super::written_day::WrittenDay;
use crate::failure::StoreError;
use idmint_records::ledger::{EventTime, KeyHash};

/// A store that finds completed ledger requests by their idempotency keys, until old keys are
/// removed.
pub trait RequestStore {
    /// Returns the latest stored request whose idempotency key has the hash `key`, if any.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn request(&self, key: KeyHash) -> Result<Option<DoneRequest>, StoreError> {
        Ok(self.requests(&[key])?.pop().flatten())
    }

    /// Returns the latest request with each of these keys, or `None` for a key that is not stored.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn requests(&self, keys: &[KeyHash]) -> Result<Vec<Option<DoneRequest>>, StoreError>;

    /// Removes about `count_max` request keys of the oldest day on which keys were recorded, if
    /// that day ended before `since`. Returns `false` if there is no such day.
    ///
    /// The keys of the last three days are always kept.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be written.
    fn forget_requests(&self, since: EventTime, count_max: usize) -> Result<bool, StoreError>;

    /// Returns the days on which idempotency keys were recorded, in ascending order. Some days may
    /// be missing, but the latest three are always included.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn request_days(&self) -> Result<Vec<WrittenDay>, StoreError>;
}
