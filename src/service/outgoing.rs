//! Ids on their way to a caller.

use std::sync::Arc;

use crate::id::Format;
use crate::minting::{Batch, CountedFormat};

/// Ids that belong to one caller. Those that are not taken before it is dropped stay gaps, and are counted.
#[derive(Debug)]
pub struct Outgoing {
    /// What is left of them.
    pub batch: Batch,
    counted: Arc<CountedFormat>,
}

impl Outgoing {
    /// A batch of ids of this format.
    pub fn new(counted: Arc<CountedFormat>, batch: Batch) -> Outgoing {
        Outgoing { batch, counted }
    }

    /// The format of these ids.
    pub fn format(&self) -> &Format {
        &self.counted.format
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        if self.batch.count() > 0 {
            self.counted.counters.count_unsent(self.batch.count());
        }
    }
}
