//! What browsers are told about pages of other origins (CORS).

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower::Layer;
use tower_http::cors::{self, AllowOrigin, CorsLayer};

use super::origin::CorsOrigin;

/// How long a browser may remember what it was told.
const REMEMBERED: Duration = Duration::from_secs(3_600);

/// The headers of requests that mean something here and that a page may not set unasked.
const REQUEST_HEADERS: [HeaderName; 5] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("x-request-id"),
];

/// The headers of answers that a page could not see unasked.
const ANSWER_HEADERS: [HeaderName; 7] = [
    header::LOCATION,
    header::RETRY_AFTER,
    HeaderName::from_static("idempotency-replayed"),
    HeaderName::from_static("idmint-count"),
    HeaderName::from_static("idmint-warning"),
    HeaderName::from_static("idmint-width"),
    HeaderName::from_static("x-request-id"),
];

/// Answers preflights, and lets pages of these origins read answers.
#[derive(Debug, Clone)]
pub(in crate::http) struct Cors(CorsLayer);

impl Cors {
    pub(super) fn new(origins: &[CorsOrigin]) -> Self {
        let allowed = if origins.iter().any(CorsOrigin::is_any) {
            AllowOrigin::any()
        } else {
            AllowOrigin::list(
                origins
                    .iter()
                    .map(|origin| origin.value().clone())
                    .collect::<Vec<HeaderValue>>(),
            )
        };
        let layer = CorsLayer::new()
            .allow_origin(allowed)
            .allow_methods([Method::GET, Method::HEAD, Method::POST])
            .allow_headers(REQUEST_HEADERS)
            .expose_headers(ANSWER_HEADERS)
            .max_age(REMEMBERED);
        Self(layer)
    }

    /// Whatever answers requests, with this around it.
    pub(in crate::http) fn around<S>(&self, service: S) -> cors::Cors<S> {
        self.0.layer(service)
    }
}
