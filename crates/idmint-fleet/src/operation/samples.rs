//! A small fleet in memory, for the tests of the operator's commands.

use std::time::Duration;

use crate::fleet_keys::FleetKeys;
use crate::{Coordinator, MemoryCoordinator, Transaction, Write};
use idmint_core::time::UnixNanos;

/// The instant at which tests begin.
pub(super) const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);

/// The keys of the fleet.
pub(super) fn keys() -> FleetKeys {
    FleetKeys::below("/idmint/v1/test/")
}

/// Returns the instant this many seconds after noon.
pub(super) fn after(seconds: u64) -> UnixNanos {
    NOON.after(Duration::from_secs(seconds))
}

/// Stores a value unconditionally.
pub(super) fn put(store: &MemoryCoordinator, key: String, value: Vec<u8>) {
    let write = vec![Write::put(key, value)];
    store
        .commit(&Transaction {
            write,
            ..Transaction::default()
        })
        .expect("memory answers");
}
