//! The storage engine of a single node: a folder with a lock, a horizon file, and a database.

mod block_file;
mod data_dir;
mod file_place;
mod file_system;
mod overlay_file;

mod database_file;

mod tables;

#[cfg(any(test, feature = "testing"))]
pub(super) mod simulation;

mod horizon;

mod adoption_note;

mod folder;

mod adopted_folder;
mod fleet_folder;
mod next_start;

mod backup_archive;
mod restore;
mod sent_backup;

#[cfg(test)]
mod flips_tests;

pub use adopted_folder::AdoptedFolder;
pub use adoption_note::{AdoptionNote, AdoptionProgress};
pub use backup_archive::write_archive;
pub use fleet_folder::FleetFolder;
pub(super) use folder::Folder;
pub use next_start::NextStart;
pub use restore::restore;
pub use sent_backup::SentBackup;
pub(crate) use tables::{Database, FormatsTable, RecordTables};
