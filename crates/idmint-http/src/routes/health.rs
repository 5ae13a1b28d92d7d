//! `GET /health/live` and `GET /health/ready`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode, Uri};

use crate::answer::{Answer, Problem, Slug, json, slug_of};
use idmint_core::time::UnixTime;
use idmint_service::Service;
use idmint_wire::Readiness;

const NUMBERS_HELD: &str = "no series gives numbers since a restore; run `idmint numbers resume`; everything else is \
                            stored";

/// Returns 200 while the process runs.
pub(crate) async fn live() -> Response<Body> {
    json(&serde_json::json!({ "live": true }))
}

/// Returns 200 if this node can mint sequenced ids, which contain a time and a counter, or 503 with
/// the reason. With `?for=records`, returns 200 if this node can store new records, such as ledger
/// events.
pub(crate) async fn ready(State(service): State<Arc<Service>>, uri: Uri) -> Answer {
    let is_for_records = is_for_records(uri.query().unwrap_or_default())?;
    let readiness = service.readiness();
    let refusal = readiness.horizon.as_ref().err();
    let (records, records_detail) = match &readiness.records {
        Err(error) => (slug_of(error.clone()), Some(error.to_string())),
        Ok(()) if readiness.holds_numbers => {
            (Slug::NumbersHeld.as_str(), Some(NUMBERS_HELD.to_owned()))
        }
        Ok(()) => ("ready", None),
    };
    let is_ready = match is_for_records {
        true => readiness.records.is_ok() && !readiness.is_draining,
        false => refusal.is_none(),
    };
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
        records: records.to_owned(),
        records_detail,
        warnings: readiness.warnings,
    });
    if !is_ready {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    Ok(response)
}

/// Returns `true` if the query asks whether this node can store records, such as ledger events. All
/// parameters but `for` are ignored, because some load balancers add their own.
fn is_for_records(query: &str) -> Result<bool, Problem> {
    let mut values = query
        .split('&')
        .filter_map(|pair| pair.strip_prefix("for="));
    match values.next() {
        None | Some("ids") => Ok(false),
        Some("records") => Ok(true),
        Some(other) => {
            let detail = format!("for is {other:?}, but must be ids or records");
            Err(Problem::parameter("for", detail)
                .limit("ids, records")
                .example("GET /health/ready?for=records"))
        }
    }
}
