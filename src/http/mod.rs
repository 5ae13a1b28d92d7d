//! The API over HTTP: one file for each resource, and what every request and every answer has in common.

mod api;
mod appends;
mod decode;
mod decode_many;
mod documents;
mod formats;
mod grouping;
mod health;
mod idempotency_key;
mod ledger_names;
mod ledgers;
mod metrics_page;
mod mint;
pub mod problem_page;
mod refusal;
mod report_forms;
mod reports;
mod router;
mod service;
mod service_metrics;
mod soon;
mod spelling;
mod texts;
mod verify;

pub mod body;
pub mod edge;
pub mod fallback;
pub mod json;
pub mod metrics;
pub mod problem;
mod problem_catalog;
pub mod query;
pub mod representation;
pub mod request_id;

pub use api::Api;
pub use problem::{Problem, Slug};
pub use router::paths;
pub use service::{Conjunctions, Outgoing, RequestLimits, Service, SiqDefaults};
pub use service_metrics::ServiceMetrics;
pub use soon::Soon;
