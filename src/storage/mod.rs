//! Where state lasts: the horizon, the folder it lies in, and the agreed formats.
//!
//! In reading order:
//!
//! - [`trouble`], [`causes`]: what a failed start means to whoever started it, and how to tell them.
//! - [`block_file`], [`simulated`], `simulated_backend`: a file of fixed blocks, a disk that fails on demand, and a database
//!   on it.
//! - [`horizon_block`], [`horizon_file`]: one checksummed copy of the horizon, and the file that holds two of them.
//! - [`data_dir`]: the folder, its lock and its probe.
//! - [`database`], [`formats_table`]: the transactional database, and the formats it remembers.
//! - [`append_row`], `anchor_row`, [`records`]: ids with memory, as rows, and the tables of them; `conformance`, what every
//!   engine does with them.
//! - [`memory`], [`embedded`], [`store`]: the engines, and the one type the rest of the program holds.
//! - [`horizon_keeper`]: the thread that makes horizons durable.
//! - `key_index`, `anchor_sweep`, `round`, [`record_keeper`]: the requests of the last day, the end of old anchors, what
//!   one transaction decides, and the thread that makes records durable.

pub mod causes;
pub mod trouble;

pub mod block_file;
#[cfg(test)]
mod sample_orders;
pub mod simulated;
#[cfg(test)]
mod simulated_backend;

pub mod horizon_block;
pub mod horizon_file;

pub mod data_dir;

pub mod database;
pub mod formats_table;

mod anchor_row;
pub mod append_row;
#[cfg(test)]
mod conformance;
pub mod records;

mod anchor_sweep;
pub mod embedded;
pub mod horizon_keeper;
mod key_index;
pub mod memory;
pub mod record_keeper;
mod round;
pub mod store;

pub use append_row::{AppendRow, DoneRequest};
pub use causes::WithCauses;
pub use data_dir::{DataDir, DataDirError, FoundFiles};
pub use database::{Database, DatabaseError};
pub use embedded::{EmbeddedStore, OpenError};
pub use formats_table::{Difference, FormatsError, FormatsTable, KeptFormat};
pub use horizon_file::{Damage, HorizonError, HorizonFile};
pub use horizon_keeper::{ExtensionCounts, HorizonKeeper, KeeperState, make_durable};
pub use memory::MemoryStore;
pub use record_keeper::{Appended, RecordError, RecordKeeper, unreadable};
pub use records::{AnchorPlace, LedgerSummary, Records, WriteError};
pub use store::{FoundHorizon, Store};
pub use trouble::Trouble;
