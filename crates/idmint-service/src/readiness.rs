//! Reports whether this node is ready to mint ids that contain the time, and to store records.

use super::error::ServiceError;
use super::expiry::ExpiryKind;
use super::service::Service;
use idmint_core::minting::Refusal;
use idmint_core::time::UnixNanos;
use idmint_storage::Reserver;

/// The readiness of this node, and the reasons why it is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReadiness {
    /// The slot that this node holds, which determines the worker numbers in its ids. `None` if
    /// this node holds no slot.
    pub slot: Option<u32>,
    /// The horizon, which is the time up to which this node may mint ids, or the reason why it
    /// mints no sequenced ids, which contain the time.
    pub horizon: Result<UnixNanos, Refusal>,
    /// `Ok` if new records can be stored, or else the reason why not.
    pub records: Result<(), ServiceError>,
    /// `true` if series issue no numbers after a restore from a backup, until an operator resumes
    /// them.
    pub holds_numbers: bool,
    /// `true` if this node is shutting down.
    pub is_draining: bool,
    /// Warnings about credentials that have expired or expire within 30 days. For tokens, the
    /// warnings give only the number of tokens and not their names, because callers without a token
    /// can read these warnings, too.
    pub warnings: Vec<String>,
}

impl Service {
    /// Returns the readiness of this node.
    pub fn readiness(&self) -> NodeReadiness {
        let is_draining = self.is_draining();
        let session = if is_draining {
            Err(Refusal::Draining)
        } else {
            self.session()
        };
        let records = self.can_append();
        NodeReadiness {
            slot: self.slot(),
            horizon: session.map(|session| session.horizon()),
            records,
            holds_numbers: self
                .record_writer_handle()
                .is_some_and(|writer| writer.records().holds_numbers()),
            is_draining,
            warnings: self.expiry_warnings(),
        }
    }

    fn expiry_warnings(&self) -> Vec<String> {
        let now = self.clock().now();
        let mut near = self.expiries();
        near.retain(|expiry| expiry.is_near(now));
        let (tokens, files): (Vec<_>, Vec<_>) = near
            .into_iter()
            .partition(|expiry| expiry.kind == ExpiryKind::Token);
        let mut warnings: Vec<_> = files
            .iter()
            .filter_map(|expiry| expiry.warning(now))
            .collect();
        warnings.extend((!tokens.is_empty()).then(|| {
            format!(
                "tokens: {} expired or expire within 30 days; `idmint check` names them",
                tokens.len()
            )
        }));
        warnings
    }

    /// Returns the slot of this node, which is either configured or leased. Returns `None` if this
    /// node has no slot.
    fn slot(&self) -> Option<u32> {
        let leased = || self.reserver().and_then(Reserver::leased_slot);
        self.parts.slot.or_else(leased)
    }

    fn can_append(&self) -> Result<(), ServiceError> {
        let writer = self.writer()?;
        writer.can_append().map_err(ServiceError::Records)
    }
}
