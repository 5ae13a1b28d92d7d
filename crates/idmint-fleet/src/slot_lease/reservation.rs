//! A reservation of time in a slot, from the request until the coordinator has acknowledged it.

use super::rule::{DEADLINE, RENEW_EVERY};
use crate::nonce::Nonce;
use crate::stored::{HorizonRecord, KNOWN_ROWS};
use crate::{Key, KeyValue, Lease, Transaction, Write};
use idmint_core::minting::HorizonPlan;
use idmint_core::time::UnixNanos;

/// A slot's horizon, and the time at which this node asked for it. The coordinator has acknowledged
/// the reservation, unless it is part of a [`Pending`] transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reserved {
    /// The horizon, which is the first instant that the node may not use.
    pub(super) horizon: UnixNanos,
    /// The time at which the request for this horizon was first sent. Retries do not change it.
    pub(super) sent_at: UnixNanos,
}

impl Reserved {
    /// Returns the horizon in the form that the mint uses.
    pub(crate) fn plan(&self) -> HorizonPlan {
        HorizonPlan::leased(self.horizon, self.sent_at.after(DEADLINE))
    }

    /// Returns the time of the slot's next renewal. It is [`RENEW_EVERY`] after this one, or
    /// earlier if half of the reserved time has passed by then.
    pub(super) fn renew_at(&self) -> UnixNanos {
        let half = self.plan().usable_until().since(self.sent_at) / 2;
        self.sent_at.after(half.min(RENEW_EVERY))
    }
}

/// A transaction that reserves time in a slot. It may have been sent already, and is sent unchanged
/// until a response arrives.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) transaction: Transaction,
    /// The nonce by which this node recognizes its own write in the store.
    pub(super) attempt: Nonce,
    pub(super) reserves: Reserved,
}

impl Pending {
    /// Creates a pending reservation from its transaction.
    ///
    /// # Panics
    /// Panics if the transaction writes a key that it does not compare, because it could undo the
    /// writes of other nodes.
    pub(super) fn new(transaction: Transaction, attempt: Nonce, reserves: Reserved) -> Pending {
        assert_guarded(&transaction);
        Pending {
            transaction,
            attempt,
            reserves,
        }
    }

    /// Returns the value that the transaction writes under a key, or `None` if it does not write
    /// that key.
    pub(super) fn value_of(&self, key: &str) -> Option<Vec<u8>> {
        self.transaction.value_of(key).map(<[u8]>::to_vec)
    }

    /// `true` if `found` is the horizon that this transaction wrote.
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

/// Returns the write by which this process announces that it can read the rows in [`KNOWN_ROWS`].
/// Some earlier versions cannot read them.
pub(super) fn known_rows(key: Key, lease: Lease) -> Write {
    Write::Put {
        key,
        value: KNOWN_ROWS.into(),
        lease: Some(lease),
    }
}

/// Checks that the transaction compares the revision of each key that it writes. Otherwise it could
/// undo another node's write.
///
/// # Panics
/// Panics if the transaction writes a key that it does not compare.
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
