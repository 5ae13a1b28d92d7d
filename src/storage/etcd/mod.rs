//! The engine of a fleet: an etcd that all nodes share.
//!
//! ```text
//! settings            where it is, and how it lets us in
//! failure             what an error of it means: certainly not done, or perhaps
//! members             its members, asked in turn
//! transactions        what the protocols ask, in its words
//! etcd_coordinator    all of it, for callers that wait
//! ```

mod settings;

#[cfg(feature = "etcd")]
mod etcd_coordinator;
#[cfg(feature = "etcd")]
mod failure;
#[cfg(feature = "etcd")]
mod members;
#[cfg(feature = "etcd")]
mod transactions;

use std::sync::Arc;

pub use settings::{EtcdAccess, EtcdEndpoint, EtcdSettings, EtcdTls, Namespace};

use crate::storage::coordinator::Coordinator;
use crate::storage::failure::StoreError;

impl EtcdSettings {
    /// A client of this etcd. It connects when it is first asked, and again whenever it has to.
    ///
    /// # Errors
    /// [`StoreError`]: a file cannot be read or is not what it should be, or this build has no etcd.
    #[cfg(feature = "etcd")]
    pub fn connect(&self) -> Result<Arc<dyn Coordinator>, StoreError> {
        Ok(Arc::new(etcd_coordinator::EtcdCoordinator::new(self)?))
    }

    /// A client of this etcd. It connects when it is first asked, and again whenever it has to.
    ///
    /// # Errors
    /// [`StoreError`]: a file cannot be read or is not what it should be, or this build has no etcd.
    #[cfg(not(feature = "etcd"))]
    pub fn connect(&self) -> Result<Arc<dyn Coordinator>, StoreError> {
        let refusal = "this build has no etcd: build with --features etcd";
        Err(StoreError::new(
            crate::storage::failure::FailureKind::Disagrees,
            refusal,
        ))
    }
}
