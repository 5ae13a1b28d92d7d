//! Commands about a node: to run it, to check what it would be, to copy what it keeps, to ask how it is.

mod backup;
mod check;
mod health;
mod serve;
mod status;

pub(super) use backup::Backup;
pub(super) use check::Check;
pub(super) use health::Health;
pub(super) use serve::Serve;
pub(super) use status::Status;
