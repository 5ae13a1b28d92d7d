//! What all nodes of a fleet have agreed on.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::value::{self, StoredInstant, ValueError, millis};
use crate::cluster::nonce::Nonce;
use crate::cluster::slot_share::{SlotRange, SlotShare};
use crate::time::UnixNanos;

/// One fleet: how its worker numbers are dealt out, and what its ids are made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::cluster) struct FleetMeta {
    #[serde(
        rename = "v",
        skip_serializing,
        deserialize_with = "value::skip_version"
    )]
    version: (),
    /// Which fleet it is: another one after it was restored from a backup.
    pub(in crate::cluster) fleet: Nonce,
    /// Which fleets it was before, each until the next fence; its own name where a fence found none and was told of none. So what
    /// nobody has fenced has no name here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::cluster) former: Vec<Nonce>,
    /// How many slots there are.
    pub(in crate::cluster) slots: NonZeroU32,
    /// Which of them are handed out here; all if that is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cluster) share: Option<SlotRange>,
    /// No slot is used below this instant, whatever its horizon says; whole milliseconds.
    #[serde(rename = "floor_ms", with = "millis")]
    pub(in crate::cluster) floor: UnixNanos,
    /// No fence goes below, however far ahead it is: up to here single nodes minted that were adopted.
    #[serde(rename = "least_ms", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cluster) least: Option<StoredInstant>,
    /// What makes the ids of each minted format comparable, and under a name of its own what each of its encodings writes.
    pub(in crate::cluster) formats: BTreeMap<String, BTreeMap<String, String>>,
}

impl FleetMeta {
    pub(in crate::cluster) fn new(fleet: Nonce, share: SlotShare, floor: UnixNanos) -> FleetMeta {
        FleetMeta {
            version: (),
            fleet,
            former: Vec::new(),
            slots: share.slots(),
            share: share.as_part(),
            floor: value::ceil_to_millis(floor),
            least: None,
            formats: BTreeMap::new(),
        }
    }

    /// Which fleet it was at first: a fence changes its name, and not what it is.
    pub(in crate::cluster) fn origin(&self) -> Nonce {
        self.former.first().copied().unwrap_or(self.fleet)
    }

    /// Gives it another name and floor; `known_as` are fleets that it is known to have been where it says nothing of that itself.
    pub(in crate::cluster) fn fence(&mut self, fleet: Nonce, floor: UnixNanos, known_as: &[Nonce]) {
        self.former.push(self.fleet);
        for name in known_as {
            if !self.former.contains(name) {
                self.former.push(*name);
            }
        }
        (self.fleet, self.floor) = (fleet, floor);
    }

    /// Whether an operator has said by a fence that it goes on from what was lost.
    pub(in crate::cluster) fn is_fenced(&self) -> bool {
        !self.former.is_empty()
    }

    /// The slots that are handed out here.
    pub(in crate::cluster) fn share(&self) -> SlotShare {
        self.share
            .and_then(|part| SlotShare::part(self.slots, part))
            .unwrap_or(SlotShare::all(self.slots))
    }

    pub(in crate::cluster) fn to_bytes(&self) -> Vec<u8> {
        value::write(self)
    }

    pub(in crate::cluster) fn from_bytes(bytes: &[u8]) -> Result<FleetMeta, ValueError> {
        value::read(bytes)
    }
}
