//! Plans or refuses appends, based on a request and the last event of its ledger.

mod append_plan;
mod append_refusal;
mod head;
mod ledger_request;

pub use append_plan::{AppendPlan, Entry};
pub use append_refusal::{AHEAD_MAX, AppendRefusal, PlaceError};
pub use head::{Head, Link};
pub use ledger_request::{ImportPart, KeyHash, LedgerRequest, RequestMark, digest_of};
