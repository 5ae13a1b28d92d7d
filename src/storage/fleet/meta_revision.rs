//! What the fleet has agreed on, as this node knows it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::storage::coordinator::Revision;

/// No revision: they are numbers of 63 bits.
const WITHDRAWN: u64 = u64::MAX;

/// The revision of the key `meta` that this node has read and agrees with. Every write compares it, so a node that has not
/// seen that the fleet was fenced, or has agreed on something else, writes nothing.
#[derive(Debug, Default)]
pub struct MetaRevision {
    /// Written by whoever has checked what `meta` says. Relaxed: it stands for itself, and a late value costs a refusal.
    revision: AtomicU64,
}

impl MetaRevision {
    /// The revision that was agreed with, [`Revision::ABSENT`] where there is no `meta`; `None` once it was withdrawn.
    pub fn get(&self) -> Option<Revision> {
        Some(self.revision.load(Ordering::Relaxed)).filter(|revision| *revision != WITHDRAWN).map(Revision)
    }

    /// From now on this node agrees with this revision.
    pub fn agree(&self, revision: Revision) {
        self.revision.store(revision.0, Ordering::Relaxed);
    }

    /// This node agrees with nothing until it agrees again: the coordinator has lost what it had acknowledged.
    pub fn withdraw(&self) {
        self.revision.store(WITHDRAWN, Ordering::Relaxed);
    }
}
