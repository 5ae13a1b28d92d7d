//! The slots of a fleet, and their holders.

use super::renewals::ClockBounds;
use crate::nonce::Nonce;
use idmint_core::time::UnixNanos;
use idmint_storage::SlotShare;

/// The settings that all nodes of a fleet share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgreedFleet {
    /// The name of the fleet.
    pub fleet: Nonce,
    /// The floor. No id is minted in the fleet for a time before this instant.
    pub floor: UnixNanos,
    /// The slots that the fleet's nodes may take.
    pub share: SlotShare,
    /// The names of the formats that the fleet mints.
    pub formats: Vec<String>,
}

/// One slot of a fleet, with its horizon and holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The number of the slot.
    pub slot: u32,
    /// The slot's horizon, the time up to which ids may have been minted in the slot. `None` if the
    /// slot was never used or its record cannot be read.
    pub horizon: Option<UnixNanos>,
    /// The state of the slot.
    pub state: SlotState,
}

/// The state of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotState {
    /// A node holds the slot.
    Held(Holder),
    /// No node holds the slot, but its last holder may still use it until the slot's horizon has
    /// passed.
    Resting,
    /// No node holds or uses the slot.
    Free,
    /// The stored record of the slot cannot be read. No node uses the slot.
    Unreadable,
}

/// The node that holds a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The name of the machine on which the node runs.
    pub node: String,
    /// The address on which the node listens.
    pub addr: String,
    /// The time at which the node took the slot, according to the node's own clock.
    pub since: UnixNanos,
    /// The node's clock reading when it last reserved time in the slot, or `None` if no time was
    /// ever reserved.
    pub renewed_at: Option<UnixNanos>,
    /// Bounds on how far the node's clock is ahead of this machine's clock. They are computed from
    /// the renewals that were observed. `None` if no renewal was observed yet.
    pub clock: Option<ClockBounds>,
}
