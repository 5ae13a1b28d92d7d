//! The engine of a single node: a folder with a lock, a horizon and a database.

pub(in crate::storage) mod anchor_row;
pub(in crate::storage) mod append_row;
mod block_file;
mod data_dir;
mod database;
mod formats_table;
mod horizon_block;
mod horizon_file;
mod records;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod simulated_backend;
mod store;

pub use append_row::{AppendRow, DoneRequest};
pub use data_dir::{DataDir, DataDirError, FoundFiles};
pub use database::{Database, DatabaseError};
pub use formats_table::{Difference, FormatsError, FormatsTable, KeptFormat};
pub use horizon_file::{Damage, HorizonError, HorizonFile};
pub use records::{AnchorPlace, LedgerSummary, Records, WriteError};
#[cfg(test)]
pub(in crate::storage) use simulated::Fault;
#[cfg(test)]
pub(in crate::storage) use simulated_backend::SimulatedBackend;
pub use store::{EmbeddedStore, OpenError};
