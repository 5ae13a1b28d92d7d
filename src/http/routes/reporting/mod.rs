//! Reports in, ids out.

mod grouping;
mod report_answers;
mod report_body;
mod report_order;
pub(in crate::http) mod reports;
