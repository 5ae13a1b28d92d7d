//! What lasts of ids with memory, and what every engine can do with it: the events of every ledger, the anchors of
//! every pair.

mod done_request;
mod record_plan;
mod record_store;
mod register;
mod rows;
mod stored_append;
mod written_day;

pub use done_request::DoneRequest;
pub use done_request::remembered_among;
pub(in crate::storage) use done_request::{days_to_forget, remembered_since};
pub use record_plan::RecordPlan;
pub use record_store::{BackedUp, LedgerSummary, RecordStore, Records, WriteError};
pub use register::{AnchorKey, ListPlace, ListRange, StoredConjunction, StoredPair, TalliedAnchor};
pub(in crate::storage) use rows::{append_row, tally_row};
pub use stored_append::StoredAppend;
pub(in crate::storage) use written_day::LastDays;
pub use written_day::WrittenDay;
