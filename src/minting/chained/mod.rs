//! Each id names the one before it: an event, its place in a ledger, and the checksum that ties both together.

mod event_time;
mod hex;
mod ledger_id;

mod event_id;

mod byte_runs;
mod canonical_json;
mod canonical_number;
mod canonical_string;
mod event_error;
mod scanner;

mod event;
mod event_parts;
mod message;

mod append;
mod chain_checker;
mod chain_lines;

pub use append::{
    AHEAD_MAX, AppendPlan, AppendRefusal, Entry, Head, KeyHash, LedgerOrder, Link, PlaceError, RequestMark, digest_of,
};
pub use canonical_json::canonical_json;
pub use chain_checker::{ChainChecker, ChainError};
pub use chain_lines::{ChainLines, ChainVerdict, LineTooLong};
pub use event::Event;
pub use event_error::EventError;
pub use event_id::EventId;
pub use event_time::EventTime;
pub use ledger_id::LedgerId;
