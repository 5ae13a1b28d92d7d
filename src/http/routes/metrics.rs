//! `GET /metrics`: everything that is counted, in the text format of Prometheus.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, header};
use prometheus::TextEncoder;

use crate::http::answer::{Problem, Slug};
use crate::service::Service;

/// Every metric, as it is now.
///
/// # Errors
/// 500 `internal-error` if a metric cannot be written.
pub(in crate::http) async fn metrics(
    State(service): State<Arc<Service>>,
) -> Result<Response<Body>, Problem> {
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
