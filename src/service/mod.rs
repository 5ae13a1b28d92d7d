//! What the program does, whoever asks: mint, append, group, decode.

mod counters;
mod grouping;
mod maybe_ready;
mod service;

pub use counters::ServiceMetrics;
pub(crate) use grouping::Ungrouped;
pub use maybe_ready::Soon;
pub use service::{Conjunctions, Outgoing, RequestLimits, Service, SiqDefaults};
