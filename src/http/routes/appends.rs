//! `POST /ids/{format}` of a chained format: events at the end of a ledger, one id for each.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Response, StatusCode};
use serde_json::value::RawValue;

use super::mint::{MEDIA_TYPES, answer, encoding, refuse_parameters};
use crate::http::answer::{MediaType, Problem, Slug, Spelling, body, choose, media_type_of_body};
use crate::http::request::{
    Object, event_id, idempotency_key, key_required, ledger_id, read_body, shallow_json, strict_query,
};
use crate::id::{Format, Rejection};
use crate::ledger::{
    AppendRefusal, Event, EventError, EventId, KeyHash, LedgerId, LedgerRequest, Link, PlaceError, RequestMark,
    digest_of,
};
use crate::minting::Batch;
use crate::service::Service;
use crate::storage::Appended;
use crate::wire::{AppendRequest, EVENT_LEN_MAX, EventDetail, LEDGER_BODY_LEN_MAX, MintAnswer, MintDetails};

/// Appends all events in the body, or none.
///
/// # Errors
/// A [`Problem`]: nothing was appended, or 504 `outcome-unknown`.
pub(in crate::http) async fn append_events(
    service: &Arc<Service>,
    position: usize,
    format: &Arc<Format>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let (parts, request_body) = request.into_parts();
    let media = choose(&parts.headers, &MEDIA_TYPES)?;
    let query = strict_query(parts.uri.query().unwrap_or_default(), &["count", "encoding", "type", "domain"])?;
    refuse_parameters(&query, "event", format)?;
    let encoding = encoding(&query, format)?;
    let key = idempotency_key(&parts.headers)?.ok_or_else(|| key_required("an append"))?;
    let request_body = read_body(request_body, LEDGER_BODY_LEN_MAX, service.limits.body_timeout).await?;
    media_type_of_body(&parts.headers, &[MediaType::Json])?;
    let order = order(&request_body, key)?;

    let Appended { is_replayed, links } = service.append(order).await?;
    let count = u64::try_from(links.len()).expect("a list is shorter than 2^64");
    let content = match media {
        MediaType::Json => Body::from(detailed(format, encoding, &links)),
        _ => {
            let ids = links.iter().map(|link| link.id.value()).collect();
            body(Spelling::new(media, format, encoding, count, None), service.outgoing(position, Batch::of_ids(ids)))
        }
    };
    if !is_replayed {
        service.mint.stats(position).count_granted(count, false);
    }
    let mut response = answer(media, format, count, content);
    mark_outcome(&mut response, is_replayed);
    Ok(response)
}

/// 201, or 200 and `Idempotency-Replayed: true` where the same request was done before.
pub(in crate::http) fn mark_outcome(response: &mut Response<Body>, is_replayed: bool) {
    if is_replayed {
        response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    } else {
        *response.status_mut() = StatusCode::CREATED;
    }
}

impl Service {
    /// Does what is asked of the ledgers; what comes back is durable.
    pub(in crate::http) async fn append(&self, order: LedgerRequest) -> Result<Appended, Problem> {
        let keeper = self.records.get().ok_or_else(|| self.not_begun())?;
        let outcome = keeper.append(order).await;
        self.metrics.appended(&outcome);
        outcome.map_err(Problem::from)
    }
}

/// Reads what is to be appended.
fn order(json: &[u8], key: &str) -> Result<LedgerRequest, Problem> {
    let Object(AppendRequest { ledger, events, expected_previous }) = shallow_json(json, Slug::InvalidEvent)?;
    let ledger = ledger_id(&ledger)?;
    let expected_previous = expected_previous.map(|id| event_id("expected_previous", &id)).transpose()?;
    if events.is_empty() {
        let detail = "events is empty, it must hold at least one event";
        return Err(Problem::new(Slug::InvalidEvent, detail).reason("count").limit("1"));
    }
    let read = |(index, event): (usize, &&RawValue)| event_of(event.get().as_bytes(), Some(index));
    let events = events.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
    let mark = RequestMark { key: KeyHash::of(Some(ledger), key), digest: digest_of(&events) };
    Ok(LedgerRequest::Append { ledger, events, expected_previous, mark })
}

/// Reads an event; `index`: its place in the request, where there are several.
pub(in crate::http) fn event_of(json: &[u8], index: Option<usize>) -> Result<Event, Problem> {
    if json.len() > EVENT_LEN_MAX {
        let detail = format!("{}the event is {} bytes long, it may have {EVENT_LEN_MAX}", place(index), json.len());
        return Err(Problem::new(Slug::PayloadTooLarge, detail).limit(format!("{EVENT_LEN_MAX} bytes")));
    }
    Event::from_json(json).map_err(|error| unreadable(index, &error))
}

fn unreadable(index: Option<usize>, error: &EventError) -> Problem {
    let slug = if error.rejection() == Rejection::InvalidJson { Slug::MalformedRequest } else { Slug::InvalidEvent };
    Problem::new(slug, format!("{}{error}", place(index))).reason(error.reason())
}

fn place(index: Option<usize>) -> String {
    index.map_or_else(String::new, |index| format!("events[{index}]: "))
}

impl From<AppendRefusal> for Problem {
    fn from(refusal: AppendRefusal) -> Problem {
        match refusal {
            AppendRefusal::UnknownLedger(ledger) => unknown_ledger(ledger),
            AppendRefusal::LedgerExists(head) => {
                let ledger = head.id.ledger().to_string();
                let detail = format!("ledger {ledger} is there already, its head is {}", head.id);
                Problem::new(Slug::LedgerExists, detail).with("ledger", ledger).with("head", head.id.to_string())
            }
            AppendRefusal::HeadMoved { expected, head } => {
                let detail = format!("expected_previous is {expected}, the head is {}", head.id);
                Problem::new(Slug::HeadMoved, detail).with("head", head.id.to_string())
            }
            AppendRefusal::Event { index, error } => {
                let detail = format!("{}{error}", place(Some(index)));
                let problem = Problem::new(Slug::InvalidEvent, detail).reason(error.code());
                match error {
                    PlaceError::NotMonotonic { last, .. } => problem.limit(format!("above {last}")),
                    PlaceError::Ahead { most, .. } => problem.limit(most.to_string()),
                    PlaceError::OtherId { .. } | PlaceError::TimeEnded => problem,
                }
            }
        }
    }
}

/// No ledger has this id.
pub(in crate::http) fn unknown_ledger(ledger: LedgerId) -> Problem {
    Problem::new(Slug::UnknownLedger, format!("there is no ledger {ledger}")).example("GET /ledgers")
}

/// The answer in JSON, which alone says where each event stands.
fn detailed(format: &Format, encoding: usize, links: &[Link]) -> Vec<u8> {
    let spell = |id: EventId| format.encodings[encoding].to_text(id.value());
    let details: Vec<EventDetail> = links.iter().map(|link| detail(link, spell)).collect();
    let answer = MintAnswer {
        format: format.name.clone(),
        count: u64::try_from(links.len()).expect("a list is shorter than 2^64"),
        label: None,
        ids: details.iter().map(|detail| detail.id.clone()).collect(),
        details: Some(MintDetails::Events(details)),
    };
    serde_json::to_vec(&answer).expect("texts and numbers always serialize")
}

/// An event in its chain, its ids spelled so.
pub(in crate::http) fn detail(link: &Link, spell: impl Fn(EventId) -> String) -> EventDetail {
    EventDetail {
        id: spell(link.id),
        timestamp: link.id.timestamp().to_string(),
        previous: spell(link.previous),
        place: link.place,
    }
}

/// A request that works, for a service that has a ledger or not. However often it is sent, it appends one event.
pub(in crate::http) fn example(service: &Service, format: &Format) -> String {
    let some = service.records.get().and_then(|keeper| keeper.records().ledgers(None, 1).ok()?.first().copied());
    let Some(ledger) = some.map(|ledger| ledger.head.id.ledger()) else {
        return super::ledgers::example(service);
    };
    let name = &format.name;
    format!(
        r#"POST /ids/{name} Idempotency-Key: example {{"ledger":"{ledger}","events":[{{"event":"Item Ordered","entities":{{"order":["1"]}}}}]}}"#
    )
}
