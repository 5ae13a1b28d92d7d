//! What lasts of ids with memory, and what every engine can do with it: the events of every ledger, the anchors of
//! every pair.

mod record_plan;
mod record_store;
mod stored_append;

pub use record_plan::RecordPlan;
pub use record_store::{AnchorKey, LedgerSummary, RecordStore, Records, WriteError};
pub use stored_append::{DoneRequest, StoredAppend};
