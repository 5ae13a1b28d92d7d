//! Ids on their way to a caller, and the proof of each that the caller's connection has yet to give.

use std::sync::Arc;

use crate::id::Format;
use crate::minting::{Batch, CountedFormat};

/// Ids that belong to one caller, until they are written.
#[derive(Debug)]
pub struct Outgoing {
    /// What is left of them.
    pub batch: Batch,
    receipt: Receipt,
}

impl Outgoing {
    /// A batch of ids of this format.
    pub fn new(counted: Arc<CountedFormat>, batch: Batch) -> Outgoing {
        let receipt = Receipt { counted, count: batch.count() };
        Outgoing { batch, receipt }
    }

    /// The format of these ids.
    pub fn format(&self) -> &Format {
        &self.receipt.counted.format
    }

    /// The receipt of the ids that were taken from the batch since this was asked for last.
    pub fn receipt_of_taken(&mut self) -> Receipt {
        let left = self.batch.count();
        let count = self.receipt.count.checked_sub(left).expect("a batch does not grow");
        self.receipt.count = left;
        Receipt { counted: Arc::clone(&self.receipt.counted), count }
    }

    /// The receipt of all ids that are not accounted for yet.
    pub fn into_receipt(self) -> Receipt {
        self.receipt
    }
}

/// So many ids of one format, owed to a caller: [settled](Receipt::settle) when the kernel has taken their answer.
///
/// Dropped without that, the ids stay gaps and are counted as unsent.
#[derive(Debug)]
#[must_use]
pub struct Receipt {
    counted: Arc<CountedFormat>,
    count: u64,
}

impl Receipt {
    /// The answer has left this process.
    pub fn settle(mut self) {
        self.count = 0;
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        if self.count > 0 {
            self.counted.counters.count_unsent(self.count);
        }
    }
}
