//! Answers that nobody is to keep, most of them in JSON.

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use serde::Serialize;

use super::media_type::MediaType;

/// As long as most answers are, in bytes, so that they do not move while they grow.
pub(in crate::http) const ANSWER_LEN: usize = 8 * 1024;

/// An answer that nobody is to keep: an id out of a cache is a duplicate.
pub(in crate::http) fn no_store(media: MediaType, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(media.content_type()),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// An answer in JSON that is not to be kept.
pub(in crate::http) fn json(answer: &impl Serialize) -> Response<Body> {
    no_store(MediaType::Json, json_bytes(answer))
}

/// JSON as it is answered: it ends with a newline, so that in a shell whatever comes next begins a line.
pub(in crate::http) fn json_bytes(answer: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ANSWER_LEN);
    serde_json::to_writer(&mut bytes, answer)
        .expect("answers are strings, numbers and lists of them");
    bytes.push(b'\n');
    bytes
}
