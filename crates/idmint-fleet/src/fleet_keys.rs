//! The keys under which a fleet stores its slots and its shared settings in the coordinator.

use super::nonce::Nonce;
use super::slot_lease::NodeName;
use crate::{Key, Lease, Range};

/// The keys of a namespace in the coordinator, for the slots and the shared settings of a fleet.
/// For example, the key of the settings is `/idmint/v1/test/meta`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetKeys {
    prefix: String,
}

impl FleetKeys {
    /// Creates the keys of a namespace. All keys begin with `prefix`, which must end with `/`.
    ///
    /// # Panics
    /// Panics if `prefix` does not end with `/`.
    pub fn below(prefix: impl Into<String>) -> FleetKeys {
        let prefix = prefix.into();
        assert!(
            prefix.ends_with('/'),
            "a prefix of keys ends with /: {prefix:?}"
        );
        FleetKeys { prefix }
    }

    /// Returns the key of the settings that all nodes share: the slots, the formats, and the floor,
    /// the time below which no id is minted.
    pub(super) fn meta(&self) -> Key {
        format!("{}meta", self.prefix)
    }

    /// Returns the key that stops all series. While the key exists, a series issues no number
    /// unless an operator has resumed that series. The operator's command `fence-restore` writes
    /// the key if a restore may have lost numbers.
    pub(super) fn number_hold(&self) -> Key {
        format!("{}number-hold", self.prefix)
    }

    /// Returns the key that names a slot's holder. The key is deleted when the holder's lease
    /// expires.
    pub(super) fn slot(&self, slot: u32) -> Key {
        format!("{}{slot:05}", self.slots())
    }

    /// Returns the key under which a process announces the [kinds of
    /// rows](crate::stored::KNOWN_ROWS) that its version can read. `instance` is the nonce of the
    /// process. The key expires with `lease`, the lease of the process's slot. The key contains the
    /// lease's id, so each lease gets its own key.
    pub(super) fn known_rows(&self, instance: Nonce, lease: Lease) -> Key {
        format!("{}{:016x}", self.known_rows_of(instance), lease.0)
    }

    /// Returns the prefix of the keys under which one process announces the kinds of rows that its
    /// version can read.
    pub(super) fn known_rows_of(&self, instance: Nonce) -> Key {
        format!("{}{instance}/", self.all_known_rows())
    }

    /// Returns the common prefix of the keys under which processes announce the kinds of rows that
    /// their versions can read.
    pub(super) fn all_known_rows(&self) -> Key {
        format!("{}knows/", self.prefix)
    }

    /// Returns the key of a slot's horizon, the time up to which the slot may be used. The horizon
    /// never moves back, and the key is never deleted.
    pub(super) fn horizon(&self, slot: u32) -> Key {
        format!("{}{slot:05}", self.horizons())
    }

    /// Returns the key under which a process announces its clock reading before it creates a new
    /// fleet. The key is deleted when the lease of the process expires.
    pub(super) fn founder(&self, instance: Nonce) -> Key {
        format!("{}{instance}", self.founders())
    }

    /// Returns the key ranges that a node reads before it creates a new fleet. The first one is the
    /// key of the fleet's agreement, which exists if another node has already created the fleet.
    /// The other one has the announcements of all nodes that want to create the fleet.
    pub(super) fn founding(&self) -> Vec<Range> {
        vec![Range::one(self.meta()), Range::prefix(self.founders())]
    }

    /// Returns the slot number if `key` is the key of a slot's horizon, and `None` otherwise.
    pub(super) fn slot_of_horizon(&self, key: &str) -> Option<u32> {
        key.strip_prefix(&self.horizons())?.parse().ok()
    }

    /// Returns the key ranges to read before a node takes a slot: the fleet's settings, the
    /// horizons and holders of all slots, and the keys of nodes without a slot.
    pub fn all_slots(&self) -> Vec<Range> {
        vec![
            Range::one(self.meta()),
            Range::prefix(self.horizons()),
            Range::prefix(self.slots()),
            Range::prefix(self.waiting_nodes()),
        ]
    }

    /// Returns the key that a node rewrites while it has no slot. If the key is missing, or was
    /// last written before the node's last write, the store has lost data. The key is never
    /// deleted, and a later process of the same node uses it again.
    pub(super) fn waiting(&self, node: &NodeName) -> Key {
        format!("{}{}/{}", self.waiting_nodes(), node.node, node.addr)
    }

    /// Returns the key ranges with the clock readings of all nodes. These are the horizons of all
    /// slots, which contain the readings, and the holders of all slots.
    pub(super) fn clocks(&self) -> Vec<Range> {
        vec![Range::prefix(self.horizons()), Range::prefix(self.slots())]
    }

    /// Returns the key ranges that show why the coordinator refused to renew a slot: the fleet's
    /// settings, the slot's horizon and its holder.
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

    /// Returns the common prefix of the keys that name the slots' holders.
    pub(super) fn slots(&self) -> Key {
        format!("{}slot/", self.prefix)
    }

    fn waiting_nodes(&self) -> Key {
        format!("{}waiting/", self.prefix)
    }

    fn horizons(&self) -> Key {
        format!("{}hz/", self.prefix)
    }
}
