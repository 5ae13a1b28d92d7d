//! The slots of a fleet, and who has them.

use super::renewals::ClockBounds;
use crate::cluster::nonce::Nonce;
use crate::cluster::slot_share::SlotShare;
use crate::time::UnixNanos;

/// What all nodes have agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgreedFleet {
    /// Which fleet it is.
    pub fleet: Nonce,
    /// No slot is used below this instant.
    pub floor: UnixNanos,
    /// The slots that its nodes may take.
    pub share: SlotShare,
    /// The formats that are minted.
    pub formats: Vec<String>,
}

/// One slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Its number.
    pub slot: u32,
    /// Its horizon; `None` if it was never used.
    pub horizon: Option<UnixNanos>,
    /// Who has it.
    pub state: SlotState,
}

/// Who has a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotState {
    /// A node.
    Held(Holder),
    /// Nobody, and its last holder may use it until its horizon has passed.
    Resting,
    /// Nobody.
    Free,
    /// What is stored about it cannot be read, so it is not used.
    Unreadable,
}

/// The node that has a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its machine.
    pub node: String,
    /// Where it listens.
    pub addr: String,
    /// Since when, by its own clock.
    pub since: UnixNanos,
    /// What its clock showed when it renewed its slot last.
    pub renewed_at: Option<UnixNanos>,
    /// How far its clock is ahead. `None`: it has not renewed while it was watched.
    pub clock: Option<ClockBounds>,
}
