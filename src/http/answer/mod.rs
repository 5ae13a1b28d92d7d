//! What goes back: ids, problems, and in which media type.

mod ids;
mod negotiate;
mod problem;
mod problem_catalog;
mod refusal;

pub(in crate::http) use ids::{Spelling, body};
pub(in crate::http) use negotiate::unkept;
pub use negotiate::{MediaType, choose, media_type_of_body};
pub(in crate::http) use problem::{Page, name_instance};
pub use problem::{Problem, Slug};
pub(in crate::http) use refusal::slug_of;
