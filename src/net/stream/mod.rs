//! The bytes of a connection: what moves, what is buffered, and what is owed for it.

mod receipts;

mod activity;

mod outbox;
mod protocol;
mod tracked_stream;

pub(super) use activity::{Activity, RequestBody, RequestGuard, Snapshot, State, TrackedAnswer};
pub(super) use outbox::{CoalescingStream, FlushWhenPending, Outbox};
pub(super) use protocol::{Protocol, detect_protocol};
pub(super) use tracked_stream::{LINGER_MAX, TrackedStream, Tracking};
