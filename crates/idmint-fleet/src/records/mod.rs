//! The ledgers, conjunctions and numbers that the nodes of a fleet share, stored in any
//! coordinator.
//!
//! ```text
//! keys  rows                 keys and bytes of rows
//! known_fleet                the fleet's agreement, and the check that responses are consistent
//! room                       whether the coordinator has space for more records
//! shared_store               reads and writes, and the meaning of their errors
//! ledgers  requests  conjunctions  numbers/    reads and sweeps
//! transaction_draft          comparisons and writes of one transaction
//! fleet_records              the store as a whole
//! adoption/                  copies the records of a single node that joins the fleet
//! journal/                   copies of the rows on each node, from which lost rows are recovered
//! ```
//!
//! Several nodes write the same rows, so the result of a read may already be outdated. Each write
//! therefore compares the revision of `meta`, and of every ledger head, idempotency key and pair
//! that the write is based on. A write without a response is sent again byte for byte.

mod adoption;
mod conjunctions;
mod fleet_records;
mod journal;
mod keys;
mod known_fleet;
mod ledgers;
mod numbers;
mod requests;
mod room;
mod rows;
mod shared_store;
mod transaction_draft;

pub(crate) use adoption::RecordAdopter;
pub use adoption::{AdoptError, AdoptedCount};
pub use fleet_records::FleetRecords;
pub use journal::{
    AppendJournal, DamagedPart, ImportError, JournalCopies, JournalError, JournalImport,
    JournalledFleet, LostAppend, LostConjunction, LostNumbers, Reimported,
};
pub use known_fleet::KnownFleet;
pub(crate) use known_fleet::{AgreedMeta, FleetEra, OwnKey, SharedRecords};
pub(crate) use numbers::hold_numbers;
pub use room::Room;
pub use shared_store::JOURNALLED_WITHIN;
