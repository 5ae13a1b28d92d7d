//! Commands about conjunctions: ids into documents, ids without a service, and what a service stores.

mod offline;

mod cdm;
mod stored;

pub(super) use cdm::Cdm;
pub(super) use offline::GroupedOffline;
pub(super) use stored::Conjunction;
