//! What a node goes by when it leases a slot.

use std::time::Duration;

use super::unheard::Founding;
use crate::cluster::agreement::OwnLayout;
use crate::cluster::fleet_keys::FleetKeys;
use crate::cluster::nonce::Nonce;
use crate::cluster::slot_share::SlotShare;
use crate::storage::KeptFormat;

/// What a node goes by when it leases a slot.
#[derive(Debug, Clone)]
pub struct LeaseRule {
    pub(super) keys: FleetKeys,
    pub(super) layout: OwnLayout,
    pub(super) node: NodeName,
    pub(super) clock: ClockLimits,
    pub(super) founding: Founding,
}

/// How wrong the clock of a node may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockLimits {
    /// How far the horizon of a slot may be ahead of it when the slot is taken.
    pub max_ahead: Duration,
    /// How far it may be from the median of the fleet's clocks.
    pub skew_max: Duration,
}

/// Who a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeName {
    /// This process.
    pub instance: Nonce,
    /// Its machine.
    pub node: String,
    /// Where it listens.
    pub addr: String,
}

impl LeaseRule {
    /// These slots, in a fleet that mints these formats. `founding` counts where there is no fleet yet.
    pub fn new(
        keys: FleetKeys,
        share: SlotShare,
        formats: Vec<KeptFormat>,
        node: NodeName,
        clock: ClockLimits,
        founding: Founding,
    ) -> LeaseRule {
        LeaseRule {
            keys,
            layout: OwnLayout { share, formats },
            node,
            clock,
            founding,
        }
    }
}
