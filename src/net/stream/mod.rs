//! The bytes of a connection: what moves, and what is buffered.

mod frame_allowance;
mod head_payment;

mod activity;

mod tls_wire;

mod socket;

mod begun_stream;
mod outbox;
mod protocol;
mod tracked_stream;

pub(super) use activity::{
    Activity, PROGRESS_LEN, RequestBody, RequestGuard, Snapshot, State, idle_for,
};
pub(super) use frame_allowance::FrameAllowance;
pub(super) use head_payment::HeadPayment;
pub(super) use outbox::{CoalescingStream, FlushWhenPending, Outbox};
pub(super) use protocol::{Protocol, detect_protocol};
pub(super) use socket::Socket;
pub(super) use tls_wire::TlsWire;
pub(super) use tracked_stream::{LINGER_MAX, TrackedStream, Tracking};
