//! Files outside the engines.
//!
//! ```text
//! file_replacement    replaced in one step
//! checked_file        replaced in one step, and read only as it was written
//! folder_lock         a folder that one process has to itself
//! ```

mod checked_file;
mod file_replacement;
mod folder_lock;

pub use checked_file::CheckedFile;
pub use file_replacement::replace_file;
pub use folder_lock::FolderLock;
pub(in crate::storage) use folder_lock::FolderLockError;
