//! Files that do not belong to a storage engine.
//!
//! ```text
//! file_replacement    atomic replacement of a file
//! checked_file        atomic replacement, and a checksum that is verified on every read
//! folder_lock         exclusive lock on a folder, held by one process
//! ```

mod checked_file;
mod file_replacement;
mod folder_lock;

pub use checked_file::CheckedFile;
pub use file_replacement::replace_file;
pub use folder_lock::FolderLock;
pub(crate) use folder_lock::FolderLockError;
