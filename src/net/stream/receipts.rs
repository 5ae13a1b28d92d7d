//! What is owed for ids on their way through a connection: settled when the kernel has their bytes.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::service::Receipt;

/// The receipts of one connection, by how far their bytes have come. Those that are left when it is dropped are ids that
/// nobody got, and count themselves.
// Locked, since the bodies of answers and the stream add to it; in HTTP/1 all in one task, so nobody waits.
#[derive(Debug, Default)]
pub(in crate::net) struct Receipts(Mutex<Stages>);

#[derive(Debug, Default)]
struct Stages {
    /// Their bytes are with hyper.
    taken: Vec<Receipt>,
    /// Their bytes are in the buffer of the stream.
    buffered: Vec<Receipt>,
}

impl Receipts {
    /// hyper has taken bytes that somebody accounts for.
    pub(in crate::net) fn take(&self, receipt: Receipt) {
        self.stages().taken.push(receipt);
    }

    /// All that hyper had is written to the stream.
    pub(super) fn all_buffered(&self) {
        let stages = &mut *self.stages();
        stages.buffered.append(&mut stages.taken);
    }

    /// All that was written to the stream is with the kernel.
    pub(super) fn all_sent(&self) {
        let sent = mem::take(&mut self.stages().buffered);
        sent.into_iter().for_each(Receipt::settle);
    }

    fn stages(&self) -> MutexGuard<'_, Stages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
