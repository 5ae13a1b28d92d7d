//! The settings with which a node leases a slot, and the durations of a lease.

use std::time::Duration;

use super::unseen::Founding;
use crate::agreement::OwnLayout;
use crate::fleet_keys::FleetKeys;
use crate::nonce::Nonce;
use idmint_storage::KeptFormat;
use idmint_storage::SlotShare;

/// The duration after which a slot's lease expires if its holder does not keep it alive.
pub(super) const LEASE: Duration = Duration::from_secs(60);

/// The time for which a holder may use its slot after it sent the last acknowledged renewal. It is
/// shorter than [`LEASE`], so the holder stops before its lease ends.
pub(crate) const DEADLINE: Duration = Duration::from_secs(50);

/// The interval between two renewals of a slot.
pub(crate) const RENEW_EVERY: Duration = Duration::from_secs(5);

/// The settings with which a node leases a slot.
#[derive(Debug, Clone)]
pub struct LeaseRule {
    pub(super) keys: FleetKeys,
    pub(super) layout: OwnLayout,
    pub(super) node: NodeName,
    pub(super) clock: ClockLimits,
    pub(super) founding: Founding,
}

/// The limits on how far a node's clock may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockLimits {
    /// The maximum lead of a slot's horizon over the clock of a node that takes the slot.
    pub max_ahead: Duration,
    /// The maximum difference between the node's clock and the median of the fleet's clocks.
    pub skew_max: Duration,
}

/// The identity of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeName {
    /// The nonce of this process.
    pub instance: Nonce,
    /// The name of the machine.
    pub node: String,
    /// The address on which the node listens.
    pub addr: String,
}

impl LeaseRule {
    /// Returns the name and the address of the node.
    pub(crate) fn node(&self) -> &NodeName {
        &self.node
    }

    /// Creates the settings with which `node` leases a slot to mint ids of `formats`. `share` has
    /// the slots that the fleet's store hands out. If the node has to create the fleet, `founding`
    /// says whether nodes of an earlier fleet may still be minting.
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
