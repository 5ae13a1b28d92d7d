//! Internal to idmint: the service, which mints and decodes ids, appends events, groups reports,
//! and reports its own state.
//!
//! Both HTTP requests and offline commands call this crate. The crate does not depend on HTTP, and
//! does not know whether the node runs alone or in a fleet. The crate only sees a store of records
//! and a `Reserver`, which reserves time for minting. The module `load` limits the memory, the
//! requests and the long work of all callers together. Start reading at [`Service::mint`].

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod counters;
mod error;
mod expiry;

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

pub use conjunctions::{ConjunctionList, GroupedReports, ListQuery, ListedConjunction, NEAR_MAX};
pub use counters::{DecodeOutcome, ServiceCounters};
pub use decoding::{Decoding, DecodingAt, UnknownReading};
pub use error::{GroupFailure, ServiceError};
pub use expiry::{Expiry, ExpiryKind};
pub use formats::{Formats, IdSource, ServedFormat, UnknownFormat};
pub use ledgers::{ListPage, PAGE_LEN};
pub use load::{
    BudgetOwner, BulkPass, Load, MemoryBudget, MemoryReservation, PeerBulk, PendingBodies,
    PendingBody, Place, ReservedBody, Sender, Shed, ShedCounts, WorkLimits, network_of,
};
pub use mint::MaybeReady;
pub use numbers::NumberPage;
pub use readiness::NodeReadiness;
pub use service::{Conjunctions, RequestLimits, Service, ServiceParts, SiqDefaults};
