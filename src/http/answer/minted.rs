//! What every answer with minted ids has in common.

use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, header};

use super::body::AnswerBody;
use super::media_type::MediaType;
use super::negotiate::{accepts_anything, choose};
use super::problem::{Problem, Slug};
use crate::id::{Format, Rule};

/// The header that carries the name of a request, both ways.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Else a browser could take an id of the caller's choice for a page.
pub(in crate::http) const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");

pub(in crate::http) const IDMINT_COUNT: HeaderName = HeaderName::from_static("idmint-count");
/// What the caller should know of how it was read, where the body of the answer has no place for it.
pub(in crate::http) const IDMINT_WARNING: HeaderName = HeaderName::from_static("idmint-warning");
const IDMINT_WIDTH: HeaderName = HeaderName::from_static("idmint-width");

/// What a mint answer can be, of a sequenced format; rows are the last of them, and of no other format.
const MINT_MEDIA_TYPES: [MediaType; 5] = [
    MediaType::Json,
    MediaType::Text,
    MediaType::Ndjson,
    MediaType::OctetStream,
    MediaType::Rows,
];

/// In which media type the minted ids of a format go out.
///
/// # Errors
/// 406 `not-acceptable`; with the reason `rows` where nothing but rows would do, and the ids of the format are at no equal
/// distances.
#[inline]
pub(in crate::http) fn negotiate_minted(
    headers: &HeaderMap,
    format: &Format,
) -> Result<MediaType, Problem> {
    if accepts_anything(headers) {
        return Ok(MediaType::Json);
    }
    choose(headers, offered(format)).map_err(|problem| explain(problem, headers, format))
}

fn offered(format: &Format) -> &'static [MediaType] {
    let [without_rows @ .., _] = &MINT_MEDIA_TYPES;
    if format.rule == Rule::Sequenced {
        &MINT_MEDIA_TYPES
    } else {
        without_rows
    }
}

fn explain(problem: Problem, headers: &HeaderMap, format: &Format) -> Problem {
    if choose(headers, &[MediaType::Rows]).is_err() {
        return problem;
    }
    let (rows, accepts) = (
        MediaType::Rows.essence(),
        offered(format).iter().map(|media| media.essence()),
    );
    let why = match format.rule {
        Rule::Random => "its ids are drawn at random",
        Rule::Grouped => "its ids are minted from reports",
        Rule::Chained => "its ids are minted from events",
        Rule::Sequenced | Rule::DecodeOnly => "its ids are not minted here",
    };
    let detail = format!(
        "`{}` has no {rows}: {why}, so they are not at equal distances",
        format.name
    );
    Problem::new(Slug::NotAcceptable, detail)
        .reason("rows")
        .accepts(accepts)
}

/// The head of an answer of one id, for each of [`MINT_MEDIA_TYPES`]. A copy costs a third of what its parts cost, put in one
/// by one.
static HEADS: LazyLock<[HeaderMap; MINT_MEDIA_TYPES.len()]> = LazyLock::new(|| {
    MINT_MEDIA_TYPES.map(|media| {
        HeaderMap::from_iter([
            (
                header::CONTENT_TYPE,
                HeaderValue::from_static(media.content_type()),
            ),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (IDMINT_COUNT, HeaderValue::from_static("1")),
            (header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING),
            // Known further out. Here it keeps a copy from growing.
            (X_REQUEST_ID, HeaderValue::from_static("")),
        ])
    })
});

/// An answer of `count` ids, as one of [`MINT_MEDIA_TYPES`] or, for other answers, of any type.
pub(in crate::http) fn minted(
    media: MediaType,
    format: &Format,
    count: u64,
    body: impl Into<AnswerBody>,
) -> Response<AnswerBody> {
    let mut response = Response::new(body.into());
    let head = MINT_MEDIA_TYPES.iter().position(|known| *known == media);
    let headers = response.headers_mut();
    *headers = HEADS[head.unwrap_or_default()].clone();
    if head.is_none() {
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(media.content_type()),
        );
    }
    if count != 1 {
        headers.insert(IDMINT_COUNT, HeaderValue::from(count));
    }
    if media == MediaType::OctetStream {
        headers.insert(IDMINT_WIDTH, HeaderValue::from(format.byte_width()));
    }
    response
}
