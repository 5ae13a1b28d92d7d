//! The byte streams of a connection: tracking, buffering and limits.

mod frame_allowance;
mod head_reservation;

mod activity;

mod tls_wire;

mod outbox;
mod protocol;
mod tracked_stream;

pub(super) use activity::{
    Activity, PROGRESS_LEN, RequestBody, RequestGuard, Snapshot, State, idle_for,
};
pub(super) use frame_allowance::FrameAllowance;
pub(super) use head_reservation::HeadPayment;
pub(super) use outbox::{CoalescingStream, FlushWhenPending, Outbox};
pub(super) use protocol::{Protocol, detect_protocol};
pub(super) use tls_wire::{Socket, TlsWire};
pub(super) use tracked_stream::{LINGER_MAX, TrackedStream, Tracking};
