//! How far this process has come: starting, minting, draining.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::storage::{HorizonKeeper, RecordKeeper};

/// Starting until there are keepers: of the records as soon as they can be served, of the horizon once ids are minted by
/// number. Draining, once the process is told to end.
#[derive(Debug, Default)]
pub(super) struct Lifecycle {
    records: OnceLock<RecordKeeper>,
    horizon: OnceLock<HorizonKeeper>,
    /// Written once, before the listener is told; a hint for readiness, so Relaxed.
    is_draining: AtomicBool,
}

impl Lifecycle {
    /// From now on records are served.
    ///
    /// # Panics
    /// When they are already.
    pub(super) fn serve_records(&self, records: RecordKeeper) {
        assert!(self.records.set(records).is_ok(), "a program has one keeper of records");
    }

    /// From now on the horizon is raised.
    ///
    /// # Panics
    /// When it is already.
    pub(super) fn begin(&self, horizon: HorizonKeeper) {
        assert!(self.horizon.set(horizon).is_ok(), "a program begins once");
    }

    /// The keeper of the records; `None` until they are served.
    pub(super) fn records(&self) -> Option<&RecordKeeper> {
        self.records.get()
    }

    /// The keeper of the horizon; `None` while the process is starting.
    #[inline]
    pub(super) fn horizon(&self) -> Option<&HorizonKeeper> {
        self.horizon.get()
    }

    /// What has arrived is answered, but no more should come.
    pub(super) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }
}
