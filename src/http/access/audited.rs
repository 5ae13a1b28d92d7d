//! What an audit trail is told of a request.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};

use super::caller_note::CallerNote;
use crate::http::answer::{AuditedLedger, IDEMPOTENCY_REPLAYED, IDMINT_COUNT, X_REQUEST_ID};
use crate::http::request::{trace_parent, traceparent_of};
use crate::ledger::LedgerId;

/// A request that minted, or that was refused for want of access, with what came of it.
#[derive(Debug)]
pub struct Audited<'a> {
    /// The id of the request, as the answer has it.
    pub request_id: &'a str,
    /// Where it stands in its caller's trace, if the caller says so.
    pub trace_parent: Option<&'a str>,
    /// The other end of the connection, or whom a trusted proxy names.
    pub caller: IpAddr,
    /// What the caller was let in by, such as "the token `billing`"; `None` if nothing was shown that is known.
    pub shown: Option<&'a str>,
    /// What was asked for.
    pub method: &'a Method,
    /// The path, without the query.
    pub path: &'a str,
    /// The ledger that was created or appended to.
    pub ledger: Option<LedgerId>,
    /// How many ids were minted, or numbers given.
    pub count: Option<u64>,
    /// Whether the same request was done before, and these are its ids.
    pub is_replayed: bool,
    /// The status of the answer.
    pub status: StatusCode,
    /// Whether there was a caller to answer; else it had gone, and the work was done all the same.
    pub is_answered: bool,
}

/// Takes in what is to be audited, without waiting.
pub type Auditor = Arc<dyn Fn(&Audited<'_>) + Send + Sync>;

/// The part of a request that is still to be told once there is an answer, and to whom.
pub struct AuditedRequest {
    auditor: Auditor,
    caller: IpAddr,
    method: Method,
    uri: Uri,
    traceparent: Option<HeaderValue>,
}

impl AuditedRequest {
    /// That of a request from this address.
    pub fn new(
        auditor: &Auditor,
        caller: IpAddr,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> AuditedRequest {
        let (method, uri, traceparent) = (
            method.clone(),
            uri.clone(),
            traceparent_of(headers).cloned(),
        );
        AuditedRequest {
            auditor: Arc::clone(auditor),
            caller,
            method,
            uri,
            traceparent,
        }
    }

    /// Tells of it and its answer, if it is one of those that are audited; `is_answered`: whether the caller is there.
    pub fn tell<B>(&self, note: &CallerNote, answer: &Response<B>, is_answered: bool) {
        let refuses_access = matches!(
            answer.status(),
            StatusCode::UNAUTHORIZED
                | StatusCode::FORBIDDEN
                | StatusCode::MISDIRECTED_REQUEST
                | StatusCode::TOO_MANY_REQUESTS
        );
        if !refuses_access && !note.is_told() {
            return;
        }
        let text = |name| {
            answer
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        (self.auditor)(&Audited {
            request_id: text(X_REQUEST_ID).unwrap_or_default(),
            trace_parent: self.traceparent.as_ref().and_then(trace_parent),
            caller: self.caller,
            shown: note.shown_by(),
            method: &self.method,
            path: self.uri.path(),
            ledger: answer
                .extensions()
                .get()
                .map(|AuditedLedger(ledger)| *ledger),
            count: text(IDMINT_COUNT).and_then(|count| count.parse().ok()),
            is_replayed: answer.headers().contains_key(IDEMPOTENCY_REPLAYED),
            status: answer.status(),
            is_answered,
        });
    }
}
