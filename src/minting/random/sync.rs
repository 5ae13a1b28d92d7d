//! The atomics of random ids that follow each other: the standard ones, or those of the model checker that tries every interleaving.

#[cfg(idmint_loom)]
pub(super) use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(idmint_loom))]
pub(super) use std::sync::atomic::{AtomicU64, Ordering};
