//! Files outside the engines.
//!
//! ```text
//! file_replacement    replaced in one step
//! checked_file        replaced in one step, and read only as it was written
//! ```

mod checked_file;
mod file_replacement;

pub use checked_file::CheckedFile;
pub use file_replacement::replace_file;
