//! What every answer with minted ids has in common.

use axum::http::{HeaderName, HeaderValue, Response, header};

use super::body::AnswerBody;
use super::media_type::MediaType;
use crate::id::Format;

const IDMINT_COUNT: HeaderName = HeaderName::from_static("idmint-count");
const IDMINT_WIDTH: HeaderName = HeaderName::from_static("idmint-width");

/// What a mint answer can be.
pub(in crate::http) const MINT_MEDIA_TYPES: [MediaType; 4] =
    [MediaType::Json, MediaType::Text, MediaType::Ndjson, MediaType::OctetStream];

/// An answer of `count` ids.
pub(in crate::http) fn minted(
    media: MediaType,
    format: &Format,
    count: u64,
    body: impl Into<AnswerBody>,
) -> Response<AnswerBody> {
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    // With room for the request id, so that it is allocated once.
    headers.reserve(5);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media.content_type()));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Nearly every answer has one id, and a constant costs nothing.
    headers.insert(IDMINT_COUNT, if count == 1 { HeaderValue::from_static("1") } else { HeaderValue::from(count) });
    if media == MediaType::OctetStream {
        headers.insert(IDMINT_WIDTH, HeaderValue::from(format.byte_width()));
    }
    response
}
