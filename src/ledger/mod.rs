//! Each id names the one before it: an event, its place in a ledger, and the checksum that ties both together.

mod append;
mod canonical;
mod chain_checker;
mod chain_lines;
mod event;
mod event_error;
mod event_id;
mod event_parts;
mod event_time;
mod hex;
mod ledger_id;
mod message;

pub use append::{
    AHEAD_MAX, AppendPlan, AppendRefusal, Entry, Head, KeyHash, LedgerOrder, Link, PlaceError, RequestMark, digest_of,
};
pub use canonical::canonical_json;
pub use chain_checker::{ChainChecker, ChainError};
pub use chain_lines::{ChainLines, ChainVerdict, LineTooLong};
pub use event::Event;
pub use event_error::EventError;
pub use event_id::EventId;
pub use event_time::EventTime;
pub use ledger_id::LedgerId;
