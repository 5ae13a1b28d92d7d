//! `POST /ledgers/{ledger}/events`, and `POST /ids/{format}` of a chained format: events at the end of a ledger, one id for each.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::Response;
use serde_json::value::RawValue;

use super::ledgers::{self, PARSE_PERCENT};
use crate::http::access::{DurableWork, Permit, permit_of};
use crate::http::answer::{
    AnswerBody, AuditedLedger, IdEncoder, MediaType, Problem, Slug, event_detail, json_bytes,
    mark_outcome, media_type_of_body, minted, negotiate_minted,
};
use crate::http::request::{
    Object, encoding, event_id, idempotency_key, import_part, key_required, ledger_id, payer_of,
    read_event, read_paid_body, refuse_count, shallow_json, strict_query,
};
use crate::id::Format;
use crate::ledger::{
    EventId, ImportPart, KeyHash, LedgerId, LedgerRequest, Link, RequestMark, digest_of,
};
use crate::minting::Batch;
use crate::service::{ServedFormat, Service};
use crate::storage::Appended;
use crate::wire::{
    AppendRequest, EVENTS_MAX, EventDetail, LEDGER_BODY_LEN_MAX, MintAnswer, MintDetails,
};

/// Appends all events in the body, or none, to the ledger that the address names, or else the body.
///
/// # Errors
/// A [`Problem`]: nothing was appended, or 504 `outcome-unknown`.
pub(in crate::http) async fn append_events(
    service: &Arc<Service>,
    served: &Arc<ServedFormat>,
    addressed: Option<LedgerId>,
    request: Request,
) -> Result<Response<AnswerBody>, Problem> {
    let (parts, request_body) = request.into_parts();
    let format = served.format();
    let media = negotiate_minted(&parts.headers, format)?;
    let query = strict_query(
        parts.uri.query().unwrap_or_default(),
        &["count", "encoding", "type", "domain", "import"],
    )?;
    refuse_count(&query, "event", format)?;
    let encoding = encoding(&query, format)?;
    let permit = permit_of(&parts.extensions);
    let import = match import_part(&query)? {
        Some(ImportPart::More) if permit.is_some_and(|permit| !permit.begins_imports()) => {
            Some(ImportPart::Further)
        }
        import => import,
    };
    let key = idempotency_key(&parts.headers)?.ok_or_else(|| key_required("an append"))?;
    let payer = payer_of(service, &parts.extensions);
    let timeout = service.limits().body_timeout;
    let paid = read_paid_body(
        request_body,
        LEDGER_BODY_LEN_MAX,
        timeout,
        &payer,
        PARSE_PERCENT,
    )
    .await?;
    let request_body = &paid.bytes;
    media_type_of_body(&parts.headers, request_body.is_empty(), &[MediaType::Json])?;
    let request = read_request(request_body, addressed, key, import, permit)?;

    let (of_service, served) = (Arc::clone(service), Arc::clone(served));
    let append = async move {
        let _paid = paid;
        let appended = of_service.append(&served, request).await?;
        Ok(answer(&served, media, encoding, &appended))
    };
    DurableWork::of(&parts, &service.load().requests, append).await
}

fn answer(
    served: &ServedFormat,
    media: MediaType,
    encoding: usize,
    appended: &Appended,
) -> Response<AnswerBody> {
    let (format, links) = (served.format(), &appended.links);
    let ledger = links
        .first()
        .expect("a request has at least one event")
        .id
        .ledger();
    let count = u64::try_from(links.len()).expect("a list is shorter than 2^64");
    let content = match media {
        MediaType::Json => AnswerBody::from(detailed(format, encoding, links)),
        _ => {
            let ids = Batch::of_ids(links.iter().map(|link| link.id.value()).collect());
            let encoder = IdEncoder::new(media, format, encoding, count, None);
            AnswerBody::of_ids(encoder, &served.counted().format, ids, None)
        }
    };
    let mut response = minted(media, format, count, content);
    mark_outcome(&mut response, appended.is_replayed);
    response.extensions_mut().insert(AuditedLedger(ledger));
    response
}

/// Reads what is to be appended, to a ledger that is permitted.
fn read_request(
    json: &[u8],
    addressed: Option<LedgerId>,
    key: &str,
    import: Option<ImportPart>,
    permit: Option<&Permit>,
) -> Result<LedgerRequest, Problem> {
    let Object(AppendRequest {
        ledger,
        events,
        expected_previous,
    }) = shallow_json(json, Slug::InvalidEvent)?;
    let ledger = match (
        addressed,
        ledger.map(|ledger| ledger_id(&ledger)).transpose()?,
    ) {
        (Some(addressed), Some(ledger)) if addressed != ledger => {
            let detail = format!(
                "ledger is {ledger} in the body, and {addressed} in the address: give it once"
            );
            return Err(Problem::new(Slug::InvalidEvent, detail).reason("ledger"));
        }
        (Some(ledger), _) | (None, Some(ledger)) => ledger,
        (None, None) => {
            let detail = "ledger is missing: the ledger that the events are appended to";
            return Err(Problem::new(Slug::InvalidEvent, detail).reason("ledger"));
        }
    };
    permit.map_or(Ok(()), |permit| permit.check_ledger(ledger))?;
    let expected_previous = expected_previous
        .map(|id| event_id("expected_previous", &id))
        .transpose()?;
    if events.is_empty() {
        let detail = "events is empty, it must hold at least one event";
        return Err(Problem::new(Slug::InvalidEvent, detail)
            .reason("count")
            .limit("1"));
    }
    if events.len() > EVENTS_MAX {
        let detail = format!(
            "events holds {} events, it may hold {EVENTS_MAX}",
            events.len()
        );
        return Err(Problem::new(Slug::InvalidEvent, detail)
            .reason("count")
            .limit(EVENTS_MAX.to_string()));
    }
    let read =
        |(index, event): (usize, &&RawValue)| read_event(event.get().as_bytes(), Some(index));
    let events = events
        .iter()
        .enumerate()
        .map(read)
        .collect::<Result<Vec<_>, _>>()?;
    let mark = RequestMark {
        key: KeyHash::of(Some(ledger), key),
        digest: digest_of(&events),
    };
    Ok(LedgerRequest::Append {
        ledger,
        events,
        expected_previous,
        mark,
        import,
    })
}

/// The answer in JSON, which alone says where each event stands.
fn detailed(format: &Format, encoding: usize, links: &[Link]) -> Vec<u8> {
    let text_of = |id: EventId| format.encodings[encoding].to_text(id.value());
    let details: Vec<EventDetail> = links
        .iter()
        .map(|link| event_detail(link, text_of))
        .collect();
    let answer = MintAnswer {
        format: format.name.clone(),
        count: u64::try_from(links.len()).expect("a list is shorter than 2^64"),
        label: None,
        ids: details.iter().map(|detail| detail.id.clone()).collect(),
        details: Some(MintDetails::Events(details)),
    };
    json_bytes(&answer)
}

/// A request that works for a caller of this permit, whether the service has a ledger or not. However often it is sent, it
/// appends one event.
pub(in crate::http) fn example(
    service: &Service,
    format: &Format,
    permit: Option<&Permit>,
) -> String {
    let among = permit.and_then(Permit::ledgers);
    let Some(ledger) = service.any_ledger(among) else {
        return if among.is_some() {
            ledgers::LIST_EXAMPLE.to_owned()
        } else {
            ledgers::example(service)
        };
    };
    let name = &format.name;
    format!(
        r#"POST /ids/{name} Idempotency-Key: example {{"ledger":"{ledger}","events":[{{"event":"Item Ordered","entities":{{"order":["1"]}}}}]}}"#
    )
}
