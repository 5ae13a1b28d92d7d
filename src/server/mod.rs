//! Turns a configuration into a running service.

pub mod config;

mod access;
mod answerer;
mod assembly;
mod banner;
mod catalog;
mod clock_watch;
mod expiries;
#[cfg(feature = "etcd")]
mod fleet;
mod free_space;
mod named_callers;
mod other_generator;
mod process;
mod reload;
mod run;
mod start;
mod state;
mod telemetry;
mod warnings;

pub use access::{AccessError, AccessSummary, TlsError, check_access, check_callers};
pub use assembly::{
    AssemblyError, assemble, check_all_slots, decoding, kept_formats, known_domains, lane_rule,
};
pub use banner::{banner, formats_table, reachable};
pub use catalog::{Catalog, CatalogError};
pub use expiries::{etcd_tls, read_etcd_expiries};
pub use other_generator::{OtherGeneratorError, other_generators};
pub use process::{
    BACKUP_SOCKET, BackupReply, InheritedError, InheritedSocket, TO_CLIENT, check_backup_folder,
    fit_connections,
};
pub use run::{RunError, Running, check_addresses, check_slot, open, run};
pub use start::{RunOptions, StartError, StartRule, TestRun, begin, check_data_dir};
pub use telemetry::{AuditError, Telemetry};
pub use warnings::warnings;
