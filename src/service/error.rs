//! Why the service did not do what it was asked.

use crate::conjunction::GroupRefusal;
use crate::id::{PrefixError, Rule};
use crate::ledger::{EventId, LedgerId, SeriesName};
use crate::minting::{Refusal, RequestError};
use crate::service::formats::UnknownFormat;
use crate::storage::RecordError;

/// Nothing was done, unless it says that this is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// No format has this name.
    #[error(transparent)]
    UnknownFormat(#[from] UnknownFormat),
    /// The format is only read.
    #[error("`{format}` is decoded and not minted here (rule {})", .rule.name())]
    NotMinted {
        /// The format.
        format: String,
        /// Its rule.
        rule: Rule,
    },
    /// The format does not have what was asked for.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The format does not have what was asked to stand before its ids.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    /// Ids by number cannot be minted now.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Ids with memory cannot be had, or not so.
    #[error(transparent)]
    Records(#[from] RecordError),
    /// No ledger has this id.
    #[error("there is no ledger {0}")]
    UnknownLedger(LedgerId),
    /// The ledger has no event of this id.
    #[error("ledger {ledger} has no event {event}")]
    UnknownEvent {
        /// The ledger.
        ledger: LedgerId,
        /// What it does not have.
        event: EventId,
    },
    /// No series has this name.
    #[error("there is no series {0}")]
    UnknownSeries(SeriesName),
    /// No conjunction of this id is stored.
    #[error("no conjunction of this id is stored")]
    UnknownConjunction,
    /// Conjunctions are not stored.
    #[error("conjunctions are not stored here: conjunction.mode is \"pure\"")]
    NothingStored,
}

/// Why reports get no ids; then none of them does.
#[derive(Debug)]
pub enum GroupFailure {
    /// One of the reports is at fault.
    Report(GroupRefusal),
    /// None of them is.
    Service(ServiceError),
}
