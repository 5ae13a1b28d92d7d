//! `POST /ledgers/{ledger}/events`: appends events to the ledger in the path.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};

use super::appends;
use super::mint::count_refusal;
use crate::access::Permit;
use crate::answer::{Answer, Problem};
use crate::request::{ledger_id, path_params};
use idmint_service::{IdSource, ServedFormat, Service};

pub(crate) const ROUTE: &str = "/ledgers/{ledger}/events";

/// The default format for event ids.
const FORMAT: &str = "evently";

/// Appends events to the ledger in the path, like `POST /ids/evently`. Event ids have the format
/// `evently` by default.
///
/// # Errors
/// Returns a [`Problem`] if the append fails. Unless the problem is 504 `outcome-unknown`, no event
/// was appended.
pub(crate) async fn append(State(service): State<Arc<Service>>, request: Request) -> Answer {
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

/// Returns the first chained format that the caller may use.
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
        None => Ok(Arc::clone(service.formats().named(FORMAT)?)),
    }
}
