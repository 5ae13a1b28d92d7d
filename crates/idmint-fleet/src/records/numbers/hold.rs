//! The hold on numbers. If a restore may have lost numbers, a fence stops all series until an
//! operator resumes them.
//!
//! The fence writes the row of the hold together with `meta`. Every transaction that issues numbers
//! compares that row, so no number is issued from data that was read before the fence.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use crate::coordinator::{Compare, Key, KeyValue, Range, Transaction, Write};
use crate::records::fleet_records::FleetRecords;
use crate::records::keys::Keys;
use crate::records::rows::{opened, sealed};
use crate::records::shared_store::{HoldSeen, unreadable};
use idmint_core::time::UnixNanos;
use idmint_records::ledger::SeriesName;
use idmint_storage::{FailureKind, StoreError};

/// The interval at which the hold is read again while it stops all series, because another node may
/// end it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A hold on numbers. It is identified by the floor that its fence has set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::records) struct Hold(UnixNanos);

/// Returns the write that sets a hold, or that removes it if `is_held` is `false`. The stored hold
/// contains the `floor` of its fence, which distinguishes it from earlier holds.
pub(crate) fn hold_numbers(key: Key, floor: UnixNanos, is_held: bool) -> Write {
    if !is_held {
        return Write::Delete(key);
    }
    let value = Hold(floor).to_bytes(&key);
    Write::put(key, value)
}

impl Hold {
    fn to_bytes(self, key: &str) -> Vec<u8> {
        sealed(key, self.0.get().to_be_bytes().to_vec())
    }

    fn of_row(row: &KeyValue) -> Result<Hold, StoreError> {
        let bytes = opened(&row.key, &row.value).and_then(|content| content.try_into().ok());
        let bytes = bytes.ok_or_else(|| unreadable(&row.key, &row.value))?;
        Ok(Hold(UnixNanos::new(u64::from_be_bytes(bytes))))
    }

    /// Returns the keys of the three rows that determine whether a series is held, so that it
    /// issues no numbers.
    pub(super) fn keys(keys: &Keys, series: &SeriesName) -> [Key; 3] {
        [
            keys.number_hold(),
            keys.ended_hold(None),
            keys.ended_hold(Some(series)),
        ]
    }

    /// `true` if the series is held, so that it issues no numbers. A series is held if `hold`
    /// exists and neither row in `ended` ends it. A row ends the hold if it contains the same
    /// floor, so rows of earlier holds do not. [`keys`](Self::keys) returns the keys of these three
    /// rows.
    ///
    /// # Errors
    /// Returns [`StoreError`] if a row that affects the result cannot be decoded.
    pub(super) fn is_in_force(
        hold: Option<&KeyValue>,
        ended: [Option<&KeyValue>; 2],
    ) -> Result<bool, StoreError> {
        let Some(hold) = hold.map(Hold::of_row).transpose()? else {
            return Ok(false);
        };
        for ended in ended.into_iter().flatten() {
            if Hold::of_row(ended)? == hold {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl FleetRecords {
    /// `true` if this series is held. If the last read found no hold, does not read again. A new
    /// hold is noticed anyway, because each transaction that issues numbers compares its row.
    pub(super) fn reads_hold(&self, series: &SeriesName) -> Result<bool, StoreError> {
        if !self.store.may_hold.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let ranges = Hold::keys(&self.store.keys, series).map(Range::one);
        let found = self.store.read(&ranges)?;
        let [hold, for_all, for_series] = [0, 1, 2].map(|at| found[at].first());
        self.store.may_hold.store(hold.is_some(), Ordering::Relaxed);
        Hold::is_in_force(hold, [for_all, for_series])
    }

    /// `true` if the last read found a hold that no operator has ended for all series. Series that
    /// were resumed one by one do not change the result.
    pub(in crate::records) fn knows_hold(&self) -> bool {
        self.hold_seen().is_some_and(|seen| seen.is_held)
    }

    /// Reads whether there is a hold for all series. The last result is used again until the next
    /// fence. A result that shows a hold is used for less than a second, because another node may
    /// end the hold.
    pub(in crate::records) fn looks_at_hold(&self) -> Result<(), StoreError> {
        let (era, at) = (self.store.era(), self.store.asking());
        let is_known =
            |seen: &HoldSeen| seen.era == era && (!seen.is_held || seen.at.age(at) < LOOK_EVERY);
        if self.hold_seen().as_ref().is_some_and(is_known) {
            return Ok(());
        }
        let keys = [
            self.store.keys.number_hold(),
            self.store.keys.ended_hold(None),
        ];
        let found = self.store.read(&keys.map(Range::one))?;
        let is_held = Hold::is_in_force(found[0].first(), [found[1].first(), None])?;
        *self.hold_seen() = Some(HoldSeen { era, is_held, at });
        Ok(())
    }

    fn hold_seen(&self) -> MutexGuard<'_, Option<HoldSeen>> {
        let seen = self.store.hold_seen.lock();
        seen.unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the current hold for one series, or for all series if `series` is `None`. Does nothing
    /// if there is no hold.
    pub(super) fn ends_hold(&self, series: Option<&SeriesName>) -> Result<(), StoreError> {
        let Some(hold) = self.store.read_key(self.store.keys.number_hold())? else {
            return Ok(());
        };
        let key = self.store.keys.ended_hold(series);
        let value = Hold::of_row(&hold)?.to_bytes(&key);
        let transaction = Transaction {
            compare: vec![Compare::Modified(hold.key.clone(), hold.modified)],
            write: vec![Write::put(key, value)],
            ..Transaction::default()
        };
        if self.store.write_what_may_be_lost(transaction)? {
            if let (None, Some(seen)) = (series, &mut *self.hold_seen()) {
                seen.is_held = false;
            }
            return Ok(());
        }
        Err(StoreError::new(
            FailureKind::Unreachable,
            "another fence has held the numbers again; find the last number of each series anew, and resume the series once more",
        ))
    }
}
