//! Whether this node mints, and if not, why.

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
}

impl Service {
    /// Whether this node mints, and if not, why.
    pub fn readiness(&self) -> Readiness {
        let session = if self.lifecycle.is_draining() { Err(Refusal::Draining) } else { self.session() };
        Readiness { slot: self.parts.slot, horizon: session.map(|session| session.horizon()) }
    }
}
