//! Internal to idmint: durable state. It consists of the horizon, the formats that were minted, and
//! the records.
//!
//! ```text
//! failure, files/               errors of every engine, and files outside the engines
//! kept_formats, records/        the stored data
//! start                         the steps of a start, whose order is enforced by types
//! reserver                      the trait that reserves time for minting, as the service sees it
//! embedded/                     a folder: a lock, the horizon file, a commit log and redb tables
//! long_work_threads             threads of a lower priority, for work that takes long
//! memory_engine                 the same tables over redb's in-memory backend
//! writers/                      the threads that make plans durable
//! conformance/                  the checks for every store; each store runs them as tests
//! ```
//!
//! Outside of tests, no other crate uses redb directly. Start reading at [`RecordStore`], the
//! interface between the code that decides and the code that stores, and at [`Opened`], where a
//! start begins. The settings of a fleet are also here, because every build parses them, with or
//! without fleet support.

#![cfg_attr(
    not(test),
    expect(clippy::disallowed_methods, reason = "the crate that writes files")
)]

mod failure;
mod files;

mod kept_formats;
mod long_work_threads;
mod records;
#[cfg(any(test, feature = "testing"))]
pub mod samples;
mod start;

mod embedded;
mod etcd_settings;
mod memory_engine;
mod slot_share;

mod engine;

mod reserver;
mod writers;

#[cfg(any(test, feature = "testing"))]
pub mod conformance;

#[cfg(any(test, feature = "testing"))]
pub use embedded::simulation::{SimulatedDatabase, SimulatedDisk, SimulatedHorizon};
pub use embedded::{
    AdoptedFolder, AdoptionNote, AdoptionProgress, FleetFolder, NextStart, SentBackup, restore,
    write_archive,
};
pub use engine::{OwnEngine, StatedFloor};
pub use etcd_settings::{EtcdAccess, EtcdEndpoint, EtcdSettings, EtcdTls, Namespace};
pub use failure::{FailureKind, Obstacle, StoreError, WithCauses};
pub use files::{CheckedFile, FolderLock, replace_file};
pub use kept_formats::{Difference, FormatsError, KeptFormat, differences};
pub use long_work_threads::{LongWorkThreads, thread_time};
pub use memory_engine::MemoryEngine;
pub use records::{
    AgreedRules, AnchorKey, BackedUp, ConjunctionStore, CountedAnchor, DoneRequest, LedgerStore,
    LedgerSummary, ListPlace, ListRange, NumberRecord, NumberStore, RecordPlan, RecordStore,
    Records, RequestStore, SeriesState, SeriesSummary, StoredAnchor, StoredAppend,
    StoredConjunction, StoredPair, TextChange, WriteError, WrittenDay, days_to_forget,
    remembered_among, remembered_since, rows,
};
pub use reserver::{RequestOutcome, Reserver, ReserverCounts, Waiting};
pub use slot_share::{SlotRange, SlotShare};
pub use start::{AgreedRestart, FirstReserved, FirstStart, Opened, Restart, Store};
pub use writers::{
    Appended, HorizonWriterHandle, Numbered, RecordError, RecordWriterHandle, WriterState,
    log_unreadable,
};
