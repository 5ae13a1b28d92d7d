//! `/ledgers`: creates, lists and shows ledgers.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, HeaderValue, Response, Uri, header};

use crate::access::{DurableWork, Permit, permit_of};
use crate::answer::{
    Answer, AuditedLedger, MediaType, Problem, event_detail, json, mark_outcome,
    media_type_of_body, negotiate,
};
use crate::request::{
    bulk_of, event_before, event_id, idempotency_key, import_part, invalid, key_required,
    ledger_id, no_query, owner_of, page_limit, path_params, query_of, read_event, read_page,
    read_reserved_body, work_on,
};
use idmint_core::id::Rejection;
use idmint_records::ledger::{EventTime, KeyHash, LedgerId, Link, RequestMark, digest_of};
use idmint_service::{PAGE_LEN, PeerBulk, Service, ServiceError};
use idmint_storage::LedgerSummary;
use idmint_wire::{LEDGER_BODY_LEN_MAX, LedgerIds, LedgerInfo, LedgerList};

pub(crate) const ROUTE: &str = "/ledgers/{ledger}";
pub(crate) const IDS_ROUTE: &str = "/ledgers/{ledger}/ids";
pub(crate) const ID_ROUTE: &str = "/ledgers/{ledger}/ids/{id}";

/// An example request that error responses suggest. It works for every caller who may use ledgers.
pub(crate) const LIST_EXAMPLE: &str = "GET /ledgers";

/// The estimated time to read a page of ledgers.
const PAGE_ESTIMATE: Duration = Duration::from_millis(1);

/// The maximum length, in bytes, of a body of events that is parsed on the thread that serves the
/// request. Longer bodies are parsed on another thread.
const READ_AT_ONCE_MAX: usize = 4 * 1024;

/// The estimated time to read and return an event.
const EVENT_ESTIMATE: Duration = Duration::from_micros(1);

/// The memory reserved for parsed events, in percent of the body's length.
pub(crate) const PARSE_PERCENT: usize = 400;

/// Creates the ledger that begins with the event in the body.
///
/// # Errors
/// Returns a [`Problem`] if the request fails. Unless the problem is 504 `outcome-unknown`, no
/// ledger was created.
pub(crate) async fn create(State(service): State<Arc<Service>>, request: Request) -> Answer {
    create_from(&service, request)
        .await
        .map_err(|problem| problem.or_example(|| example(&service)))
}

async fn create_from(service: &Arc<Service>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    negotiate(&parts.headers, &[MediaType::Json])?;
    let query = query_of(&parts.uri, &["import"])?;
    let import = import_part(&query)?;
    let key = idempotency_key(&parts.headers)?;
    let owner = owner_of(service, &parts.extensions);
    let timeout = service.limits().body_timeout;
    let reserved =
        read_reserved_body(body, LEDGER_BODY_LEN_MAX, timeout, &owner, PARSE_PERCENT).await?;
    let body = reserved.bytes.clone();
    media_type_of_body(&parts.headers, body.is_empty(), &[MediaType::Json])?;
    let aside = aside_if_long(service, &parts.extensions, body.len());
    let genesis = work_on(aside.as_ref(), move || read_event(&body, None)).await?;
    if key.is_none() && genesis.timestamp().is_none() {
        return Err(key_required("a first event without timestamp"));
    }
    let digest = digest_of(std::slice::from_ref(&genesis), import);
    let mark = key.map(|key| RequestMark {
        key: KeyHash::of(None, key),
        digest,
    });
    let of_service = Arc::clone(service);
    let create = async move {
        let _reserved = reserved;
        let (appended, ledger) = of_service.create_ledger(genesis, mark, import).await?;
        Ok(created(&ledger, appended.is_replayed))
    };
    DurableWork::of(&parts, &service.load().requests, create).await
}

/// Returns a handle to process events of `body_len` bytes on another thread, or `None` if they are
/// short. Long events wait for a core, but are never refused.
pub(super) fn aside_if_long(
    service: &Service,
    extensions: &Extensions,
    body_len: usize,
) -> Option<PeerBulk> {
    (body_len > READ_AT_ONCE_MAX).then(|| bulk_of(service, extensions))
}

fn created(ledger: &LedgerSummary, is_replayed: bool) -> Response<Body> {
    let mut response = json(&info(ledger));
    let location = HeaderValue::try_from(format!("/ledgers/{}", ledger.head.id.ledger()))
        .expect("hexadecimal digits");
    response.headers_mut().insert(header::LOCATION, location);
    response
        .extensions_mut()
        .insert(AuditedLedger(ledger.head.id.ledger()));
    mark_outcome(&mut response, is_replayed);
    response
}

/// Lists all ledgers that the caller may read, in pages.
///
/// # Errors
/// Returns a [`Problem`] if the request is invalid or the ledgers cannot be read.
pub(crate) async fn list(State(service): State<Arc<Service>>, request: Request) -> Answer {
    negotiate(request.headers(), &[MediaType::Json])?;
    let query = query_of(request.uri(), &["after", "limit"])?;
    let example = |problem: Problem| problem.or_example(|| LIST_EXAMPLE.to_owned());
    let after = query.get("after").map(ledger_id).transpose();
    let after = after.map_err(example)?;
    let limit = page_limit(&query, PAGE_LEN).map_err(example)?;
    let among = permit_of(request.extensions())
        .and_then(Permit::ledgers)
        .cloned();
    let bulk = bulk_of(&service, request.extensions());
    let _pass = bulk.enter(PAGE_ESTIMATE)?;
    let read = move |service: &Service| {
        let page = service.ledgers(among.as_ref(), after, limit)?;
        let next = page.next(|last| last.head.id.ledger().to_string());
        Ok(json(&LedgerList {
            ledgers: page.items.iter().map(info).collect(),
            next,
        }))
    };
    read_page(&service, &bulk, read).await
}

/// Returns one ledger.
///
/// # Errors
/// Returns a [`Problem`] if the request is invalid or the ledger cannot be read.
pub(crate) async fn one(
    State(service): State<Arc<Service>>,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    negotiate(&headers, &[MediaType::Json])?;
    no_query(&uri)?;
    let [ledger] = path_params(ROUTE, &uri)?;
    let ledger = read_ledger(&ledger)?;
    let found = service
        .read_records(move |service| service.ledger(ledger))
        .await?;
    Ok(json(&info(&found)))
}

/// Lists the events of a ledger, in pages.
///
/// # Errors
/// Returns a [`Problem`] if the request is invalid or the events cannot be read.
pub(crate) async fn ids(State(service): State<Arc<Service>>, request: Request) -> Answer {
    negotiate(request.headers(), &[MediaType::Json])?;
    let query = query_of(request.uri(), &["after", "limit"])?;
    let [ledger] = path_params(IDS_ROUTE, request.uri())?;
    let (ledger, after) = (read_ledger(&ledger)?, query.get("after").map(str::to_owned));
    let limit = page_limit(&query, PAGE_LEN);
    let limit = limit.map_err(|problem| problem.or_example(|| ids_example(ledger)))?;
    let look_up = move |service: &Service| {
        let head = service.ledger(ledger)?.head;
        let after = after
            .map(|text| known_event(service, ledger, &text))
            .transpose();
        let after = after.map_err(|problem| problem.or_example(|| ids_example(ledger)))?;
        let left = head
            .place
            .saturating_sub(after.as_ref().map_or(0, |link| link.place));
        Ok::<_, Problem>((
            after.map(|link| link.id),
            usize::try_from(left).unwrap_or(limit).min(limit),
        ))
    };
    let (after, count) = service.read_records(look_up).await?;
    let estimate = EVENT_ESTIMATE * u32::try_from(count).unwrap_or(u32::MAX);
    let bulk = bulk_of(&service, request.extensions());
    let pass = bulk.go_on(None, estimate)?;
    let read = move |service: &Service| {
        let page = service.events(ledger, after, limit)?;
        let next = page.next(|last| last.id.to_string());
        let ids = page
            .items
            .iter()
            .map(|link| event_detail(link, |id| id.to_string()))
            .collect();
        Ok(json(&LedgerIds {
            ledger: ledger.to_string(),
            ids,
            next,
        }))
    };
    if pass.is_none() {
        return service.read_records(read).await;
    }
    read_page(&service, &bulk, read).await
}

/// Returns one event of a ledger.
///
/// # Errors
/// Returns a [`Problem`] if the request is invalid or the event cannot be read.
pub(crate) async fn id(
    State(service): State<Arc<Service>>,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    negotiate(&headers, &[MediaType::Json])?;
    no_query(&uri)?;
    let [ledger, id] = path_params(ID_ROUTE, &uri)?;
    let (ledger, id) = (read_ledger(&ledger)?, id.into_owned());
    let read = move |service: &Service| {
        service.ledger(ledger)?;
        let id =
            event_id("id", &id).map_err(|problem| problem.or_example(|| ids_example(ledger)))?;
        service.event(ledger, id).map_err(Problem::from)
    };
    let link = service.read_records(read).await?;
    Ok(json(&event_detail(&link, |id| id.to_string())))
}

/// Returns an example request that creates a ledger. It contains the current time, so that the
/// ledger does not exist yet. The request works once.
pub(crate) fn example(service: &Service) -> String {
    let now = EventTime::from_micros(service.clock().now().get() / 1_000);
    let timestamp = now.map_or_else(String::new, |now| format!(r#","timestamp":"{now}""#));
    format!(
        r#"POST /ledgers {{"event":"Ledger Created","entities":{{"ledger":"example"}}{timestamp}}}"#
    )
}

fn ids_example(ledger: LedgerId) -> String {
    format!("GET /ledgers/{ledger}/ids")
}

/// Parses the ledger id in a path.
fn read_ledger(text: &str) -> Result<LedgerId, Problem> {
    ledger_id(text).map_err(|problem| problem.or_example(|| LIST_EXAMPLE.to_owned()))
}

/// Returns an event of this ledger, given the event's id.
fn known_event(service: &Service, ledger: LedgerId, text: &str) -> Result<Link, Problem> {
    let id = event_before(text, ledger)?;
    match service.event(ledger, id) {
        Ok(link) => Ok(link),
        Err(ServiceError::UnknownEvent { .. }) => {
            let detail = format!("after is {id}, which is not an event of ledger {ledger}");
            Err(invalid(detail, Rejection::ChecksumMismatch))
        }
        Err(error) => Err(error.into()),
    }
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
        importing: head.is_importing,
    }
}
