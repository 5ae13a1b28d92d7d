//! Where state lasts: the horizon, the folder it lies in, and the agreed formats.

mod causes;
#[cfg(test)]
mod conformance;
pub mod embedded;
mod keepers;
mod memory;
mod record_plan;
#[cfg(test)]
mod sample_orders;
mod store;
mod trouble;

pub use causes::WithCauses;
pub use embedded::{
    AnchorPlace, AppendRow, Damage, DataDir, DataDirError, Database, DatabaseError, Difference, DoneRequest,
    EmbeddedStore, FormatsError, FormatsTable, FoundFiles, HorizonError, HorizonFile, KeptFormat, LedgerSummary,
    OpenError, Records, WriteError,
};
pub use keepers::{
    Appended, ExtensionCounts, HorizonKeeper, KeeperState, RecordError, RecordKeeper, make_durable, unreadable,
};
pub use memory::MemoryStore;
pub use record_plan::RecordPlan;
pub use store::{FoundHorizon, Store};
pub use trouble::Trouble;
