//! What the program does, whoever asks: mint, append, group and decode, and say how it is.
//!
//! A request over HTTP and a command offline end here alike. Nothing in this folder knows HTTP.

mod counters;
mod error;
mod lifecycle;
mod maybe_ready;

mod decoding;
mod formats;
mod load;

mod service;

mod conjunctions;
mod ledgers;
mod metrics;
mod mint;
mod numbers;
mod readiness;

pub use conjunctions::{
    CONJUNCTIONS_MAX, ConjunctionList, GroupedReports, ListQuery, ListedConjunction,
};
pub use counters::{DecodeOutcome, ServiceCounters};
pub use decoding::{Decoding, DecodingAt, UnknownReading};
pub use error::{GroupFailure, ServiceError};
pub use formats::{Formats, IdSource, ServedFormat, UnknownFormat};
pub use ledgers::{PAGE_LEN, Page};
pub use lifecycle::Reserver;
pub use load::{
    AwaitedBodies, AwaitedBody, BulkPass, Charge, Load, MemoryBudget, Payer, Requests, Sender,
    Shed, ShedCounts, network_of,
};
pub use maybe_ready::MaybeReady;
pub use readiness::Readiness;
pub use service::{Conjunctions, RequestLimits, Service, ServiceParts, SiqDefaults};
