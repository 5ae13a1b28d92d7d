//! Commands about conjunctions (close approaches of two objects in space): inserting ids into
//! documents, minting ids without a service, and copying stored conjunctions.

mod offline;

mod cdm;
mod stored;

pub(super) use cdm::Cdm;
pub(super) use offline::GroupedOffline;
pub(super) use stored::Conjunction;
