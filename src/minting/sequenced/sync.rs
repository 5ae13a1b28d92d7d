//! The atomics and the lock of the mint path: the standard ones, or those of the model checker that tries every interleaving.

#[cfg(idmint_loom)]
pub(in crate::minting) use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(idmint_loom)]
pub(in crate::minting) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(idmint_loom))]
pub(in crate::minting) use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(idmint_loom))]
pub(in crate::minting) use std::sync::{Mutex, MutexGuard};
