//! What goes back: ids, problems, and in which media type.

mod media_type;
mod negotiate;
mod problem;
mod problem_catalog;
mod slug;

mod body;
mod events;
mod ids;
mod json;
mod length;
mod minted;
mod pieces;
mod refusal;
mod rows;

pub(in crate::http) use body::Admitted;
pub use body::AnswerBody;
pub(in crate::http) use events::{AuditedLedger, IDEMPOTENCY_REPLAYED, event_detail, mark_outcome};
pub(in crate::http) use ids::IdEncoder;
pub(in crate::http) use json::{ANSWER_LEN, json, json_bytes, no_store};
pub(in crate::http) use length::{ANSWER_LEN_MAX, too_long};
pub use media_type::MediaType;
pub(in crate::http) use minted::{
    IDMINT_COUNT, IDMINT_WARNING, NO_SNIFFING, X_REQUEST_ID, minted, negotiate_minted,
};
pub use negotiate::{media_type_of_body, negotiate};
pub(in crate::http) use pieces::{LongBody, PieceThread, Pieces};
pub(crate) use problem::{Page, name_instance};
pub use problem::{Problem, Slug};
pub(in crate::http) use refusal::slug_of;
