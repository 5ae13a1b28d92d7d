//! Where state lasts: the horizon, the formats that were minted, and the records of ids with memory.
//!
//! From top to bottom; a file uses what stands above it:
//!
//! ```text
//! failure/, files/                                        errors of every engine, and files outside the engines
//! kept_formats, records/                                  what is stored
//! start                                                   what may be done first, kept by types
//! coordinator/                                            what nodes share, as the protocols of a fleet see it
//! embedded/  fleet/                                       records in the tables of a database, and in rows of a coordinator
//! memory/  etcd/                                          what is gone with the process; a coordinator that is an etcd
//! engine                                                  the door: opens the engine of the configuration
//! keepers/                                                the threads that make plans durable
//! conformance/                                            what every engine has to do, as tests; samples has their data
//! ```
//!
//! Nothing outside `embedded/` names its database. Another coordinator is one more folder, one variant
//! of [`EngineChoice`], and one line of the conformance tests.

mod failure;
mod files;

mod kept_formats;
mod records;
#[cfg(test)]
pub(crate) mod samples;
mod start;

mod coordinator;
mod embedded;
mod etcd;
mod fleet;
mod memory;

mod engine;

mod keepers;

#[cfg(test)]
mod conformance;

#[cfg(test)]
pub(crate) use coordinator::MemoryCoordinator;
pub use coordinator::{
    Compare, Coordinator, CoordinatorError, Key, KeyValue, Lease, Member, MemberState, Outcome,
    Range, Revision, Snapshot, Space, Transaction, Write,
};
#[cfg(test)]
pub(crate) use embedded::simulation::{SimulatedDisk, SimulatedHorizon};
pub use embedded::{AdoptedFolder, AdoptedNode, AdoptionNote, AdoptionProgress, FleetFolder};
pub use engine::{EngineChoice, OwnEngine};
pub use etcd::{EtcdAccess, EtcdEndpoint, EtcdSettings, EtcdTls, Namespace};
pub use failure::{FailureKind, StoreError, WithCauses};
pub use files::{CheckedFile, FolderLock, replace_file};
pub use fleet::{
    AdoptError, AdoptedCount, AgreedMeta, AppendJournal, FleetEra, FleetRecords, ImportError,
    JOURNALLED_WITHIN, JournalCopies, JournalError, JournalImport, KnownFleet, LostAppend,
    LostConjunction, LostNumbers, OwnHorizon, RecordAdopter, Reimported, Room,
};
pub use keepers::{
    Appended, ExtensionCounts, HorizonKeeper, KeeperState, Numbered, RecordError, RecordKeeper,
    log_unreadable,
};
pub use kept_formats::{Difference, FormatsError, KeptFormat};
pub use records::{
    AnchorKey, BackedUp, DoneRequest, LedgerSummary, ListPlace, ListRange, NumberRecord,
    NumberStore, RecordPlan, RecordStore, Records, SeriesSummary, StoredAnchor, StoredAppend,
    StoredConjunction, StoredPair, TalliedAnchor, WriteError, WrittenDay, remembered_among,
};
pub use start::{AgreedRestart, FirstReserved, FirstStart, Opened, Restart, Store};
