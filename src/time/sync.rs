//! The atomics of the clock: those of the standard library, or those of the model checker.

#[cfg(idmint_loom)]
pub(super) use loom::hint::spin_loop;
#[cfg(idmint_loom)]
pub(super) use loom::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};
#[cfg(not(idmint_loom))]
pub(super) use std::hint::spin_loop;
#[cfg(not(idmint_loom))]
pub(super) use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};
