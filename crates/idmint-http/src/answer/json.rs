//! Builds responses that must not be cached, most of them in JSON.

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use serde::Serialize;

use super::body::MediaType;

/// The initial capacity of a response body, in bytes. Most bodies fit, so they are not moved while
/// they grow.
pub(crate) const ANSWER_LEN: usize = 8 * 1024;

/// Returns a response that must not be cached. An id from a cache would be a duplicate.
pub(crate) fn no_store(media: MediaType, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(media.content_type()),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns a JSON response that must not be cached.
pub(crate) fn json(answer: &impl Serialize) -> Response<Body> {
    no_store(MediaType::Json, json_bytes(answer))
}

/// Returns a value as JSON, with a newline at the end so that a shell prompt starts on a new line.
pub(crate) fn json_bytes(answer: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ANSWER_LEN);
    serde_json::to_writer(&mut bytes, answer)
        .expect("answers are strings, numbers and lists of them");
    bytes.push(b'\n');
    bytes
}
