//! The agreement that all nodes of a fleet share, as stored.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::value::{self, StoredInstant, ValueError, millis};
use crate::nonce::Nonce;
use crate::records::SharedRecords;
use idmint_core::time::UnixNanos;
use idmint_storage::{SlotRange, SlotShare};

/// The version of the agreement if the last `fence-restore` command stopped all series. Programs
/// that do not know this stop refuse to read this version.
const VERSION_WITH_HOLD: u32 = 2;

/// The version of the agreement while an adoption is incomplete. Programs that would issue numbers
/// nevertheless refuse to read this version.
const VERSION_WITH_ADOPTION: u32 = 3;

/// The version of the fleet's stored settings once the fleet has adopted a single node. Programs
/// that would remove the ids of adoptions refuse to read this version.
const VERSION_WITH_ADOPTED: u32 = 4;

/// The stored agreement that all nodes of a fleet share: its slots (places for nodes), the id
/// formats that it mints, and its floor, the time below which no id is minted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FleetMeta {
    #[serde(
        rename = "v",
        skip_serializing,
        deserialize_with = "value::skip_version"
    )]
    version: (),
    /// The fleet's current name. Every fence replaces it.
    pub(crate) fleet: Nonce,
    /// The fleet's earlier names. Each `fence-restore` command gives the fleet a new name, and adds
    /// the former one here. So the list is empty until the first such command. If the command finds
    /// neither a fleet nor an earlier name, it adds the new name itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) former: Vec<Nonce>,
    /// The number of slots.
    pub(crate) slots: NonZeroU32,
    /// The slots that this coordinator hands out, or `None` if it hands out all slots of the fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) share: Option<SlotRange>,
    /// The number of times that an operator has fenced the fleet. Fences by early versions of this
    /// program were not counted.
    #[serde(default, skip_serializing_if = "value::is_zero")]
    pub(crate) fences: u32,
    /// The floor. No id is minted for a time before this instant, not even in a slot whose reserved
    /// time ends earlier. A whole number of milliseconds.
    #[serde(rename = "floor_ms", with = "millis")]
    pub(crate) floor: UnixNanos,
    /// The time up to which single nodes had minted ids before the fleet adopted them. A fence
    /// never sets the floor below this instant, even if it is far ahead. Every adoption raises this
    /// instant by at least 1 ms. So an earlier instant shows that the store has lost an adoption.
    #[serde(rename = "least_ms", default, skip_serializing_if = "Option::is_none")]
    pub(crate) least: Option<StoredInstant>,
    /// The ids of all complete adoptions, which are also in the adoption notes of the folders.
    /// Earlier versions of this program stored no ids.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) adoptions: BTreeSet<String>,
    /// The ids of the adoptions that the last `fence-restore` command found missing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) lost_adoptions: BTreeSet<String>,
    /// `true` if the last `fence-restore` command, run by an operator after a restore, found that
    /// records are missing. Nodes neither read nor write records until the next such command.
    /// Otherwise a new record could take the place of a missing one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) lacks_records: bool,
    /// The incomplete adoption of a single node's records, or `None`. Nodes neither read nor write
    /// records until the adoption is complete, because a series could issue its first numbers
    /// again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) adopting: Option<Adopting>,
    /// `true` if the last `fence-restore` command stopped all series. The agreement is then stored
    /// as version 2. Programs that cannot read the row `number-hold`, which stores the stop, refuse
    /// that version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) may_hold_numbers: bool,
    /// The description of each id format that the fleet mints, for comparison with a node's
    /// configuration. Each encoding of a format has a separate entry.
    pub(crate) formats: BTreeMap<String, BTreeMap<String, String>>,
}

/// An incomplete adoption. The value is the adoption's id, which the note in the adopted folder
/// also contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Adopting {
    /// The folder's records are being compared with the fleet's. No record has been copied yet, so
    /// another adoption may begin, and a fence ends this state.
    Comparing(String),
    /// The folder's records are being copied. This state ends only when all of them have been
    /// copied, because a series with only some of its rows could issue its numbers again.
    Copying(String),
}

impl FleetMeta {
    pub(crate) fn new(fleet: Nonce, share: SlotShare, floor: UnixNanos) -> FleetMeta {
        FleetMeta {
            version: (),
            fleet,
            former: Vec::new(),
            fences: 0,
            slots: share.slots(),
            share: share.as_part(),
            floor: value::ceil_to_millis(floor),
            least: None,
            adoptions: BTreeSet::new(),
            lost_adoptions: BTreeSet::new(),
            lacks_records: false,
            adopting: None,
            may_hold_numbers: false,
            formats: BTreeMap::new(),
        }
    }

    /// Returns the fleet's first name, which identifies the fleet. A fence changes only the current
    /// name.
    pub(crate) fn origin(&self) -> Nonce {
        self.former.first().copied().unwrap_or(self.fleet)
    }

    /// Gives the fleet a new name and a new floor. Nodes notice the fence by the new name. Adds the
    /// old name to `former`, and also the names in `known_as`, which nodes still use.
    pub(crate) fn fence(&mut self, fleet: Nonce, floor: UnixNanos, known_as: &[Nonce]) {
        self.former.push(self.fleet);
        for name in known_as {
            if !self.former.contains(name) {
                self.former.push(*name);
            }
        }
        (self.fleet, self.floor) = (fleet, floor);
    }

    /// Ends the comparison of an adoption. That adoption must then compare again, because nodes may
    /// use records in the meantime. An adoption that already copies records continues.
    pub(crate) fn end_comparison(&mut self) {
        if let Some(Adopting::Comparing(_)) = self.adopting {
            self.adopting = None;
        }
    }

    /// Returns the state of the records that nodes share.
    pub(crate) fn records(&self) -> SharedRecords {
        match (self.lacks_records, &self.adopting) {
            (true, _) => SharedRecords::Missing,
            (false, Some(_)) => SharedRecords::Adopting,
            (false, None) => SharedRecords::Complete,
        }
    }

    /// Returns the ids of all adoptions that the fleet has completed, even if it has lost some.
    pub(crate) fn known_adoptions(&self) -> BTreeSet<String> {
        &self.adoptions | &self.lost_adoptions
    }

    /// `true` if an operator has fenced the fleet at least once.
    pub(crate) fn is_fenced(&self) -> bool {
        !self.former.is_empty()
    }

    /// Returns the slots that this coordinator hands out.
    pub(crate) fn share(&self) -> SlotShare {
        self.share
            .and_then(|part| SlotShare::part(self.slots, part))
            .unwrap_or(SlotShare::all(self.slots))
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        if !self.adoptions.is_empty() || !self.lost_adoptions.is_empty() {
            return value::write_as(VERSION_WITH_ADOPTED, self);
        }
        match (&self.adopting, self.may_hold_numbers) {
            (Some(_), _) => value::write_as(VERSION_WITH_ADOPTION, self),
            (None, true) => value::write_as(VERSION_WITH_HOLD, self),
            (None, false) => value::write(self),
        }
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<FleetMeta, ValueError> {
        value::read_up_to(VERSION_WITH_ADOPTED, bytes)
    }
}
