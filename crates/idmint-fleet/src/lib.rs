//! Internal to idmint: a fleet of nodes that share a coordinator. The nodes lease slots, which
//! determine their worker numbers, and store their records as rows.
//!
//! ```text
//! coordinator/                   the shared store as the protocols see it: compare-then-write transactions
//! etcd/                          a coordinator backed by etcd; the feature `etcd` adds the client
//! records/                       ledgers, conjunctions and numbers as rows; journals; adoption
//! nonce, fleet_keys, stored/     the stored values and their keys
//! agreement, slot_choice         the formats that the fleet agreed on, and the slots that a node may take
//! fleet_clocks                   the clocks of the other nodes, and whether this node's clock is plausible
//! high_water/                    acknowledged revisions and horizons; detects a coordinator that lost them
//! slot_lease/                    the protocol of a slot: the next request, and what its reply means; no I/O
//! leased_slots                   sessions of the mint: begun, extended and ended with the slot
//! slot_keeper                    the thread that sends the requests
//! operation/                     operator commands: status, fence, adoption
//! simulation/                    tests: many nodes over a coordinator with every kind of fault
//! ```
//!
//! Leases and clocks decide which node works and when it stops, but uniqueness of ids never depends
//! on them. Uniqueness depends only on the horizon of a slot, which is the time up to which the
//! slot may mint. A horizon never moves back. Each transaction that moves a horizon compares the
//! revision that the decision was based on. Start reading at `slot_lease/slot_lease.rs`.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod coordinator;
mod etcd;
mod records;

mod fleet_keys;
mod nonce;
mod stored;

mod agreement;
mod fleet_clocks;
mod high_water;
mod slot_choice;

mod slot_lease;

mod leased_slots;
mod slot_keeper;

mod operation;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod simulation;

pub use fleet_keys::FleetKeys;
pub use high_water::{HighWater, KeptHighWater};
pub use operation::{
    Adopted, AdoptedRecords, Adoption, AdoptionError, AdoptionStep, AgreedFleet, ClockBounds,
    FenceError, FenceRule, FleetProblem, FleetStatus, FleetWatch, Holder, RestoreFence, Slot,
    SlotState, Unseen, fence_restored, names_of_restored, problem_of_members, problem_of_shares,
    raise_restored_floor,
};
pub use slot_keeper::SlotKeeper;

pub use nonce::{Entropy, Nonce};
pub use slot_lease::{ClockLimits, Founding, LeaseRule, NodeName, UnseenNodes};

#[cfg(any(test, feature = "testing"))]
pub use coordinator::MemoryCoordinator;
pub use coordinator::{
    Compare, Coordinator, CoordinatorError, Key, KeyValue, Lease, Member, MemberState, Outcome,
    Range, Revision, Snapshot, Space, Term, Transaction, Write,
};
pub use etcd::connect;
pub use records::{
    AdoptError, AdoptedCount, AppendJournal, DamagedPart, FleetRecords, ImportError,
    JOURNALLED_WITHIN, JournalCopies, JournalError, JournalImport, JournalledFleet, KnownFleet,
    LostAppend, LostConjunction, LostNumbers, Reimported, Room,
};
pub(crate) use records::{AgreedMeta, FleetEra, OwnKey, RecordAdopter};
