//! The errors of the service.

use crate::formats::UnknownFormat;
use idmint_core::id::{PrefixError, Rule};
use idmint_core::minting::{Refusal, RequestError};
use idmint_records::conjunction::GroupRefusal;
use idmint_records::ledger::{EventId, LedgerId, SeriesName};
use idmint_storage::RecordError;

/// An error of the service. The request had no effect, unless the error says that its outcome is
/// unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// No format has this name.
    #[error(transparent)]
    UnknownFormat(#[from] UnknownFormat),
    /// No id of this format is minted, because minting is off or the format can only be decoded.
    #[error("`{format}` is decoded but not minted here ({})", why_not_minted(.format, *.rule))]
    NotMinted {
        /// The name of the format.
        format: String,
        /// The rule by which the ids of the format are created.
        rule: Rule,
    },
    /// The format does not support the request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The format does not support the requested prefix.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    /// Sequenced ids, which contain the time, cannot be minted at the moment.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store of ledgers, conjunctions and numbers refused the request, or cannot serve it at
    /// the moment.
    #[error(transparent)]
    Records(#[from] RecordError),
    /// No ledger has this id.
    #[error("there is no ledger {0}")]
    UnknownLedger(LedgerId),
    /// The ledger has no event with this id.
    #[error("ledger {ledger} has no event {event}")]
    UnknownEvent {
        /// The id of the ledger.
        ledger: LedgerId,
        /// The id of the event.
        event: EventId,
    },
    /// No series has this name.
    #[error("there is no series {0}")]
    UnknownSeries(SeriesName),
    /// No conjunction with this id is stored.
    #[error("no conjunction of this id is stored")]
    UnknownConjunction,
    /// This service stores no conjunctions.
    #[error("conjunctions are not stored here: conjunction.mode is \"pure\"")]
    NothingStored,
}

/// Returns the reason why a format is not minted, such as `formats.payment.mint = false`.
fn why_not_minted(format: &str, rule: Rule) -> String {
    if rule.is_minted() {
        format!("formats.{format}.mint = false")
    } else {
        format!("rule {}", rule.name())
    }
}

/// The reason why assigning ids to conjunction reports failed. Either no report got an id, or the
/// outcome is unknown, or ids from other organizations were possibly not stored.
#[derive(Debug)]
pub enum GroupFailure {
    /// One of the reports in the request is invalid.
    Report(GroupRefusal),
    /// The service failed. None of the reports is invalid.
    Service(ServiceError),
}
