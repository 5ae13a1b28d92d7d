//! Strict parsing of a request: its body, its query and its headers.

mod body;
mod head;
mod json;
mod late_body;

mod decode_input;
mod events;
mod idempotency_key;
mod ledger_names;
mod reports;

#[cfg(test)]
pub(crate) use body::ANSWER_LEN_SHORT;
pub use body::read_body;
pub(crate) use body::{
    bulk_of, next_piece, owner_of, paid_with, read_page, read_reserved_body, reserve_answer,
    sender, work_on,
};
pub(crate) use decode_input::DecodeInput;
pub(crate) use events::read_event;
pub(crate) use head::{
    Query, check_transfer_coding, count, encoding, encoding_named, no_query, page_limit,
    path_params, percent_decode, prefix, query_of, refuse_count, request_id, strict_query,
    trace_parent, traceparent_of, whole_number,
};
pub(crate) use idempotency_key::{idempotency_key, key_required};
pub(crate) use json::{Object, shallow_json, strict_json};
pub(crate) use late_body::LateBody;
pub(crate) use ledger_names::{event_before, event_id, import_part, invalid, ledger_id};
pub(crate) use reports::{read_reports, report_count_max};
