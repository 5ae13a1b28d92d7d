//! The protocol of a slot that is leased: what a node sends next, and what became of it. No I/O, no clock, no thread.
//!
//! ```text
//! Looking ──► Announcing ──► Asking ──► Agreeing ──► Looking     where there is no fleet
//! Looking ──► Agreeing ──► Looking ──► Claiming ──► Acquiring ──► Holding ──► Releasing ──► Released
//!    ▲  what the fleet kept            a free slot     compare      │  extend, reclaim: compare, or adopt what is known
//!    └──────────────────────────────── refused ◄────────┘           │  again by its attempt
//!    └────────────────────────── fenced: another has the slot ◄─────┘
//! ```

mod clock_check;
mod exchange;
mod founders;
mod holding;
mod looking;
mod request_outcome;
mod reservation;
mod retry;
mod rule;
mod slot_lease;
mod unheard;

#[cfg(test)]
pub(super) use exchange::Request;
pub(super) use exchange::{Acquired, Change, Reply, Step, Want};
pub use request_outcome::RequestOutcome;
pub(super) use reservation::{DEADLINE, RENEW_EVERY, Reserved};
pub use rule::{ClockLimits, LeaseRule, NodeName};
pub(super) use slot_lease::SlotLease;
pub use unheard::{Founding, Unheard};
