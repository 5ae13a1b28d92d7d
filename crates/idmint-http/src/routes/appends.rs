//! `POST /ledgers/{ledger}/events`, and `POST /ids/{format}` for a format whose ids belong to
//! events: appends events to a ledger, and mints one id for each event.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::Response;
use serde_json::value::RawValue;

use super::ledgers::{self, PARSE_PERCENT, aside_if_long};
use super::report_answers::detail_len;
use crate::access::{DurableWork, Permit};
use crate::answer::{
    Answer, AnswerBody, AuditedLedger, IdEncoder, MediaType, Problem, Slug, event_detail,
    json_bytes, mark_outcome, media_type_of_body, minted, negotiate_minted,
};
use crate::request::{
    Object, encoding, event_id, idempotency_key, import_part, key_required, ledger_id, owner_of,
    paid_with, query_of, read_event, read_reserved_body, refuse_count, reserve_answer,
    shallow_json, work_on,
};
use idmint_core::id::Format;
use idmint_core::minting::Batch;
use idmint_records::ledger::{
    EventId, ImportPart, KeyHash, LedgerId, LedgerRequest, Link, RequestMark, digest_of,
};
use idmint_service::{ServedFormat, Service};
use idmint_storage::Appended;
use idmint_wire::{
    AppendRequest, EVENTS_MAX, EventDetail, LEDGER_BODY_LEN_MAX, MintAnswer, MintDetails,
};

/// Appends all events in the body, or none of them. The path or the body names the ledger.
///
/// # Errors
/// Returns a [`Problem`] if the append fails. Unless the problem is 504 `outcome-unknown`, no event
/// was appended.
pub(crate) async fn append_events(
    service: &Arc<Service>,
    served: &Arc<ServedFormat>,
    addressed: Option<LedgerId>,
    request: Request,
) -> Answer<AnswerBody> {
    served.check_minted()?;
    let (parts, request_body) = request.into_parts();
    let format = served.format();
    let media = negotiate_minted(&parts.headers, format)?;
    let query = query_of(
        &parts.uri,
        &["count", "encoding", "type", "domain", "import"],
    )?;
    refuse_count(&query, "event", format)?;
    let encoding = encoding(&query, format)?;
    let permit = parts.extensions.get::<Arc<Permit>>().cloned();
    let import = match import_part(&query)? {
        Some(ImportPart::More)
            if permit
                .as_ref()
                .is_some_and(|permit| !permit.begins_imports()) =>
        {
            Some(ImportPart::Further)
        }
        import => import,
    };
    let key = idempotency_key(&parts.headers)?.ok_or_else(|| key_required("an append"))?;
    let owner = owner_of(service, &parts.extensions);
    let timeout = service.limits().body_timeout;
    let reserved = read_reserved_body(
        request_body,
        LEDGER_BODY_LEN_MAX,
        timeout,
        &owner,
        PARSE_PERCENT,
    )
    .await?;
    let (request_body, reserved) = reserved.into_parts();
    media_type_of_body(&parts.headers, request_body.is_empty(), &[MediaType::Json])?;
    let aside = aside_if_long(service, &parts.extensions, request_body.len());
    let key = key.to_owned();
    let read = move || read_request(&request_body, addressed, &key, import, permit.as_deref());
    let request = work_on(aside.as_ref(), read).await?;
    let answer_len = (1 + request.event_count()) * detail_len(format, encoding, false);
    let reserved = reserve_answer(&owner, reserved, answer_len).await?;

    let (of_service, served) = (Arc::clone(service), Arc::clone(served));
    let append = async move {
        let appended = of_service.append(&served, request).await?;
        let write = move || answer(&served, media, encoding, &appended);
        Ok(paid_with(work_on(aside.as_ref(), write).await, reserved))
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

/// Parses an append request, and checks that the caller may append to its ledger.
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
    let refuse =
        |reason: &str, detail: String| Problem::new(Slug::InvalidEvent, detail).reason(reason);
    let in_body = ledger.map(|ledger| ledger_id(&ledger)).transpose()?;
    let ledger = match (addressed, in_body) {
        (Some(addressed), Some(ledger)) if addressed != ledger => {
            let detail = format!(
                "ledger is {ledger} in the body, but {addressed} in the path; name the ledger in only one of the two"
            );
            return Err(refuse("ledger", detail));
        }
        (Some(ledger), _) | (None, Some(ledger)) => ledger,
        (None, None) => {
            let detail = "ledger is missing: name the ledger to append to";
            return Err(refuse("ledger", detail.to_owned()));
        }
    };
    permit.map_or(Ok(()), |permit| permit.check_ledger(ledger))?;
    let expected_previous = expected_previous
        .map(|id| event_id("expected_previous", &id))
        .transpose()?;
    if events.is_empty() {
        let detail = "events is empty; send at least one event";
        return Err(refuse("count", detail.to_owned()).limit("1"));
    }
    let count = events.len();
    if count > EVENTS_MAX {
        let detail = format!("events holds {count} events; the limit is {EVENTS_MAX}");
        return Err(refuse("count", detail).limit(EVENTS_MAX.to_string()));
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
        digest: digest_of(&events, import),
    };
    Ok(LedgerRequest::Append {
        ledger,
        events,
        expected_previous,
        mark,
        import,
    })
}

/// Returns the JSON response to a request that appended events. Unlike other media types, JSON
/// contains the position of each event in its ledger.
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

/// Returns an example request that works for a caller with this permit and appends one event, even
/// if repeated. If no permitted ledger is found, the request lists ledgers or creates one instead.
pub(crate) fn example(service: &Service, format: &Format, permit: Option<&Permit>) -> String {
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
