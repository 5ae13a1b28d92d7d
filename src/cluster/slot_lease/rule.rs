//! What a node goes by when it leases a slot.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::cluster::agreement::OwnLayout;
use crate::cluster::fleet_keys::FleetKeys;
use crate::cluster::token::Token;
use crate::storage::KeptFormat;

/// What a node goes by when it leases a slot.
#[derive(Debug, Clone)]
pub struct LeaseRule {
    pub(super) keys: FleetKeys,
    pub(super) layout: OwnLayout,
    pub(super) node: NodeName,
    pub(super) ahead_max: Duration,
}

/// Who a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeName {
    /// This process.
    pub instance: Token,
    /// Its machine.
    pub node: String,
    /// Where it listens.
    pub addr: String,
}

impl LeaseRule {
    /// Slots from 0 to below `slots`, in a fleet that mints these formats.
    ///
    /// `ahead_max`: how far the horizon of a slot may be ahead of the clock when it is taken.
    pub fn new(
        keys: FleetKeys,
        slots: NonZeroU32,
        formats: Vec<KeptFormat>,
        node: NodeName,
        ahead_max: Duration,
    ) -> LeaseRule {
        LeaseRule { keys, layout: OwnLayout { slots, formats }, node, ahead_max }
    }
}
