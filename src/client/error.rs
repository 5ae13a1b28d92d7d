//! Why a service gave no answer, and what its problem documents say.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderName, LOCATION, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde_json::Value;

/// Why a service gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The service refuses, and would refuse again. Nothing was done.
    #[error("{0}")]
    Refused(Refusal),
    /// The service cannot do it now, or says that what was done is not known; asked again later, it may do it.
    #[error("{0}")]
    Busy(Refusal),
    /// The service cannot be reached, or the connection broke: what was asked for may have been done.
    #[error("{url} gives no answer")]
    Unreachable {
        /// What was asked.
        url: String,
        /// What went wrong.
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    },
    /// It is not this service that answers.
    #[error("what answers is no idmint service")]
    NotIdmint(#[source] serde_json::Error),
    /// The answer lacks what became of the events.
    #[error("the service does not say what became of the events")]
    EventsMissing,
    /// A token that cannot be sent.
    #[error("a token is visible ASCII characters, at least one")]
    NoToken,
    /// A key of a request that cannot be sent.
    #[error("a key of a request is visible ASCII characters, at least one")]
    NoKey,
    /// A file that has no such thing in PEM.
    #[error("there is no {0} in PEM")]
    NotPem(&'static str),
    /// A certificate that cannot be shown with its key.
    #[error("the certificate cannot be shown with this key")]
    Tls(#[source] rustls::Error),
    /// An address that is none; nothing was sent.
    #[error(
        "`{0}` is no address of a service, such as http://127.0.0.1:8080 or https://ids.example.com"
    )]
    NotAnAddress(String),
}

impl ClientError {
    /// Whether asking again may help.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            ClientError::Unreachable { .. } | ClientError::Busy(_) => true,
            ClientError::Refused(_)
            | ClientError::NotIdmint(_)
            | ClientError::EventsMissing
            | ClientError::NoToken
            | ClientError::NoKey
            | ClientError::NotPem(_)
            | ClientError::Tls(_)
            | ClientError::NotAnAddress(_) => false,
        }
    }

    /// How long the service asks to wait.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            ClientError::Busy(refusal) => refusal.retry_after,
            _ => None,
        }
    }

    /// What the service said, if it said anything.
    pub(super) fn refusal(&self) -> Option<&Refusal> {
        match self {
            ClientError::Refused(refusal) | ClientError::Busy(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Whether the service refuses with this problem, as in `/problems/{slug}`.
    pub(super) fn is_refusal(&self, slug: &str) -> bool {
        matches!(self, ClientError::Refused(refusal) if refusal.slug == slug)
    }

    /// What an answer says that is no success.
    pub(super) fn of(response: &Response<Bytes>) -> ClientError {
        let status = response.status();
        let header = |name: HeaderName| response.headers().get(name)?.to_str().ok();
        let seconds = header(RETRY_AFTER).and_then(|seconds| seconds.parse().ok());
        let mut refusal = Refusal::new(status, seconds.map(Duration::from_secs), response.body());
        if let Some(place) = header(LOCATION).filter(|_| status.is_redirection()) {
            refusal.detail = format!("it sends to {place}, which may be asked in its place");
        }
        match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => ClientError::Busy(refusal),
            _ => ClientError::Refused(refusal),
        }
    }
}

/// What a service says when it refuses: its problem document (RFC 9457), as far as there is one.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    /// The kind, as in `/problems/{slug}`; empty if it is not given.
    pub slug: String,
    /// What was wrong this time.
    pub detail: String,
    /// Whether a document came with the status; without one it is something else that answers, such as a proxy.
    pub is_explained: bool,
    retry_after: Option<Duration>,
    /// The whole document; null if there is none.
    problem: Value,
}

impl Refusal {
    /// The status of the answer.
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// A member of the document that is a text, such as `reason`, `limit` or `example`; `None` if it is not given.
    pub fn text(&self, member: &str) -> Option<&str> {
        self.problem.get(member)?.as_str()
    }

    /// Reads the body of a refusal; `retry_after` is what the header says.
    pub(super) fn new(status: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> Refusal {
        let problem: Option<Value> = serde_json::from_slice(body).ok();
        let member = |name| problem.as_ref().and_then(|problem| problem.get(name));
        let slug = member("type")
            .and_then(|kind| kind.as_str()?.rsplit('/').next())
            .unwrap_or_default();
        let detail = member("detail")
            .and_then(Value::as_str)
            .unwrap_or("no reason is given");
        let exact = member("retry_after_ms")
            .and_then(Value::as_u64)
            .map(Duration::from_millis);
        Refusal {
            status,
            slug: slug.to_owned(),
            detail: detail.to_owned(),
            is_explained: problem.is_some(),
            retry_after: exact.or(retry_after),
            problem: problem.unwrap_or_default(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_document_says_more_than_the_status() {
        let body =
            br#"{"type":"https://x/problems/head-moved","detail":"it is 3","retry_after_ms":250}"#;
        let refusal = Refusal::new(StatusCode::CONFLICT, Some(Duration::from_secs(1)), body);
        assert_eq!(refusal.to_string(), "409 Conflict: it is 3");
        assert_eq!(
            refusal.retry_after,
            Some(Duration::from_millis(250)),
            "exact where the header is rounded up"
        );
        let refused = ClientError::Refused(refusal);
        assert!(refused.is_refusal("head-moved") && !refused.is_refusal("ledger-exists"));
    }

    #[test]
    fn a_refusal_without_a_document_is_told_by_its_status() {
        let refusal = Refusal::new(
            StatusCode::BAD_GATEWAY,
            Some(Duration::from_secs(1)),
            b"<html>",
        );
        assert_eq!(
            (refusal.to_string().as_str(), refusal.is_explained),
            ("502 Bad Gateway: no reason is given", false)
        );
        assert_eq!(refusal.retry_after, Some(Duration::from_secs(1)));
    }
}
