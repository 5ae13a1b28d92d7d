//! `GET /metrics`: all metrics, in the text format of Prometheus.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use prometheus::TextEncoder;

use crate::answer::{Answer, MediaType, Problem, Slug, no_store};
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
    let mut response = no_store(MediaType::Text, text);
    let content_type = HeaderValue::from_static(prometheus::TEXT_FORMAT);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    Ok(response)
}
