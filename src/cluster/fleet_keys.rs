//! Where the nodes of a fleet keep what concerns slots.

use super::nonce::Nonce;
use crate::storage::{Key, Range};

/// The keys of one namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetKeys {
    prefix: String,
}

impl FleetKeys {
    /// The keys below `prefix`, which ends with `/`.
    ///
    /// # Panics
    /// When it does not.
    pub fn below(prefix: impl Into<String>) -> FleetKeys {
        let prefix = prefix.into();
        assert!(
            prefix.ends_with('/'),
            "a prefix of keys ends with /: {prefix:?}"
        );
        FleetKeys { prefix }
    }

    /// What all nodes have agreed on.
    pub(super) fn meta(&self) -> Key {
        format!("{}meta", self.prefix)
    }

    /// Who holds a slot; under a lease.
    pub(super) fn slot(&self, slot: u32) -> Key {
        format!("{}{slot:05}", self.slots())
    }

    /// Below which instant a slot may have been used; never lowered, never deleted.
    pub(super) fn horizon(&self, slot: u32) -> Key {
        format!("{}{slot:05}", self.horizons())
    }

    /// What the clock of a process shows that is about to found the fleet; under a lease.
    pub(super) fn founder(&self, instance: Nonce) -> Key {
        format!("{}{instance}", self.founders())
    }

    /// What tells who else is about to found the fleet: `meta`, if somebody has, and all founders.
    pub(super) fn founding(&self) -> Vec<Range> {
        vec![Range::one(self.meta()), Range::prefix(self.founders())]
    }

    /// The slot whose horizon has this key.
    pub(super) fn slot_of_horizon(&self, key: &str) -> Option<u32> {
        key.strip_prefix(&self.horizons())?.parse().ok()
    }

    /// Everything that a node looks at before it takes a slot: `meta`, all horizons, all holders.
    pub fn all_slots(&self) -> Vec<Range> {
        vec![
            Range::one(self.meta()),
            Range::prefix(self.horizons()),
            Range::prefix(self.slots()),
        ]
    }

    /// What tells the clocks of all nodes: the horizons, and who is there to have written them.
    pub(super) fn clocks(&self) -> Vec<Range> {
        vec![Range::prefix(self.horizons()), Range::prefix(self.slots())]
    }

    /// What can be in the way of a slot's holder: `meta`, its horizon, its holder.
    pub(super) fn of_slot(&self, slot: u32) -> Vec<Range> {
        vec![
            Range::one(self.meta()),
            Range::one(self.horizon(slot)),
            Range::one(self.slot(slot)),
        ]
    }

    fn founders(&self) -> Key {
        format!("{}founder/", self.prefix)
    }

    fn slots(&self) -> Key {
        format!("{}slot/", self.prefix)
    }

    fn horizons(&self) -> Key {
        format!("{}hz/", self.prefix)
    }
}
