//! The interface to the store that the nodes of a fleet share: keys with values, and transactions
//! that compare revisions before they write.
//!
//! The interface has only operations that etcd supports. The client of etcd is in `etcd/`. The
//! coordinator in memory is for tests only, which use it to inject failures. Three rules hold for
//! all callers:
//!
//! - Every write is a transaction that compares the revision of the data that it is based on. The
//!   result of a read may already be outdated.
//! - Only an outcome proves that a write was done. A missing response proves nothing.
//! - A transaction without a response is either sent again byte for byte, or abandoned. The
//!   transaction is never rebuilt with new values under the same comparison. At most one copy can
//!   then commit, because the first copy to commit changes the revisions that the other copies
//!   compare.

mod coordinator;
mod member;
#[cfg(any(test, feature = "testing"))]
mod memory_coordinator;
mod transaction;

pub use coordinator::{Coordinator, CoordinatorError};
pub use member::{Member, MemberState, Space};
#[cfg(any(test, feature = "testing"))]
pub use memory_coordinator::MemoryCoordinator;
pub(crate) use transaction::REQUEST_BYTES_MAX;
pub use transaction::{
    Compare, Key, KeyValue, Lease, Outcome, Range, Revision, Snapshot, Term, Transaction, Write,
};
