//! `/ledgers`: ledgers are created, listed and shown.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Response, Uri, header};

use super::appends::{detail, event_of, mark_outcome, unknown_ledger};
use super::decode::json;
use crate::http::answer::{MediaType, Problem, Slug, choose, media_type_of_body};
use crate::http::request::{
    event_before, event_in, idempotency_key, invalid, key_required, ledger_id, ledger_in, no_query, read_body,
    strict_query,
};
use crate::id::{Rejection, Rule};
use crate::ledger::{EventId, EventTime, KeyHash, LedgerId, LedgerOrder, RequestMark, digest_of};
use crate::service::Service;
use crate::storage::{Appended, LedgerSummary, RecordStore, StoreError, log_unreadable};
use crate::wire::{LEDGER_BODY_LEN_MAX, LedgerIds, LedgerInfo, LedgerList};

/// How many ledgers or events one answer lists.
const PAGE_LEN: usize = 1_000;

/// Creates the ledger that begins with the event in the body.
///
/// # Errors
/// A [`Problem`]: nothing was created, or 504 `outcome-unknown`.
pub(in crate::http) async fn create(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    create_from(&service, request).await.map_err(|problem| problem.or_example(|| example(&service)))
}

async fn create_from(service: &Service, request: Request) -> Result<Response<Body>, Problem> {
    let (parts, body) = request.into_parts();
    choose(&parts.headers, &[MediaType::Json])?;
    no_query(&parts.uri)?;
    let key = idempotency_key(&parts.headers)?;
    let body = read_body(body, LEDGER_BODY_LEN_MAX, service.limits.body_timeout).await?;
    media_type_of_body(&parts.headers, &[MediaType::Json])?;
    let genesis = event_of(&body, None)?;
    if key.is_none() && genesis.timestamp().is_none() {
        return Err(key_required("a first event without timestamp"));
    }
    let digest = digest_of(std::slice::from_ref(&genesis));
    let mark = key.map(|key| RequestMark { key: KeyHash::of(None, key), digest });
    let Appended { is_replayed, links } = service.append(LedgerOrder::Create { genesis, mark }).await?;

    let ledger = links.first().expect("a ledger begins with an event").id.ledger();
    let mut response = json(&info(&one_of(service.records()?, ledger)?));
    let location = HeaderValue::try_from(format!("/ledgers/{ledger}")).expect("hexadecimal digits");
    response.headers_mut().insert(header::LOCATION, location);
    mark_outcome(&mut response, is_replayed);
    if !is_replayed {
        service.count_genesis();
    }
    Ok(response)
}

/// All ledgers, a page at a time.
///
/// # Errors
/// A [`Problem`].
pub(in crate::http) async fn list(
    State(service): State<Arc<Service>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    choose(&headers, &[MediaType::Json])?;
    let query = strict_query(uri.query().unwrap_or_default(), &["after"])?;
    let after = query.get("after").map(ledger_id).transpose();
    let after = after.map_err(|problem| problem.or_example(|| "GET /ledgers".to_owned()))?;
    let found = service.records()?.ledgers(after, PAGE_LEN + 1).map_err(unavailable)?;
    let (page, next) = page(found, |last| last.head.id.ledger().to_string());
    Ok(json(&LedgerList { ledgers: page.iter().map(info).collect(), next }))
}

/// One ledger.
///
/// # Errors
/// A [`Problem`].
pub(in crate::http) async fn one(
    State(service): State<Arc<Service>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    choose(&headers, &[MediaType::Json])?;
    no_query(&uri)?;
    let ledger = ledger_of(&uri)?;
    Ok(json(&info(&one_of(service.records()?, ledger)?)))
}

/// The events of a ledger, a page at a time.
///
/// # Errors
/// A [`Problem`].
pub(in crate::http) async fn ids(
    State(service): State<Arc<Service>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    choose(&headers, &[MediaType::Json])?;
    let query = strict_query(uri.query().unwrap_or_default(), &["after"])?;
    let ledger = ledger_of(&uri)?;
    let records = service.records()?;
    one_of(records, ledger)?;
    let after = query.get("after").map(|text| known_event(records, ledger, text)).transpose();
    let after = after.map_err(|problem| problem.or_example(|| format!("GET /ledgers/{ledger}/ids")))?;
    let found = records.chain(ledger, after, PAGE_LEN + 1).map_err(unavailable)?;
    let (page, next) = page(found, |last| last.id.to_string());
    let ids = page.iter().map(|link| detail(link, |id| id.to_string())).collect();
    Ok(json(&LedgerIds { ledger: ledger.to_string(), ids, next }))
}

/// One event of a ledger.
///
/// # Errors
/// A [`Problem`].
pub(in crate::http) async fn id(
    State(service): State<Arc<Service>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    choose(&headers, &[MediaType::Json])?;
    no_query(&uri)?;
    let ledger = ledger_of(&uri)?;
    let records = service.records()?;
    one_of(records, ledger)?;
    let id = event_in(&uri).map_err(|problem| problem.or_example(|| format!("GET /ledgers/{ledger}/ids")))?;
    let link = if id.ledger() == ledger { records.link(id).map_err(unavailable)? } else { None };
    let link = link.ok_or_else(|| Problem::new(Slug::NotFound, format!("ledger {ledger} has no event {id}")))?;
    Ok(json(&detail(&link, |id| id.to_string())))
}

/// A request that works once: it has the time of now.
pub(in crate::http) fn example(service: &Service) -> String {
    let now = EventTime::from_micros(service.mint.clock().now().get() / 1_000);
    let timestamp = now.map_or_else(String::new, |now| format!(r#","timestamp":"{now}""#));
    format!(r#"POST /ledgers {{"event":"Ledger Created","entities":{{"ledger":"example"}}{timestamp}}}"#)
}

impl Service {
    /// Counts the id of a first event, of the format that ids of events have.
    fn count_genesis(&self) {
        if let Some((.., stats)) = self.mint.formats().find(|(format, ..)| format.rule == Rule::Chained) {
            stats.count_granted(1, false);
        }
    }

    fn records(&self) -> Result<&dyn RecordStore, Problem> {
        self.records.get().map(|keeper| keeper.records()).ok_or_else(|| self.not_begun())
    }
}

/// The first of the found, and what to ask for next if there are more.
fn page<T>(mut found: Vec<T>, name: impl Fn(&T) -> String) -> (Vec<T>, Option<String>) {
    let has_more = found.len() > PAGE_LEN;
    found.truncate(PAGE_LEN);
    let next = found.last().filter(|_| has_more).map(name);
    (found, next)
}

/// The ledger that an address names.
fn ledger_of(uri: &Uri) -> Result<LedgerId, Problem> {
    ledger_in(uri).map_err(|problem| problem.or_example(|| "GET /ledgers".to_owned()))
}

fn one_of(records: &dyn RecordStore, ledger: LedgerId) -> Result<LedgerSummary, Problem> {
    records.ledger(ledger).map_err(unavailable)?.ok_or_else(|| unknown_ledger(ledger))
}

/// An event that the ledger has.
fn known_event(records: &dyn RecordStore, ledger: LedgerId, text: &str) -> Result<EventId, Problem> {
    let id = event_before(text, ledger)?;
    let link = records.link(id).map_err(unavailable)?;
    let unknown =
        || invalid(format!("after is {id}, which is no event of ledger {ledger}"), Rejection::ChecksumMismatch);
    link.map(|link| link.id).ok_or_else(unknown)
}

fn info(ledger: &LedgerSummary) -> LedgerInfo {
    let LedgerSummary { genesis, head } = ledger;
    LedgerInfo {
        ledger: head.id.ledger().to_string(),
        events: head.place,
        genesis: genesis.to_string(),
        created: genesis.timestamp().to_string(),
        head: head.id.to_string(),
        updated: head.id.timestamp().to_string(),
    }
}

fn unavailable(error: StoreError) -> Problem {
    Problem::from(log_unreadable(&error))
}
