//! Answers in JSON.

use axum::body::Body;
use axum::http::Response;
use serde::Serialize;

use super::media_type::MediaType;
use super::negotiate::no_store;

/// As long as most answers are, in bytes, so that they do not move while they grow.
pub(in crate::http) const ANSWER_LEN: usize = 8 * 1024;

/// An answer in JSON that is not to be kept.
pub(in crate::http) fn json(answer: &impl Serialize) -> Response<Body> {
    let mut bytes = Vec::with_capacity(ANSWER_LEN);
    serde_json::to_writer(&mut bytes, answer).expect("answers are strings, numbers and lists of them");
    no_store(MediaType::Json, bytes)
}
