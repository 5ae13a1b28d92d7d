//! Whether this node mints, and if not, why.

use super::error::ServiceError;
use super::lifecycle::Reserver;
use super::service::Service;
use crate::minting::Refusal;
use crate::time::UnixNanos;

/// How this node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// The slot it holds, if it does.
    pub slot: Option<u32>,
    /// The first instant that is not reserved, or why nothing sequenced is minted.
    pub horizon: Result<UnixNanos, Refusal>,
    /// Whether events are appended, or why not.
    pub records: Result<(), ServiceError>,
}

impl Service {
    /// Whether this node mints, and if not, why.
    pub fn readiness(&self) -> Readiness {
        let session = if self.lifecycle.is_draining() {
            Err(Refusal::Draining)
        } else {
            self.session()
        };
        let records = self.can_append();
        Readiness {
            slot: self.slot(),
            horizon: session.map(|session| session.horizon()),
            records,
        }
    }

    /// The slot that this node holds; `None` while it has none.
    fn slot(&self) -> Option<u32> {
        match self.reserver() {
            Some(Reserver::Slot(keeper)) => keeper.slot(),
            Some(Reserver::Horizon(_)) | None => self.parts.slot,
        }
    }

    fn can_append(&self) -> Result<(), ServiceError> {
        let keeper = self.record_keeper().ok_or_else(|| self.not_begun())?;
        keeper.can_append().map_err(ServiceError::Records)
    }
}
