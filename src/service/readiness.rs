//! Whether this node mints, and if not, why.

use super::error::ServiceError;
use super::service::Service;
use crate::minting::Refusal;
use crate::time::UnixNanos;

/// How this node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// The slot it holds.
    pub slot: u32,
    /// The first instant that is not reserved, or why nothing sequenced is minted.
    pub horizon: Result<UnixNanos, Refusal>,
    /// Whether events are appended, or why not.
    pub records: Result<(), ServiceError>,
}

impl Service {
    /// Whether this node mints, and if not, why.
    pub fn readiness(&self) -> Readiness {
        let session = if self.lifecycle.is_draining() { Err(Refusal::Draining) } else { self.session() };
        let records = self.can_append();
        Readiness { slot: self.parts.slot, horizon: session.map(|session| session.horizon()), records }
    }

    fn can_append(&self) -> Result<(), ServiceError> {
        let keeper = self.record_keeper().ok_or_else(|| self.not_begun())?;
        keeper.can_append().map_err(ServiceError::Records)
    }
}
