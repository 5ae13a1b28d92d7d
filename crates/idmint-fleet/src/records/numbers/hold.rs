//! The hold on numbers: after a restore that may have lost numbers, a fence stops all series until
//! an operator resumes them.
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

/// The interval at which the hold on numbers (a stop of all series) is read again while it lasts,
/// because another node may end it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A hold on numbers: after a restore, no series issues numbers until an operator ends the hold.
/// The floor (lowest time for ids) of the fence that set the hold identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::records) struct Hold(UnixNanos);

/// Returns the write that stops all series from issuing numbers, or that ends such a stop if
/// `is_held` is `false`. The stored stop contains `floor`, the lowest time for ids after the
/// restore, which distinguishes it from earlier stops.
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

    /// Returns the keys of the three rows that determine whether a series is held, which means that
    /// it issues no numbers.
    pub(super) fn keys(keys: &Keys, series: &SeriesName) -> [Key; 3] {
        [
            keys.number_hold(),
            keys.ended_hold(None),
            keys.ended_hold(Some(series)),
        ]
    }

    /// `true` if the series is held, which means that `hold` exists and neither row in `ended` ends
    /// it. A row ends the hold if it contains the same floor, so rows of earlier holds do not.
    /// [`keys`](Self::keys) returns the keys of these three rows.
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
    /// `true` if a hold (a stop after a restore) keeps this series from issuing numbers. If the
    /// last read found no hold, this method does not read again, because the next transaction that
    /// issues numbers compares the row of the hold and so notices a new one.
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

    /// `true` if, at the last read, all series of numbers were stopped after a restore. Stays
    /// `true` if an operator has resumed single series, but not all at once.
    pub(in crate::records) fn knows_hold(&self) -> bool {
        self.hold_seen().is_some_and(|seen| seen.is_held)
    }

    /// Reads whether all series are stopped. Reuses the last result until the next `fence-restore`,
    /// but for less than a second if they are stopped, because another node may resume them.
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

    /// Ends the current hold on numbers (a stop after a restore) for one series, or for all series
    /// if `series` is `None`. Does nothing if the store has no hold.
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
