//! `GET /health/live` and `GET /health/ready`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};

use super::decode::json;
use crate::http::answer::slug_of;
use crate::minting::Refusal;
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
    let mut response = json(&readiness);
    if !readiness.ready {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

impl Service {
    /// Whether this node mints, and if not, why.
    pub fn readiness(&self) -> Readiness {
        let tenure = if self.draining.load(Ordering::Relaxed) { Err(Refusal::Draining) } else { self.mint.tenure() };
        let (horizon, refusal) = match tenure {
            Ok(tenure) => (UnixTime::from(tenure.horizon()).to_text(9), None),
            Err(refusal) => (None, Some(refusal)),
        };
        Readiness {
            ready: refusal.is_none(),
            slot: self.slot,
            horizon,
            reason: refusal.as_ref().map(|refusal| slug_of(refusal).to_owned()),
            detail: refusal.map(|refusal| refusal.to_string()),
        }
    }
}
