//! The events of a ledger in responses.

use axum::http::{HeaderName, HeaderValue, Response, StatusCode};

use idmint_records::ledger::{EventId, LedgerId, Link};
use idmint_wire::EventDetail;

/// The header of a response that repeats the outcome of an earlier request.
pub(crate) const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Returns the details of a ledger event. `text_of` writes an event id as text.
pub(crate) fn event_detail(link: &Link, text_of: impl Fn(EventId) -> String) -> EventDetail {
    EventDetail {
        id: text_of(link.id),
        timestamp: link.id.timestamp().to_string(),
        previous: text_of(link.previous),
        place: link.place,
    }
}

/// Sets the status 201. If the response repeats the outcome of an earlier request, sets the header
/// `Idempotency-Replayed: true` instead and leaves the status 200.
pub(crate) fn mark_outcome<B>(response: &mut Response<B>, is_replayed: bool) {
    if is_replayed {
        response
            .headers_mut()
            .insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    } else {
        *response.status_mut() = StatusCode::CREATED;
    }
}

/// The ledger that a response is about, attached to the response for the audit trail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AuditedLedger(pub(crate) LedgerId);
