//! `POST /ledgers/{ledger}/events`: events at the end of a ledger, which the address names.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;

use super::appends;
use super::mint::count_refusal;
use crate::http::access::Permit;
use crate::http::answer::Problem;
use crate::http::request::{ledger_id, path_params};
use crate::service::{IdSource, ServedFormat, Service, ServiceError};

pub(in crate::http) const ROUTE: &str = "/ledgers/{ledger}/events";

/// The format of the ids of events.
const FORMAT: &str = "evently";

/// Appends the events in the body, as `POST /ids/evently` does.
///
/// # Errors
/// A [`Problem`]: nothing was appended, or 504 `outcome-unknown`.
pub(in crate::http) async fn append(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let permit = request.extensions().get::<Arc<Permit>>().cloned();
    let [ledger] = path_params(ROUTE, request.uri())?;
    let ledger = ledger_id(&ledger)?;
    let served = chained_format(&service, permit.as_deref())?;
    let answer = appends::append_events(&service, &served, Some(ledger), request).await;
    let answer = count_refusal(&served, answer, || {
        appends::example(&service, served.format(), permit.as_deref())
    });
    answer.map(|answer| answer.map(Body::new))
}

/// The first format whose ids are made of events, of those that are permitted.
fn chained_format(
    service: &Service,
    permit: Option<&Permit>,
) -> Result<Arc<ServedFormat>, Problem> {
    let is_permitted = |name: &str| permit.is_none_or(|permit| permit.has_format(name));
    let mut chained = service
        .formats()
        .iter()
        .filter(|served| matches!(served.source(), IdSource::Events));
    match chained.find(|served| is_permitted(&served.format().name)) {
        Some(served) => Ok(Arc::clone(served)),
        None => Ok(Arc::clone(
            service
                .formats()
                .named(FORMAT)
                .map_err(ServiceError::from)?,
        )),
    }
}
