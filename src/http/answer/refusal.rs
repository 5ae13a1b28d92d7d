//! How what the service refuses reads over HTTP.

use std::time::Duration;

use super::problem::{Problem, Slug};
use crate::conjunction::GroupRefusal;
use crate::id::{PrefixError, TYPE_RULE};
use crate::ledger::{AppendRefusal, LedgerId, NumberRefusal, PlaceError, VoidRefusal};
use crate::minting::{Refusal, RequestError};
use crate::service::{ServiceError, Shed, UnknownFormat, UnknownReading};
use crate::storage::RecordError;

/// When to ask again where no better time is known.
const SOON: Duration = Duration::from_secs(1);

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Problem {
        let detail = error.to_string();
        match error {
            ServiceError::UnknownFormat(unknown) => Problem::from(unknown),
            ServiceError::NotMinted { .. } => {
                Problem::new(Slug::InvalidParameter, detail).reason("format")
            }
            ServiceError::Request(error) => Problem::from(error),
            ServiceError::Prefix(error) => Problem::from(error),
            ServiceError::Refused(refusal) => Problem::from(refusal),
            ServiceError::Records(error) => Problem::from(error),
            ServiceError::UnknownLedger(ledger) => unknown_ledger(ledger),
            ServiceError::UnknownEvent { .. }
            | ServiceError::UnknownConjunction
            | ServiceError::NothingStored
            | ServiceError::UnknownSeries(_) => Problem::new(Slug::NotFound, detail),
        }
    }
}

impl From<Shed> for Problem {
    fn from(shed: Shed) -> Problem {
        Problem::new(Slug::Overloaded, shed.to_string())
            .reason(shed.label())
            .retry_after(SOON)
    }
}

impl From<UnknownFormat> for Problem {
    fn from(unknown: UnknownFormat) -> Problem {
        Problem::new(Slug::UnknownFormat, unknown.to_string()).example("GET /formats")
    }
}

impl From<UnknownReading> for Problem {
    fn from(unknown: UnknownReading) -> Problem {
        match unknown {
            UnknownReading::Format(unknown) => Problem::from(unknown),
            UnknownReading::Encoding(_) => {
                Problem::new(Slug::InvalidParameter, unknown.to_string()).reason("encoding")
            }
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let detail = refusal.to_string();
        match refusal {
            Refusal::SequenceExhausted { retry_after, .. } => {
                Problem::new(Slug::SequenceExhausted, detail).retry_after(retry_after)
            }
            Refusal::TooMany { most, .. } => Problem::new(Slug::InvalidParameter, detail)
                .reason("count")
                .limit(most.to_string()),
            Refusal::HorizonReached { retry_after }
            | Refusal::NoRecord { retry_after }
            | Refusal::SlotAhead { retry_after, .. }
            | Refusal::NotOpen { retry_after, .. } => {
                Problem::new(Slug::HorizonReached, detail).retry_after(retry_after)
            }
            Refusal::StorageFailed => {
                Problem::new(Slug::StorageUnavailable, detail).retry_after(SOON)
            }
            Refusal::Draining => Problem::new(Slug::Draining, detail).retry_after(SOON),
            Refusal::ClockBehind { behind } => {
                Problem::new(Slug::ClockBehind, detail).retry_after(behind)
            }
            Refusal::ClockBehindFleet { .. } => {
                Problem::new(Slug::ClockBehind, detail).retry_after(SOON)
            }
            Refusal::ClockJumped { .. } | Refusal::ClockAheadOfFleet { .. } => {
                Problem::new(Slug::ClockJumped, detail).retry_after(SOON)
            }
            Refusal::NoWorkerSlot { retry_after, .. } => {
                Problem::new(Slug::NoWorkerSlot, detail).retry_after(retry_after)
            }
            Refusal::EpochEnded { .. } => Problem::new(Slug::EpochEnded, detail),
            Refusal::BeforeEpoch { .. } => {
                Problem::new(Slug::EpochEnded, detail).reason("before_epoch")
            }
        }
    }
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Problem {
        let problem = Problem::new(Slug::InvalidParameter, error.to_string());
        match error {
            RequestError::TypeMissing { types } | RequestError::TypeUnknown { types, .. } => {
                problem.reason("type").limit(types.join(", "))
            }
            RequestError::NoTypes { .. } => problem.reason("type"),
        }
    }
}

impl From<PrefixError> for Problem {
    fn from(error: PrefixError) -> Problem {
        let problem = Problem::new(Slug::InvalidParameter, error.to_string());
        match error {
            PrefixError::TypeMissing { types } | PrefixError::TypeNotMinted { types, .. } => {
                problem.reason("type").limit(types.join(", "))
            }
            PrefixError::TypeMalformed { .. } => problem.reason("type").limit(TYPE_RULE),
            PrefixError::PrefixUnknown { prefixes, .. } => {
                problem.reason("prefix").limit(prefixes.join(", "))
            }
            PrefixError::HasTypes { .. } | PrefixError::NoPrefixes { .. } => {
                problem.reason("prefix")
            }
            PrefixError::NotCanonical {
                canonical,
                prefixes,
                ..
            } => problem
                .reason("prefix")
                .limit(format!("{} in {canonical}", prefixes.join(", "))),
        }
    }
}

impl From<RecordError> for Problem {
    fn from(error: RecordError) -> Problem {
        let detail = error.to_string();
        match error {
            RecordError::Append(refusal) => Problem::from(refusal),
            RecordError::KeyConflict => {
                Problem::new(Slug::IdempotencyConflict, detail).reason("idempotency_key")
            }
            RecordError::Group(GroupRefusal { index, error }) => {
                Problem::new(Slug::InvalidReport, format!("[{index}]: {error}"))
            }
            RecordError::Number(NumberRefusal::KeyConflict { .. }) => {
                Problem::new(Slug::IdempotencyConflict, detail).reason("idempotency_key")
            }
            RecordError::Number(NumberRefusal::HasBegun { .. }) => {
                Problem::new(Slug::SeriesBegun, detail).reason("first")
            }
            RecordError::Number(NumberRefusal::SeriesEnded { max, .. }) => {
                Problem::new(Slug::SeriesEnded, detail)
                    .reason("count")
                    .limit(max.to_string())
            }
            RecordError::Void(VoidRefusal::NotGiven { .. }) => Problem::new(Slug::NotFound, detail),
            RecordError::Void(VoidRefusal::AlreadyVoid(_)) => {
                Problem::new(Slug::AlreadyVoid, detail).reason("reason")
            }
            RecordError::Clock(refusal) => Problem::from(refusal),
            RecordError::Busy => Problem::new(Slug::Overloaded, detail).retry_after(SOON),
            RecordError::Unreachable => {
                Problem::new(Slug::CoordinatorUnavailable, detail).retry_after(SOON)
            }
            RecordError::Unavailable => {
                Problem::new(Slug::StorageUnavailable, detail).retry_after(SOON)
            }
            RecordError::Unknown => Problem::new(Slug::OutcomeUnknown, detail),
        }
    }
}

impl From<AppendRefusal> for Problem {
    fn from(refusal: AppendRefusal) -> Problem {
        match refusal {
            AppendRefusal::UnknownLedger(ledger) => unknown_ledger(ledger),
            AppendRefusal::LedgerExists(head) => {
                let ledger = head.id.ledger().to_string();
                let detail = format!("ledger {ledger} is there already, its head is {}", head.id);
                Problem::new(Slug::LedgerExists, detail)
                    .with("ledger", ledger)
                    .with("head", head.id.to_string())
            }
            AppendRefusal::LedgerImporting(head) => {
                let detail = format!(
                    "ledger {} is being imported, so far to its event {}; nothing else is appended before the last part",
                    head.id.ledger(),
                    head.id
                );
                Problem::new(Slug::LedgerImporting, detail).with("head", head.id.to_string())
            }
            AppendRefusal::ImportNotBegun(head) => {
                let ledger = head.id.ledger();
                let detail = format!(
                    "ledger {ledger} takes other events: to begin an import into it needs the scope import"
                );
                Problem::new(Slug::Forbidden, detail)
                    .reason("scope")
                    .limit("import")
            }
            AppendRefusal::HeadMoved { expected, head } => {
                let detail = format!("expected_previous is {expected}, the head is {}", head.id);
                Problem::new(Slug::HeadMoved, detail).with("head", head.id.to_string())
            }
            AppendRefusal::Event { index, error } => {
                let problem = Problem::new(Slug::InvalidEvent, format!("events[{index}]: {error}"))
                    .reason(error.code());
                match error {
                    PlaceError::NotMonotonic { last, .. } => problem.limit(format!("above {last}")),
                    PlaceError::Ahead { most, .. } => problem.limit(most.to_string()),
                    PlaceError::OtherId { .. } | PlaceError::TimeEnded => problem,
                }
            }
        }
    }
}

fn unknown_ledger(ledger: LedgerId) -> Problem {
    Problem::new(Slug::UnknownLedger, format!("there is no ledger {ledger}"))
        .example("GET /ledgers")
}

/// The slug that callers get for a refusal, for those who only ask whether this node is ready.
pub(in crate::http) fn slug_of(refusal: impl Into<Problem>) -> &'static str {
    refusal.into().slug().page().name
}
