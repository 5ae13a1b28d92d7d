//! A coordinator whose data is in etcd.
//!
//! ```text
//! failure             whether a failed request was certainly not done, or may have been done
//! members             the members of etcd, which are tried in turn
//! transactions        translates transactions to etcd's types, and responses back
//! etcd_coordinator    the blocking client
//! ```

#[cfg(feature = "etcd")]
mod etcd_coordinator;
#[cfg(feature = "etcd")]
mod failure;
#[cfg(feature = "etcd")]
mod members;
#[cfg(feature = "etcd")]
mod transactions;

use std::sync::Arc;

use crate::Coordinator;
use idmint_storage::{EtcdSettings, StoreError};

/// Returns a client for the etcd in the settings. The client connects on first use, and reconnects
/// whenever necessary.
///
/// # Errors
/// Returns [`StoreError`] if a file that the settings name cannot be read or is invalid, or if this
/// build does not include etcd.
#[cfg(feature = "etcd")]
pub fn connect(settings: &EtcdSettings) -> Result<Arc<dyn Coordinator>, StoreError> {
    Ok(Arc::new(etcd_coordinator::EtcdCoordinator::new(settings)?))
}

/// Returns a client for the etcd in the settings. The client connects on first use, and reconnects
/// whenever necessary.
///
/// # Errors
/// Returns [`StoreError`] if a file that the settings name cannot be read or is invalid, or if this
/// build does not include etcd.
#[cfg(not(feature = "etcd"))]
pub fn connect(_: &EtcdSettings) -> Result<Arc<dyn Coordinator>, StoreError> {
    Err(StoreError::new(
        idmint_storage::FailureKind::Disagrees,
        "this build has no etcd: build with --features etcd",
    ))
}
