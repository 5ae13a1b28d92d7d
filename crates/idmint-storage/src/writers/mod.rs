//! The threads that write to the store. One thread raises the horizon, the time up to which ids may
//! be minted. The thread does this early, so that minting seldom waits for the disk. The other
//! thread writes the records of many requests in one transaction, so that these requests share one
//! wait for the disk.

mod horizon_writer;

mod anchor_sweep;
mod clock_check;
mod job;
mod record_error;
mod record_writer;
mod record_writer_handle;
mod report_counts;
mod request_sweep;
mod round;

pub use horizon_writer::{HorizonWriterHandle, WriterState};
pub use record_error::{RecordError, log_unreadable};
pub use record_writer_handle::RecordWriterHandle;
pub use round::{Appended, Numbered};
