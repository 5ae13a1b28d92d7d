//! Converts the errors of the service to problems.

use std::time::Duration;

use super::problem::Problem;
use super::problem_catalog::Slug;
use idmint_core::id::{PrefixError, TYPE_RULE};
use idmint_core::minting::{Refusal, RequestError};
use idmint_records::conjunction::GroupRefusal;
use idmint_records::ledger::{AppendRefusal, LedgerId, NumberRefusal, PlaceError, VoidRefusal};
use idmint_service::{ServiceError, Shed, UnknownFormat, UnknownReading};
use idmint_storage::RecordError;

/// The suggested delay before a retry, for an error that does not say when a retry may succeed.
const SOON: Duration = Duration::from_secs(1);

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Problem {
        let detail = error.to_string();
        let of = |slug| Problem::new(slug, detail);
        match error {
            ServiceError::UnknownFormat(unknown) => Problem::from(unknown),
            ServiceError::NotMinted { .. } => of(Slug::InvalidParameter).reason("format"),
            ServiceError::Request(error) => Problem::from(error),
            ServiceError::Prefix(error) => Problem::from(error),
            ServiceError::Refused(refusal) => Problem::from(refusal),
            ServiceError::Records(error) => Problem::from(error),
            ServiceError::UnknownLedger(ledger) => unknown_ledger(ledger),
            ServiceError::UnknownEvent { .. }
            | ServiceError::UnknownConjunction
            | ServiceError::NothingStored
            | ServiceError::UnknownSeries(_) => of(Slug::NotFound),
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
        Problem::new(Slug::UnknownFormat, unknown.to_string()).example("GET /formats?detail=brief")
    }
}

impl From<UnknownReading> for Problem {
    fn from(unknown: UnknownReading) -> Problem {
        match unknown {
            UnknownReading::Format(unknown) => Problem::from(unknown),
            UnknownReading::Encoding { .. } => Problem::parameter("encoding", unknown.to_string()),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let detail = refusal.to_string();
        let of = |slug| Problem::new(slug, detail);
        match refusal {
            Refusal::SequenceExhausted { retry_after, .. } => {
                of(Slug::SequenceExhausted).retry_after(retry_after)
            }
            Refusal::TooMany { most, .. } => of(Slug::InvalidParameter)
                .reason("count")
                .limit(most.to_string()),
            Refusal::HorizonReached { retry_after }
            | Refusal::NoRecord { retry_after }
            | Refusal::SlotAhead { retry_after, .. }
            | Refusal::NotOpen { retry_after, .. } => {
                of(Slug::HorizonReached).retry_after(retry_after)
            }
            Refusal::StorageFailed => of(Slug::StorageUnavailable).retry_after(SOON),
            Refusal::Draining => of(Slug::Draining).retry_after(SOON),
            Refusal::ClockBehind { behind } => of(Slug::ClockBehind).retry_after(behind),
            Refusal::ClockBehindFleet { .. } => of(Slug::ClockBehind).retry_after(SOON),
            Refusal::ClockJumped { .. } | Refusal::ClockAheadOfFleet { .. } => {
                of(Slug::ClockJumped).retry_after(SOON)
            }
            Refusal::NoWorkerSlot { retry_after, .. } => {
                of(Slug::NoWorkerSlot).retry_after(retry_after)
            }
            Refusal::EpochEnded { .. } => of(Slug::EpochEnded),
            Refusal::BeforeEpoch { .. } => of(Slug::EpochEnded).reason("before_epoch"),
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
        let of = |slug| Problem::new(slug, detail);
        match error {
            RecordError::Append(refusal) => Problem::from(refusal),
            RecordError::KeyConflict => of(Slug::IdempotencyConflict).reason("idempotency_key"),
            RecordError::Group(GroupRefusal { index, error }) => {
                Problem::new(Slug::InvalidReport, format!("[{index}]: {error}"))
            }
            RecordError::Number(NumberRefusal::KeyConflict { .. }) => {
                of(Slug::IdempotencyConflict).reason("idempotency_key")
            }
            RecordError::Number(
                NumberRefusal::HasBegun { .. } | NumberRefusal::NotCorrectable { .. },
            ) => of(Slug::SeriesBegun).reason("first"),
            RecordError::Number(NumberRefusal::BeginsBelow { least, .. }) => {
                of(Slug::InvalidParameter)
                    .reason("first")
                    .limit(least.to_string())
            }
            RecordError::Number(NumberRefusal::NotAdmitted(_)) => {
                of(Slug::InvalidParameter).reason("series")
            }
            RecordError::Number(NumberRefusal::SeriesEnded { max, .. }) => {
                of(Slug::SeriesEnded).reason("count").limit(max.to_string())
            }
            RecordError::Number(NumberRefusal::Closed(closed)) => {
                let problem = of(Slug::SeriesClosed)
                    .reason("series")
                    .with("closed", closed.recorded.to_string());
                match closed.last {
                    Some(last) => problem.with("last", last.to_string()),
                    None => problem,
                }
            }
            RecordError::Number(NumberRefusal::NotHeld { .. }) => {
                of(Slug::SeriesBegun).reason("from")
            }
            RecordError::Number(NumberRefusal::ResumesOutside { least, .. }) => {
                of(Slug::InvalidParameter)
                    .reason("from")
                    .limit(least.to_string())
            }
            RecordError::Number(NumberRefusal::Held { .. }) => of(Slug::NumbersHeld),
            RecordError::Void(VoidRefusal::NotGiven { .. }) => of(Slug::NotFound),
            RecordError::Void(VoidRefusal::AlreadyVoid(_)) => {
                of(Slug::AlreadyVoid).reason("reason")
            }
            RecordError::Clock(refusal) => Problem::from(refusal),
            RecordError::Busy => of(Slug::Overloaded).reason("records").retry_after(SOON),
            RecordError::Unreachable(_) => of(Slug::CoordinatorUnavailable).retry_after(SOON),
            RecordError::Unavailable(_) => of(Slug::StorageUnavailable).retry_after(SOON),
            RecordError::Unknown => of(Slug::OutcomeUnknown),
        }
    }
}

impl From<AppendRefusal> for Problem {
    fn from(refusal: AppendRefusal) -> Problem {
        match refusal {
            AppendRefusal::UnknownLedger(ledger) => unknown_ledger(ledger),
            AppendRefusal::LedgerExists(head) => {
                let ledger = head.id.ledger().to_string();
                let detail = format!(
                    "ledger {ledger} exists already, and its head is {}",
                    head.id
                );
                Problem::new(Slug::LedgerExists, detail)
                    .with("ledger", ledger)
                    .with("head", head.id.to_string())
            }
            AppendRefusal::LedgerImporting(head) => {
                let detail = format!(
                    "ledger {} is being imported, and its last event so far is {}; other events can be appended after \
                     the last part of the import",
                    head.id.ledger(),
                    head.id
                );
                Problem::new(Slug::LedgerImporting, detail).with("head", head.id.to_string())
            }
            AppendRefusal::ImportNotBegun(head) => {
                let ledger = head.id.ledger();
                let detail = format!(
                    "ledger {ledger} is in use: beginning an import into it needs a token or certificate with the \
                     scope import"
                );
                Problem::new(Slug::Forbidden, detail)
                    .reason("scope")
                    .limit("import")
            }
            AppendRefusal::HeadMoved { expected, head } => {
                let detail = format!(
                    "expected_previous is {expected}, but the head of the ledger is {}",
                    head.id
                );
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

/// Returns the name of the error response for `refusal`, such as `clock-behind`. The readiness
/// probe reports this name as the reason.
pub(crate) fn slug_of(refusal: impl Into<Problem>) -> &'static str {
    refusal.into().slug().as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_for_writes_names_its_limit() {
        let problem = serde_json::to_value(Problem::from(RecordError::Busy)).expect("JSON");
        assert_eq!(
            (&problem["type"], &problem["reason"]),
            (&"/problems/overloaded".into(), &"records".into())
        );
    }
}
