//! The shared store of a fleet, as the protocols see it: a few keys, and transactions that compare before they write.
//!
//! What a coordinator can do is what etcd can do, and no more; `etcd/` speaks to one. One in memory serves a process that keeps
//! nothing, and tests, which have it fail on purpose. Three rules hold for whoever uses it:
//!
//! - Every write is a transaction that compares the revision it was decided on. A read is a hint.
//! - Only an outcome says that something was written. No answer says nothing.
//! - A transaction without an answer is sent again byte for byte, or given up; it is never made anew from later values under
//!   the same comparison. So at most one copy of it can commit: the first changes what the others compare.

mod coordinator;
mod member;
mod memory_coordinator;
mod transaction;

pub use coordinator::{Coordinator, CoordinatorError};
pub use member::{Member, MemberState, Space};
pub(crate) use memory_coordinator::MemoryCoordinator;
pub use transaction::{
    Compare, Key, KeyValue, Lease, Outcome, Range, Revision, Snapshot, Transaction, Write,
};
