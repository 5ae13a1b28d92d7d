//! What lasts of ids with memory, and what every engine can do with it: the events of every ledger, the anchors of
//! every pair, the numbers of every series.

mod done_request;
mod number_store;
mod record_plan;
mod record_store;
mod register;
mod rows;
mod stored_append;
mod written_day;

pub use done_request::DoneRequest;
pub use done_request::remembered_among;
pub(in crate::storage) use done_request::{days_to_forget, remembered_since};
pub use number_store::{NumberRecord, NumberStore, SeriesSummary};
pub use record_plan::RecordPlan;
pub use record_store::{BackedUp, LedgerSummary, RecordStore, Records, WriteError};
pub use register::{
    AnchorKey, ListPlace, ListRange, StoredAnchor, StoredConjunction, StoredPair, TalliedAnchor,
};
pub(in crate::storage) use rows::{append_row, externals_row, number_rows, tally_row};
pub use stored_append::StoredAppend;
pub(in crate::storage) use written_day::LastDays;
pub use written_day::WrittenDay;
