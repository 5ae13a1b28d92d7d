//! The values that the nodes of a fleet keep about slots: JSON with a version, read strictly.

mod fleet_meta;
mod horizon_record;
mod slot_record;
pub(super) mod value;

pub(super) use fleet_meta::FleetMeta;
pub(super) use horizon_record::HorizonRecord;
pub(super) use slot_record::SlotRecord;
pub(super) use value::{StoredInstant, ValueError, ceil_to_millis};
