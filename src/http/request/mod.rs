//! What a request says: its body, its query, its headers, read strictly.

mod body;
mod decode_input;
mod idempotency_key;
mod json;
mod ledger_names;
mod query;
mod reports;
mod request_id;

pub(in crate::http) use body::next_piece;
pub use body::read_body;
pub(in crate::http) use decode_input::Texts;
pub(in crate::http) use idempotency_key::{idempotency_key, key_required};
pub(in crate::http) use json::{Object, shallow_json, strict_json};
pub(in crate::http) use ledger_names::{event_before, event_id, event_in, invalid, ledger_id, ledger_in};
pub(in crate::http) use query::{Query, no_query, percent_decoded, strict_query};
pub(in crate::http) use reports::read_reports;
pub(in crate::http) use request_id::{X_REQUEST_ID, request_id};
