//! How a database lies in its file: beside each page of the engine its checksum, and a log of what was committed since the
//! engine last synced.
//!
//! The engine checks no page when it reads one, and to make one record durable it writes and syncs a dozen pages. Here every
//! page is checked when it is read, and a commit is one write behind the last one and one sync.

mod checked_pages;
mod commit_log;
mod file_view;
mod halting_file;
mod integrity;
mod layout;
mod log_item;
mod open_file;

pub(super) use commit_log::CommitLog;
pub(crate) use layout::OtherLayout;
pub(super) use open_file::{OpenFile, create, keep_others_out, open, open_locked};
