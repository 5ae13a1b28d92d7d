//! The threads that make plans durable, so that no caller waits for the disk longer than it must.

mod horizon_keeper;

mod anchor_sweep;
mod clock_check;
mod job;
mod record_error;
mod record_keeper;
mod record_writer;
mod report_tallies;
mod request_sweep;
mod round;

pub use horizon_keeper::{ExtensionCounts, HorizonKeeper, KeeperState};
pub use job::{Appended, Numbered};
pub use record_error::{RecordError, log_unreadable};
pub use record_keeper::RecordKeeper;
