//! The protocol of a leased slot: which request comes next, and what its reply changes. The
//! protocol itself has no I/O, no clock and no threads.
//!
//! ```text
//! Looking ──► Announcing ──► Asking ──► Agreeing ──► Looking     if there is no fleet
//! Looking ──► Agreeing ──► Looking ──► Claiming ──► Acquiring ──► Holding ──► Releasing ──► Released
//!    ▲  read meta and slots            a free slot     compare      │  extend, reclaim: compare, or recognize
//!    └──────────────────────────────── refused ◄────────┘           │  the own write by its attempt
//!    └────────────────────────── fenced: another node has it ◄──────┘
//! ```

mod clock_check;
mod exchange;
mod founders;
mod holding;
mod looking;
mod reservation;
mod retry;
mod rule;
mod slot_lease;
mod unseen;

#[cfg(test)]
pub(super) use exchange::Request;
pub(super) use exchange::{Acquired, Change, Reply, Step, Want};
pub(super) use reservation::Reserved;
pub use rule::{ClockLimits, LeaseRule, NodeName};
pub(super) use rule::{DEADLINE, RENEW_EVERY};
pub(super) use slot_lease::SlotLease;
pub use unseen::{Founding, UnseenNodes};
