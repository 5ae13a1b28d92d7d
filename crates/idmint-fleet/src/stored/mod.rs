//! The values that a fleet stores in its coordinator for its slots. Each value is JSON with a
//! version number. Unknown fields are rejected.

mod fleet_meta;
mod horizon_record;
mod slot_record;
pub(super) mod value;

pub(super) use fleet_meta::{Adopting, FleetMeta};
pub(super) use horizon_record::HorizonRecord;
pub(super) use slot_record::{CLOSED_ROW, HOLD_ROW, KNOWN_ROWS, SlotRecord};
pub(super) use value::{StoredInstant, ValueError, ceil_to_millis};
