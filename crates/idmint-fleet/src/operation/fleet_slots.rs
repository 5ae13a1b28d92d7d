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
    /// The floor: no id is minted in the fleet for a time before this instant.
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
    /// The horizon of the slot, the time up to which the slot may have been used. `None` if the
    /// slot was never used or its record cannot be read.
    pub horizon: Option<UnixNanos>,
    /// The use of the slot by a node.
    pub state: SlotState,
}

/// The use of a slot by a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotState {
    /// A node holds the slot.
    Held(Holder),
    /// No node holds the slot, but its last holder may still use it until the slot's horizon (the
    /// end of the reserved time) has passed.
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
    /// The time at which the node became the holder of the slot, according to the node's own clock.
    pub since: UnixNanos,
    /// The reading of the node's clock when it last reserved time for the slot, or `None` if no
    /// time was ever reserved for the slot.
    pub renewed_at: Option<UnixNanos>,
    /// Bounds on how far the node's clock is ahead of this machine's clock. They follow from the
    /// clock reading in each renewal of the slot. `None` before a renewal was observed.
    pub clock: Option<ClockBounds>,
}
