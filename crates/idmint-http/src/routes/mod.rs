//! The request handlers, one file for each resource.

pub(crate) mod appends;
pub(crate) mod conjunctions;
pub(crate) mod decode;
pub(crate) mod decode_many;
pub(crate) mod documents;
pub(crate) mod formats;
pub(crate) mod health;
pub(crate) mod inspect;
pub(crate) mod ledger_events;
pub(crate) mod ledgers;
pub(crate) mod metrics;
pub(crate) mod mint;
pub(crate) mod numbers;
pub(crate) mod problem_page;
mod report_answers;
mod report_request;
pub(crate) mod reports;
pub(crate) mod verify;
