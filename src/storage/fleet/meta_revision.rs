//! What the fleet has agreed on, as this node knows it.

use std::sync::{Mutex, MutexGuard};

use crate::storage::coordinator::Revision;
use crate::time::UnixNanos;

/// Which fleet it is, and since which fence. A later fence has a higher floor, so of two eras of one fleet the greater one is
/// the later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FleetEra {
    /// The first name of the fleet, which a fence keeps.
    pub origin: u128,
    /// No slot is used below.
    pub floor: UnixNanos,
}

/// The revision of the key `meta` that this node has read and agrees with. Every write compares it, so a node that has not
/// seen that the fleet was fenced, or has agreed on something else, writes nothing.
#[derive(Debug, Default)]
pub struct MetaRevision(Mutex<Known>);

#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// [`Revision::ABSENT`] where there is no `meta`.
    revision: Revision,
    era: FleetEra,
    is_withdrawn: bool,
}

impl MetaRevision {
    /// The revision that was agreed with, [`Revision::ABSENT`] where there is no `meta`; `None` once it was withdrawn.
    pub fn get(&self) -> Option<Revision> {
        let known = *self.lock();
        (!known.is_withdrawn).then_some(known.revision)
    }

    /// The era of the fleet that was agreed with last.
    pub(super) fn era(&self) -> FleetEra {
        self.lock().era
    }

    /// From now on this node agrees with this revision, which is of this era.
    pub fn agree(&self, revision: Revision, era: FleetEra) {
        *self.lock() = Known { revision, era, is_withdrawn: false };
    }

    /// This node agrees with nothing until it agrees again: the coordinator has lost what it had acknowledged.
    pub fn withdraw(&self) {
        self.lock().is_withdrawn = true;
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().expect("no holder of this lock panics")
    }
}
