//! Events of a ledger, as answers tell them.

use axum::http::{HeaderName, HeaderValue, Response, StatusCode};

use crate::ledger::{EventId, LedgerId, Link};
use crate::wire::EventDetail;

/// Says that the same request was done before.
pub(in crate::http) const IDEMPOTENCY_REPLAYED: HeaderName =
    HeaderName::from_static("idempotency-replayed");

/// An event in its chain, its ids written so.
pub(in crate::http) fn event_detail(
    link: &Link,
    text_of: impl Fn(EventId) -> String,
) -> EventDetail {
    EventDetail {
        id: text_of(link.id),
        timestamp: link.id.timestamp().to_string(),
        previous: text_of(link.previous),
        place: link.place,
    }
}

/// 201, or 200 and `Idempotency-Replayed: true` where the same request was done before.
pub(in crate::http) fn mark_outcome<B>(response: &mut Response<B>, is_replayed: bool) {
    if is_replayed {
        response
            .headers_mut()
            .insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    } else {
        *response.status_mut() = StatusCode::CREATED;
    }
}

/// The ledger that an answer is about, on the answer, for an audit trail.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct AuditedLedger(pub(in crate::http) LedgerId);
