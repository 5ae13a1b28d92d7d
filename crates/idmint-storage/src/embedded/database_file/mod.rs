//! The file format of a database: the engine's pages with checksums, and a log of the commits since
//! the engine last synced.
//!
//! On its own, the engine does not verify pages when it reads them. The engine also writes and
//! syncs a dozen pages to make one record durable. With this format, every page is verified when it
//! is read, and a commit needs only one write and one sync.

mod checked_pages;
mod commit_log;
mod file_view;
mod halting_file;
mod integrity;
mod layout;
mod log_item;
mod open_file;

pub(super) use commit_log::CommitLog;
pub(super) use halting_file::HaltingFile;
pub(crate) use layout::OtherLayout;
pub(super) use open_file::{OpenFile, create, keep_others_out, open, open_locked};
