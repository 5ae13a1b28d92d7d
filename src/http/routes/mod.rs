//! One file for each resource.

pub(in crate::http) mod appends;
pub(in crate::http) mod conjunctions;
pub(in crate::http) mod decoding;
pub(in crate::http) mod documents;
pub(in crate::http) mod formats;
pub(in crate::http) mod health;
pub(in crate::http) mod ledger_events;
pub(in crate::http) mod ledgers;
pub(in crate::http) mod metrics;
pub(in crate::http) mod mint;
pub(in crate::http) mod numbers;
pub(in crate::http) mod problem_page;
pub(in crate::http) mod reporting;
pub(in crate::http) mod verify;
