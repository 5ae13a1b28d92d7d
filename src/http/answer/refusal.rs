//! How a refusal of the mint reads over HTTP.

use std::time::Duration;

use super::problem::{Problem, Slug};
use crate::conjunction::GroupRefusal;
use crate::minting::{OrderError, Refusal};
use crate::storage::RecordError;

/// When to ask again where no better time is known.
const SOON: Duration = Duration::from_secs(1);

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let detail = refusal.to_string();
        match refusal {
            Refusal::SequenceExhausted { retry_after, .. } => {
                Problem::new(Slug::SequenceExhausted, detail).retry_after(retry_after)
            }
            Refusal::TooMany { most, .. } => {
                Problem::new(Slug::InvalidParameter, detail).reason("count").limit(most.to_string())
            }
            Refusal::HorizonReached { retry_after } => {
                Problem::new(Slug::HorizonReached, detail).retry_after(retry_after)
            }
            Refusal::StorageFailed => Problem::new(Slug::StorageUnavailable, detail).retry_after(SOON),
            Refusal::Draining => Problem::new(Slug::Draining, detail).retry_after(SOON),
            Refusal::ClockBehind { behind } => Problem::new(Slug::ClockBehind, detail).retry_after(behind),
            Refusal::ClockJumped { .. } => Problem::new(Slug::ClockJumped, detail).retry_after(SOON),
            Refusal::EpochEnded { .. } => Problem::new(Slug::EpochEnded, detail),
            Refusal::BeforeEpoch { .. } => Problem::new(Slug::EpochEnded, detail).reason("before_epoch"),
        }
    }
}

impl From<OrderError> for Problem {
    fn from(error: OrderError) -> Problem {
        let problem = Problem::new(Slug::InvalidParameter, error.to_string());
        match error {
            OrderError::TypeMissing { types } | OrderError::TypeUnknown { types, .. } => {
                problem.reason("type").limit(types.join(", "))
            }
            OrderError::NoTypes { .. } => problem.reason("type"),
            OrderError::NotMinted { .. } => problem.reason("format"),
        }
    }
}

impl From<RecordError> for Problem {
    fn from(error: RecordError) -> Problem {
        let detail = error.to_string();
        match error {
            RecordError::Append(refusal) => Problem::from(refusal),
            RecordError::KeyConflict => Problem::new(Slug::IdempotencyConflict, detail).reason("idempotency_key"),
            RecordError::Group(GroupRefusal { index, error }) => {
                Problem::new(Slug::InvalidReport, format!("[{index}]: {error}"))
            }
            RecordError::Busy => Problem::new(Slug::Overloaded, detail).retry_after(SOON),
            RecordError::Unavailable => Problem::new(Slug::StorageUnavailable, detail).retry_after(SOON),
            RecordError::Unknown => Problem::new(Slug::OutcomeUnknown, detail),
        }
    }
}

/// The slug that callers get for a refusal, for those who only ask whether this node is ready.
pub(in crate::http) fn slug_of(refusal: &Refusal) -> &'static str {
    Problem::from(refusal.clone()).slug().page().name
}
