//! A small fleet in memory, for the tests of this folder.

use std::time::Duration;

use crate::cluster::fleet_keys::FleetKeys;
use crate::storage::{Coordinator, MemoryCoordinator, Transaction, Write};
use crate::time::UnixNanos;

/// When tests begin.
pub(super) const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);

/// Where the fleet is kept.
pub(super) fn keys() -> FleetKeys {
    FleetKeys::below("/idmint/v1/test/")
}

/// So many seconds after noon.
pub(super) fn after(seconds: u64) -> UnixNanos {
    NOON.after(Duration::from_secs(seconds))
}

/// Stores a value, whatever is there.
pub(super) fn put(store: &MemoryCoordinator, key: String, value: Vec<u8>) {
    let write = vec![Write::put(key, value)];
    store
        .commit(&Transaction {
            write,
            ..Transaction::default()
        })
        .expect("memory answers");
}
