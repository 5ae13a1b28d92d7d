//! `GET /metrics`: all metrics, in the text format of Prometheus.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, header};
use prometheus::TextEncoder;

use crate::answer::{Answer, Problem, Slug};
use idmint_service::Service;

/// Returns the current values of all metrics.
///
/// # Errors
/// Returns 500 `internal-error` if a metric cannot be written.
pub(crate) async fn metrics(State(service): State<Arc<Service>>) -> Answer {
    let text = TextEncoder::new()
        .encode_to_string(&service.metric_families())
        .map_err(|error| {
            Problem::new(
                Slug::InternalError,
                format!("the metrics cannot be written: {error}"),
            )
        })?;
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(prometheus::TEXT_FORMAT),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
