//! What a request says: its body, its query, its headers, read strictly.

mod body;
mod json;
mod late_body;
mod query;
mod request_id;
mod trace_parent;
mod transfer_coding;

mod decode_input;
mod events;
mod idempotency_key;
mod ledger_names;
mod mint_query;
mod path;
mod reports;

pub use body::read_body;
pub(in crate::http) use body::{next_piece, payer_of, read_paid_body};
pub(in crate::http) use decode_input::DecodeInput;
pub(in crate::http) use events::read_event;
pub(in crate::http) use idempotency_key::{idempotency_key, key_required};
pub(in crate::http) use json::{Object, shallow_json, strict_json};
pub(in crate::http) use late_body::LateBody;
pub(in crate::http) use ledger_names::{event_before, event_id, import_part, invalid, ledger_id};
pub(in crate::http) use mint_query::{count, encoding, prefix, refuse_count};
pub(in crate::http) use path::path_params;
pub use query::{Query, strict_query};
pub(in crate::http) use query::{no_query, percent_decode, whole_number};
pub(in crate::http) use reports::{read_reports, report_count_max};
pub(in crate::http) use request_id::request_id;
pub(in crate::http) use trace_parent::{trace_parent, traceparent_of};
pub(in crate::http) use transfer_coding::check_transfer_coding;
