//! The caller of a request, and the entry that the request leaves in the audit trail.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri,
};
use serde::Serialize;

use super::client_certificates::ClientCertificate;
use super::permit::Permit;
use super::rate::{Left, Rate};
use crate::answer::{AuditedLedger, IDEMPOTENCY_REPLAYED, IDMINT_COUNT, X_REQUEST_ID};
use crate::request::{trace_parent, traceparent_of};

/// The caller of a request. A request carries this value in its extensions if callers are rate
/// limited or audited, or if the connection uses TLS.
#[derive(Clone)]
pub struct Caller {
    /// The address of the connection's peer, or the client address that a trusted proxy reports.
    pub address: IpAddr,
    /// The certificate that the caller presented in the TLS handshake.
    pub certificate: Option<Arc<ClientCertificate>>,
    /// The results of admission for this request.
    pub note: CallerNote,
    /// Receives the caller's audited requests.
    pub auditor: Option<Auditor>,
}

impl Caller {
    /// Returns the caller that the connection layer stored in the request's extensions. Returns
    /// `None` on a connection without TLS if callers are neither rate limited nor audited.
    pub(crate) fn of(extensions: &Extensions) -> Option<&Caller> {
        extensions.get()
    }
}

pub(crate) const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(crate) const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The results of the access check of one request: its rate limit headers, the caller's
/// permissions, and whether to audit the request. Clones share the same results.
#[derive(Debug, Clone, Default)]
pub struct CallerNote(Arc<Found>);

/// The data of a `CallerNote`.
///
/// Source of the rate limit headers: RateLimit header fields for HTTP,
/// draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4,
/// <https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/>.
#[derive(Debug, Default)]
struct Found {
    /// The values of `RateLimit` and `RateLimit-Policy`, set once the request has been counted.
    rate: OnceLock<[HeaderValue; 2]>,
    /// The permit of the credential that the caller presented.
    permit: OnceLock<Arc<Permit>>,
    /// Set if the audit trail must record the request, whatever its outcome.
    is_told: OnceLock<()>,
}

impl CallerNote {
    /// Marks the request for the audit trail, whatever its outcome. Unmarked requests are recorded
    /// only if they are refused with 401, 403, 421 or 429.
    pub(crate) fn is_to_be_told(&self) {
        // Set at most once, because a request has one route.
        let _ = self.0.is_told.set(());
    }

    /// `true` if the audit trail must record the request, whatever its outcome.
    pub(super) fn is_told(&self) -> bool {
        self.0.is_told.get().is_some()
    }

    /// Records the permit of the caller's token or certificate, even if the permit does not allow
    /// this request. The audit trail shows the name of the token or certificate.
    pub(super) fn has_shown(&self, permit: &Arc<Permit>) {
        // Set at most once, because a request is admitted once.
        let _ = self.0.permit.set(Arc::clone(permit));
    }

    /// Returns the name of the credential that the caller presented, such as "the token `billing`".
    pub(super) fn shown_by(&self) -> Option<&str> {
        self.0.permit.get().map(|permit| permit.shown_by.as_str())
    }

    /// Stores the rate limit headers for the response. They tell the caller how many requests it
    /// may still send. `left` is `None` if the caller has used up its rate limit.
    pub(super) fn fill_rate(&self, rate: &Rate, left: Option<Left>) {
        let (requests, seconds) = left.map_or((0, 1), |left| {
            (
                left.requests,
                left.until_full.as_nanos().div_ceil(1_000_000_000),
            )
        });
        let fields = [
            format!("\"second\";r={requests};t={seconds}"),
            format!("\"second\";q={};w=1", rate.requests()),
        ];
        let value = |field: String| HeaderValue::try_from(field).expect("digits and visible ASCII");
        // Set at most once, because a request is counted once.
        let _ = self.0.rate.set(fields.map(value));
    }

    /// Adds the rate limit headers to `headers`, if the request was counted towards a rate limit.
    pub fn write(&self, headers: &mut HeaderMap) {
        if let Some([left, policy]) = self.0.rate.get() {
            headers.insert(RATELIMIT, left.clone());
            headers.insert(RATELIMIT_POLICY, policy.clone());
        }
    }
}

/// An entry of the audit trail. It describes a request to an audited operation, such as a mint, or
/// a request that access control refused.
#[derive(Debug, Serialize)]
pub struct Audited<'a> {
    /// The id of the request, as in its response.
    #[serde(rename = "request")]
    pub request_id: &'a str,
    /// The caller's trace context, if the request has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<&'a str>,
    /// The address of the connection's peer, or the client address that a trusted proxy reports.
    pub caller: IpAddr,
    /// The credential that the caller presented, such as "the token `billing`". `None` if the
    /// caller presented no known credential.
    pub shown: Option<&'a str>,
    /// The method of the request.
    pub method: &'a str,
    /// The path, without the query and with `{id}` instead of an id.
    pub path: &'a str,
    /// The ledger that was created or appended to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<String>,
    /// The number of minted ids, or of numbers taken from a series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// `true` if an earlier request did the same work, and the response repeats its ids.
    #[serde(rename = "replayed", skip_serializing_if = "std::ops::Not::not")]
    pub is_replayed: bool,
    /// The status of the response.
    pub status: u16,
    /// `true` if the caller was still connected when the work was completed.
    #[serde(rename = "answered", skip_serializing_if = "is_true")]
    pub is_answered: bool,
}

fn is_true(value: &bool) -> bool {
    *value
}

/// A function that receives every audited request. It must not block.
pub type Auditor = Arc<dyn Fn(&Audited<'_>) + Send + Sync>;

/// The parts of a request that its audit entry contains, and the auditor that receives the entry.
/// They are copied before the handler consumes the request.
pub struct AuditedRequest {
    auditor: Auditor,
    caller: IpAddr,
    method: Method,
    uri: Uri,
    traceparent: Option<HeaderValue>,
}

impl AuditedRequest {
    /// Returns the audit data of a request from the address `caller`.
    pub fn new(
        auditor: &Auditor,
        caller: IpAddr,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> AuditedRequest {
        let method = method.clone();
        let uri = uri.clone();
        let traceparent = traceparent_of(headers).cloned();
        AuditedRequest {
            auditor: Arc::clone(auditor),
            caller,
            method,
            uri,
            traceparent,
        }
    }

    /// Reports the request and its response to the auditor, if the request is audited.
    /// `is_answered` is `false` if the caller disconnected before the work was completed.
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
            traceparent: self.traceparent.as_ref().and_then(trace_parent),
            caller: self.caller,
            shown: note.shown_by(),
            method: self.method.as_str(),
            path: &without_id(self.uri.path()),
            ledger: answer
                .extensions()
                .get()
                .map(|AuditedLedger(ledger)| ledger.to_string()),
            count: text(IDMINT_COUNT).and_then(|count| count.parse().ok()),
            is_replayed: answer.headers().contains_key(IDEMPOTENCY_REPLAYED),
            status: answer.status().as_u16(),
            is_answered,
        });
    }
}

/// Replaces the id at the end of a request's path with `{id}`. A caller may have put a token there
/// by mistake, and a token must not appear in the audit trail.
fn without_id(path: &str) -> Cow<'_, str> {
    let id_begin = if path.starts_with("/ledgers/") {
        path.find("/ids/").map(|at| at + "/ids/".len())
    } else {
        let mut before = ["/decode/", "/conjunctions/"].into_iter();
        before.find(|before| path.starts_with(before)).map(str::len)
    };
    match id_begin {
        Some(begin) if begin < path.len() => format!("{}{{id}}", &path[..begin]).into(),
        _ => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    #[test]
    fn no_path_of_the_audit_trail_contains_an_id() {
        let mut with_id = 0;
        for (_, template) in paths() {
            let template = template.replace("{*id}", "{id}");
            let path = template.replace("{id}", "1I9ZC1002");
            assert_eq!(without_id(&path), template);
            with_id += usize::from(path != template);
        }
        assert_eq!(with_id, 3);
        assert_eq!(without_id("/decode/a/b%2Fc"), "/decode/{id}");
        assert_eq!(without_id("/decode/"), "/decode/");
    }
}
