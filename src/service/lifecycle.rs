//! How far this process has come: starting, minting, draining.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cluster::SlotKeeper;
use crate::storage::{HorizonKeeper, RecordKeeper};
use crate::time::UnixNanos;

/// The thread that reserves the time in which ids are minted by number.
#[derive(Debug)]
pub enum Reserver {
    /// On the disk of a node that is alone.
    Horizon(HorizonKeeper),
    /// In the coordinator of a fleet, with the slot.
    Slot(SlotKeeper),
}

impl Reserver {
    /// Asks for more time soon; waits for nothing.
    pub fn refill(&self) {
        match self {
            Reserver::Horizon(keeper) => keeper.refill(),
            // A slot is renewed by the clock, long before half of its time is used.
            Reserver::Slot(_) => {}
        }
    }

    /// Asks for time up to `needed`, and waits until it is reserved, or until it is known that there is none.
    ///
    /// Returns whether to try again; if not, the disk failed.
    pub async fn raise_to(&self, needed: UnixNanos) -> bool {
        match self {
            Reserver::Horizon(keeper) => keeper.raise_to(needed).await,
            Reserver::Slot(keeper) => {
                keeper.raise_to(needed).await;
                true
            }
        }
    }
}

/// Starting until there are keepers: of the records as soon as they can be served, of the horizon once ids are minted by
/// number. Draining, once the process is told to end.
#[derive(Debug, Default)]
pub(super) struct Lifecycle {
    records: OnceLock<RecordKeeper>,
    reserver: OnceLock<Reserver>,
    /// Written once, before the listener is told; a hint for readiness, so Relaxed.
    is_draining: AtomicBool,
}

impl Lifecycle {
    /// From now on records are served.
    ///
    /// # Panics
    /// When they are already.
    pub(super) fn serve_records(&self, records: RecordKeeper) {
        assert!(
            self.records.set(records).is_ok(),
            "a program has one keeper of records"
        );
    }

    /// From now on time to mint in is reserved.
    ///
    /// # Panics
    /// When it is already.
    pub(super) fn begin(&self, reserver: Reserver) {
        assert!(self.reserver.set(reserver).is_ok(), "a program begins once");
    }

    /// The keeper of the records; `None` until they are served.
    pub(super) fn records(&self) -> Option<&RecordKeeper> {
        self.records.get()
    }

    /// What reserves time; `None` while the process is starting.
    #[inline]
    pub(super) fn reserver(&self) -> Option<&Reserver> {
        self.reserver.get()
    }

    /// What has arrived is answered, but no more should come.
    pub(super) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }
}
