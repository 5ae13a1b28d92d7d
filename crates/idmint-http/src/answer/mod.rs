//! Responses: ids, problems and their media types.

mod negotiate;
mod problem;
mod problem_catalog;

mod body;
mod events;
mod json;
mod pieces;
mod refusal;
mod rows;

pub(crate) use body::{
    Admitted, IDMINT_COUNT, IDMINT_WARNING, IdEncoder, NO_SNIFFING, X_REQUEST_ID, minted,
};
pub use body::{AnswerBody, MediaType};
pub(crate) use events::{AuditedLedger, IDEMPOTENCY_REPLAYED, event_detail, mark_outcome};
pub(crate) use json::{ANSWER_LEN, json, json_bytes, no_store};
pub(crate) use negotiate::negotiate_minted;
pub use negotiate::{media_type_of_body, negotiate};
pub(crate) use pieces::{LongBody, PieceThread, Pieces};
pub use problem::Problem;
pub(crate) use problem::{ANSWER_LEN_MAX, Answer, name_instance, too_long};
pub(crate) use problem_catalog::Page;
pub use problem_catalog::Slug;
pub(crate) use refusal::slug_of;
