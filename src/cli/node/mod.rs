//! Commands about a node. They run the node, check its configuration, back it up, restore it, and
//! query its state.

mod backup;
mod check;
mod health;
mod restore;
mod serve;
mod status;

pub(super) use backup::Backup;
pub(super) use check::Check;
pub(super) use health::Health;
pub(super) use restore::Restore;
pub(super) use serve::Serve;
pub(super) use status::Status;
