//! The threads that write plans durably. Because of them, callers wait for the disk no longer than
//! necessary.

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
