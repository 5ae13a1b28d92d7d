//! The operations that a store supports for records. They are the interface between the code that
//! decides which records to write and the code that stores the records.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use super::conjunction_store::ConjunctionStore;
use super::ledger_store::LedgerStore;
use super::number_store::NumberStore;
use super::request_store::RequestStore;
use crate::failure::{Obstacle, StoreError};
use idmint_core::time::UnixNanos;
use idmint_records::conjunction::AnchorPlan;
use idmint_records::ledger::{AppendPlan, ClosePlan, GivenNumbers, NumberPlan, VoidPlan};

/// A shared handle to the records of a store, for any storage engine.
pub type Records = Arc<dyn RecordStore>;

/// A store of ledgers, conjunctions, numbers and request keys.
///
/// Events, anchors, issued numbers and void numbers are written only with [`write`](Self::write).
/// The supertraits read and remove records, and write other data, such as report counts.
///
/// A read returns only data that is durable, or that becomes durable before any later write of this
/// process. Reads may be called from any thread, and wait for the disk, or for another machine if
/// the store [is remote](Self::is_remote). Every read fails with a [`StoreError`] if the store is
/// damaged or unavailable.
pub trait RecordStore:
    LedgerStore + NumberStore + ConjunctionStore + RequestStore + Debug + Send + Sync
{
    /// Returns how many plans, counted from the first one, fit into one write. The result is at
    /// least 1, unless `plans` is empty.
    fn fitting(&self, plans: &[RecordPlan]) -> usize {
        plans.len()
    }

    /// Stores either all of the plans, in order, or none of them. The plans are durable when this
    /// method returns. The plans must [fit](Self::fitting) into one write.
    ///
    /// The transaction that writes the plans also checks that the decisions in them still hold.
    /// This check covers the last event of each ledger, the anchors near a new anchor, and the void
    /// numbers. It also covers the last number of each series, and whether the series is closed. If
    /// several processes write to the store, the transaction also checks the request keys.
    /// [`request`](RequestStore::request) and [`given_to`](NumberStore::given_to) must still return
    /// the same results as before.
    ///
    /// # Errors
    /// Returns [`WriteError`] if the plans were not written, or if it is unknown whether they were.
    fn write(&self, plans: &[RecordPlan]) -> Result<(), WriteError>;

    /// Completes the work that [`write`](Self::write) leaves for later when it returns with durable
    /// plans. A read also completes this work before it returns data.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the work failed. The plans are durable nevertheless.
    fn apply_pending(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns the current time to use for computing the age of stored records. `now` is the time
    /// on the clock of this process. Returns `None` if no reliable time is known.
    ///
    /// The result is earlier than `now` if other processes write to the store and their clocks are
    /// behind.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn judging_time(&self, now: UnixNanos) -> Result<Option<UnixNanos>, StoreError> {
        Ok(Some(now))
    }

    /// Copies everything except the horizon to a folder. The folder must be empty or not exist yet.
    /// The copy is a snapshot of one moment, and durable when this method returns.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the copy failed. In that case the folder must not be used.
    fn back_up(&self, folder: &Path) -> Result<BackedUp, StoreError>;

    /// Returns the reason why the store cannot be written until [`reopen`](Self::reopen) succeeds.
    /// If the reason is a full disk, the store can still be read. Returns `None` if no obstacle to
    /// writing is known.
    fn obstacle(&self) -> Option<Obstacle>;

    /// Removes the obstacle to writing if possible. For example, opens the store again after a disk
    /// error has closed it.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the obstacle remains.
    fn reopen(&self) -> Result<(), StoreError>;

    /// Returns the reason why the store accepts no new records at the moment, or `None` if it
    /// accepts them. Records can still be read, and old records can still be removed to free space.
    fn write_obstacle(&self) -> Option<Obstacle> {
        None
    }

    /// `true` if a hold after a restore stops series until an operator resumes them. Does not ask
    /// another machine, so the result may be out of date.
    fn holds_numbers(&self) -> bool {
        false
    }

    /// Checks for a hold on series, and updates [`holds_numbers`](Self::holds_numbers). The writer
    /// thread calls this method many times per second, so a current result is not checked again.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn look_at_hold(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// `true` if reading a record waits for another machine. Then reads must not run on a thread
    /// that serves connections.
    fn is_remote(&self) -> bool {
        false
    }
}

/// A decision to write a record. The record is stored only if the data on which the decision is
/// based has not changed until the write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordPlan {
    /// Append events to a ledger.
    Append(AppendPlan),
    /// Create a conjunction by storing its first report as its anchor.
    Anchor(AnchorPlan),
    /// Issue the next numbers of a series.
    Number(NumberPlan),
    /// Void a number.
    Void(VoidPlan),
    /// Close a series.
    Close(ClosePlan),
}

impl RecordPlan {
    /// `true` if this plan issues numbers that are also written as texts, such as `INV-0042`. The
    /// store then keeps how they are written.
    pub fn has_form(&self) -> bool {
        matches!(self, RecordPlan::Number(plan) if plan.form.is_some())
    }

    /// Returns the first number of a series that this plan corrects to another number, or `None` if
    /// it corrects no number.
    pub fn replaces(&self) -> Option<&GivenNumbers> {
        match self {
            RecordPlan::Number(plan) => plan.replaces.as_ref(),
            RecordPlan::Append(_)
            | RecordPlan::Anchor(_)
            | RecordPlan::Void(_)
            | RecordPlan::Close(_) => None,
        }
    }
}

/// The error of writing plans. After `Store`, the plans may have been written. After any other
/// variant, no plan was written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Another writer changed records on which a plan is based. None of the plans was written. The
    /// caller should read the records again and make new plans.
    #[error("another writer changed a record on which this write is based, so nothing was written")]
    Stale,
    /// The store refused the write. None of the plans was written.
    #[error(transparent)]
    NotWritten(StoreError),
    /// The first plan alone needs more space than one write has. None of the plans was written.
    #[error(transparent)]
    TooLong(StoreError),
    /// The store is damaged, or failed during the write. It is unknown whether the planned records
    /// were stored.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The numbers of records in a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackedUp {
    /// The number of appends in all ledgers.
    pub appends: u64,
    /// The number of conjunctions in all formats.
    pub conjunctions: u64,
    /// The number of issued numbers in all series.
    pub numbers: u64,
}
