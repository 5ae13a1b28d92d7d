//! Assembly: a configuration becomes a running service.

pub mod config;

mod access;
mod answerer;
mod assembly;
mod banner;
mod clock_watch;
mod fleet;
mod formats;
mod process;
mod reload;
mod run;
mod start;
mod telemetry;
mod warnings;

pub use access::{AccessError, Callers, TlsError, check_access};
pub use assembly::{
    AssemblyError, assemble, check_all_slots, decoding, kept_formats, known_domains, lane_rule,
};
pub use banner::{banner, formats_table, reachable};
pub use formats::{Catalog, CatalogError, OtherGeneratorError, other_generators};
pub use process::{BACKUP_SOCKET, BackupReply, InheritedError, InheritedSocket};
pub use run::{RunError, Running, check_slot, open, run};
pub use start::{RunOptions, StartError, StartRule, TestRun, begin};
pub use telemetry::{AuditError, Telemetry};
pub use warnings::warnings;
