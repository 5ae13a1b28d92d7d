//! `GET /health/live` and `GET /health/ready`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};

use crate::http::answer::{json, slug_of};
use crate::service::Service;
use crate::time::UnixTime;
use crate::wire::Readiness;

/// The process runs.
pub(in crate::http) async fn live() -> Response<Body> {
    json(&serde_json::json!({ "live": true }))
}

/// Whether sequenced ids are minted: 200, or 503 with the reason.
pub(in crate::http) async fn ready(State(service): State<Arc<Service>>) -> Response<Body> {
    let readiness = service.readiness();
    let refusal = readiness.horizon.as_ref().err();
    let mut response = json(&Readiness {
        ready: refusal.is_none(),
        slot: readiness.slot,
        horizon: readiness
            .horizon
            .as_ref()
            .ok()
            .and_then(|horizon| UnixTime::from(*horizon).to_text(9)),
        reason: refusal.map(|refusal| slug_of(refusal.clone()).to_owned()),
        detail: refusal.map(ToString::to_string),
        records: readiness
            .records
            .clone()
            .map_or_else(slug_of, |()| "ready")
            .to_owned(),
    });
    if refusal.is_some() {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}
