//! Commands about the node of this machine: to run it, to check what it would be, to copy what it keeps.

mod backup;
mod check;
mod serve;

pub(super) use backup::Backup;
pub(super) use check::Check;
pub(super) use serve::Serve;
