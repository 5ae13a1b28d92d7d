//! Atomics and locks from the standard library, or from loom when the model checks are compiled.

#[cfg(idmint_loom)]
pub(crate) use loom::hint::spin_loop;
#[cfg(idmint_loom)]
pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};
#[cfg(idmint_loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(idmint_loom))]
pub(crate) use std::hint::spin_loop;
#[cfg(not(idmint_loom))]
pub(crate) use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};
#[cfg(not(idmint_loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};
