//! The threads that make plans durable, so that no caller waits for the disk longer than it must.

mod anchor_sweep;
mod horizon_keeper;
mod key_index;
mod record_keeper;
mod round;

pub use horizon_keeper::{ExtensionCounts, HorizonKeeper, KeeperState, make_durable};
pub use record_keeper::{Appended, RecordError, RecordKeeper, unreadable};
