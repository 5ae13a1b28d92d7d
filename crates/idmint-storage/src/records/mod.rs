//! The stored records, and the operations on them that every storage engine supports. The records
//! are events of ledgers, anchors of conjunctions, and numbers of series.

mod conjunction_store;
mod done_request;
mod ledger_store;
mod number_store;
mod record_store;
mod register;
mod request_store;
pub mod rows;
mod written_day;

pub use conjunction_store::ConjunctionStore;
pub use done_request::DoneRequest;
pub(crate) use done_request::recorded_min;
pub use done_request::remembered_among;
pub use done_request::{days_to_forget, remembered_since};
pub use ledger_store::{LedgerStore, LedgerSummary, StoredAppend};
pub use number_store::{
    AgreedRules, NumberRecord, NumberStore, SeriesState, SeriesSummary, TextChange,
};
pub use record_store::{BackedUp, RecordPlan, RecordStore, Records, WriteError};
pub use register::{
    AnchorKey, CountedAnchor, ListPlace, ListRange, StoredAnchor, StoredConjunction, StoredPair,
};
pub use request_store::RequestStore;
pub(crate) use written_day::LastDays;
pub use written_day::WrittenDay;
