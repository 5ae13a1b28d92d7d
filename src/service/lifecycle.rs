//! How far this process has come: starting, minting, draining.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::storage::{HorizonKeeper, RecordKeeper};

/// The threads that make durable what a session does. They are there as long as it lasts.
#[derive(Debug)]
pub struct Keepers {
    /// Of ids with memory. Before the horizon's keeper: that one closes the store, and fields are dropped in their order.
    pub records: RecordKeeper,
    /// Of the horizon.
    pub horizon: HorizonKeeper,
}

/// Starting until there are keepers, then minting; draining, once the process is told to end.
#[derive(Debug, Default)]
pub(super) struct Lifecycle {
    keepers: OnceLock<Keepers>,
    /// Written once, before the listener is told; a hint for readiness, so Relaxed.
    is_draining: AtomicBool,
}

impl Lifecycle {
    /// From now on there are keepers.
    ///
    /// # Panics
    /// When there are already.
    pub(super) fn begin(&self, keepers: Keepers) {
        assert!(self.keepers.set(keepers).is_ok(), "a program begins once");
    }

    /// The keepers; `None` while the process is starting.
    #[inline]
    pub(super) fn keepers(&self) -> Option<&Keepers> {
        self.keepers.get()
    }

    /// What has arrived is answered, but no more should come.
    pub(super) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }
}
