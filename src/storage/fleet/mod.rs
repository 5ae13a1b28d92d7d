//! Ledgers, conjunctions and numbers that nodes share, on any coordinator.
//!
//! ```text
//! keys  rows                 what is stored, under which keys
//! known_fleet                what the fleet has agreed on, as this node knows it, and whether an answer follows from it
//! room                       whether the coordinator has room for more
//! shared_store               reads and writes, and what their errors mean
//! ledgers  requests  conjunctions/  numbers/   what is read, and what is forgotten
//! round                      what one transaction compares and writes
//! fleet_records              all of it, as an engine
//! adoption/                  records of a node that moves in, as they are
//! journal/                   what was committed for a node, kept by it, for a coordinator that has lost it
//! ```
//!
//! Several nodes write here. So each write compares the heads, the keys of requests and the pairs that it was decided on, by
//! their revisions, and what the fleet has agreed on (`meta`); what is read is a hint. A write without an answer is
//! repeated byte for byte.

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

pub use adoption::{AdoptError, AdoptedCount, RecordAdopter};
pub use fleet_records::FleetRecords;
pub use journal::{
    AppendJournal, ImportError, JournalCopies, JournalError, JournalImport, LostAppend,
    LostConjunction, LostNumbers, Reimported,
};
pub use known_fleet::{AgreedMeta, FleetEra, KnownFleet, OwnHorizon};
pub use room::Room;
pub use shared_store::JOURNALLED_WITHIN;
