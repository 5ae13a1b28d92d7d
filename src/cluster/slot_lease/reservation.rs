//! A horizon of a slot: planned, sent, and acknowledged.

use std::time::Duration;

use crate::cluster::nonce::Nonce;
use crate::cluster::stored::HorizonRecord;
use crate::minting::HorizonPlan;
use crate::storage::{KeyValue, Transaction, Write};
use crate::time::UnixNanos;

/// How long a slot stays with a node that says nothing.
pub(super) const LEASE: Duration = Duration::from_secs(60);

/// How long after a renewal was sent its holder stops, unless the next one is acknowledged: before its lease ends.
pub(in crate::cluster) const DEADLINE: Duration = Duration::from_secs(50);

/// How long a slot is used before it is renewed.
pub(in crate::cluster) const RENEW_EVERY: Duration = Duration::from_secs(5);

/// What was acknowledged: a committed transaction, or its trace in the store, says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cluster) struct Reserved {
    /// The first instant that nobody may use.
    pub(super) horizon: UnixNanos,
    /// When the request that reserved it was sent first.
    pub(super) sent_at: UnixNanos,
}

impl Reserved {
    /// What minting may use.
    pub(in crate::cluster) fn plan(&self) -> HorizonPlan {
        HorizonPlan::leased(self.horizon, self.sent_at.after(DEADLINE))
    }

    /// When to ask for more: before half of it is used.
    pub(super) fn renew_at(&self) -> UnixNanos {
        let half = self.plan().usable_until().since(self.sent_at) / 2;
        self.sent_at.after(half.min(RENEW_EVERY))
    }
}

/// A horizon in a transaction that may have been sent: it is sent again as it is until it is answered.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) transaction: Transaction,
    /// By this it is known again.
    pub(super) attempt: Nonce,
    pub(super) reserves: Reserved,
}

impl Pending {
    /// # Panics
    /// When the transaction writes a key that it does not compare: it could undo what others have done.
    pub(super) fn new(transaction: Transaction, attempt: Nonce, reserves: Reserved) -> Pending {
        assert_guarded(&transaction);
        Pending {
            transaction,
            attempt,
            reserves,
        }
    }

    /// What it writes under a key.
    pub(super) fn value_of(&self, key: &str) -> Option<Vec<u8>> {
        self.transaction.value_of(key).map(<[u8]>::to_vec)
    }

    /// Whether this horizon in the store is the one that was sent.
    pub(super) fn has_written(&self, found: Option<&KeyValue>) -> bool {
        let record = found.and_then(|entry| HorizonRecord::from_bytes(&entry.value).ok());
        let is_written = record
            .as_ref()
            .is_some_and(|record| record.attempt == self.attempt);
        if is_written {
            let horizon = record.map(|record| record.horizon);
            assert_eq!(
                horizon,
                Some(self.reserves.horizon),
                "an attempt reserves one horizon"
            );
        }
        is_written
    }
}

/// # Panics
/// When the transaction writes a key that it does not compare.
pub(super) fn assert_guarded(transaction: &Transaction) {
    for write in &transaction.write {
        let (Write::Put { key, .. } | Write::Delete(key)) = write;
        let is_compared = transaction
            .compare
            .iter()
            .any(|compare| compare.key() == key);
        assert!(
            is_compared,
            "{key} is written without comparing the revision that the decision was based on"
        );
    }
}
