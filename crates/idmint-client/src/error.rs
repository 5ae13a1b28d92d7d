//! Client errors and the problem documents of a service.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, LOCATION, RETRY_AFTER};
use serde::de::Error as _;
use serde_json::Value;
use serde_json::error::Category;

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The service refused the request or failed. A refusal had no effect, and a retry would be
    /// refused too. After a failure, such as status 500, the request may have taken effect.
    #[error("{0}")]
    Refused(ProblemDetails),
    /// The service cannot handle the request now, or reports that the outcome of the request is
    /// unknown. A later retry may succeed.
    #[error("{0}")]
    Busy(ProblemDetails),
    /// The service is unreachable or the connection broke. The request may have taken effect.
    #[error("{url} does not respond")]
    Unreachable {
        /// The URL of the request.
        url: String,
        /// The transport error.
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    },
    /// The certificate of the service is not valid, or no trusted authority has signed it. No
    /// request was sent.
    #[error("the certificate of {url} is not trusted")]
    Untrusted {
        /// The URL of the request.
        url: String,
        /// The reason why the certificate was rejected.
        #[source]
        cause: rustls::Error,
    },
    /// The body of the response is not JSON that an idmint service would send. The source error
    /// quotes no value of the body, because another server may echo the bearer token.
    #[error("the server is not an idmint service; check its address")]
    NotIdmint(#[source] serde_json::Error),
    /// The response does not contain the results for the events or reports that were sent.
    #[error(
        "the response does not say what happened to the events or reports; send the request again with the \
         same key"
    )]
    EventsMissing,
    /// The token cannot be sent, because it is empty or contains bytes other than visible ASCII.
    #[error("a token must be one or more visible ASCII characters")]
    NoToken,
    /// The idempotency key cannot be sent, because it is empty or contains bytes other than visible
    /// ASCII.
    #[error("an idempotency key must be one or more visible ASCII characters")]
    NoKey,
    /// The PEM text lacks the named item.
    #[error("the file has no valid {0} in PEM format")]
    NotPem(&'static str),
    /// The TLS configuration is invalid, for example because the client certificate does not match
    /// its key.
    #[error("the certificate cannot be used: it is invalid, or does not match the private key")]
    Tls(#[source] rustls::Error),
    /// The text is not the address of a service. No request was sent.
    #[error(
        "`{0}` is not a service address such as http://127.0.0.1:8080 or https://ids.example.com"
    )]
    NotAnAddress(String),
}

impl ClientError {
    /// Returns the error for a body that is not JSON of the expected shape.
    pub(super) fn not_idmint(error: serde_json::Error) -> ClientError {
        ClientError::NotIdmint(match error.classify() {
            // Data errors of `serde_json` quote a value of the body, which may be the bearer token.
            // Keep only the position of the error.
            Category::Data => serde_json::Error::custom(format_args!(
                "unexpected value at line {} column {}",
                error.line(),
                error.column()
            )),
            Category::Io | Category::Syntax | Category::Eof => error,
        })
    }

    /// Returns `true` if a retry may succeed.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, ClientError::Unreachable { .. } | ClientError::Busy(_))
    }

    /// Returns `true` if the request may have taken effect although it failed.
    pub(super) fn outcome_is_unknown(&self) -> bool {
        match self {
            ClientError::Refused(refusal) | ClientError::Busy(refusal) => {
                refusal.status.is_server_error()
                    && refusal.status != StatusCode::SERVICE_UNAVAILABLE
            }
            ClientError::Unreachable { cause, .. } => cause
                .downcast_ref::<TransportError>()
                .is_none_or(|transport| !transport.0.is_connect()),
            ClientError::NotIdmint(_) | ClientError::EventsMissing => true,
            _ => false,
        }
    }

    /// Returns the time that the service asks the client to wait before a retry, or `None` if the
    /// response names no time.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            ClientError::Busy(refusal) => refusal.retry_after,
            _ => None,
        }
    }

    /// Returns the first error of type `E` among the causes, such as an [`io::Error`].
    pub fn cause<E: Error + 'static>(&self) -> Option<&E> {
        find_cause(self)
    }

    /// Returns the problem document of an error response, or `None` if the request failed for
    /// another reason.
    pub(super) fn refusal(&self) -> Option<&ProblemDetails> {
        match self {
            ClientError::Refused(refusal) | ClientError::Busy(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Returns `true` if the service refused with the problem `/problems/{slug}`.
    pub(super) fn is_refusal(&self, slug: &str) -> bool {
        matches!(self, ClientError::Refused(refusal) if refusal.slug == slug)
    }

    /// Returns the error for a response whose status is not a success. Removes the bearer token
    /// from the error, because the response may repeat it.
    pub(super) fn from_response(
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        token: Option<&str>,
    ) -> ClientError {
        let header = |name: HeaderName| headers.get(name)?.to_str().ok();
        let without_token = |text: &str| match token {
            Some(token) => text.replace(token, "(token)"),
            None => text.to_owned(),
        };
        // The body may contain the bearer token with JSON escapes, such as `\u0061` for `a`. Parse
        // the body and serialize it again, so that the token has the form that is replaced below.
        let problem = serde_json::from_slice::<Value>(body).ok();
        let body = problem.map_or_else(String::new, |problem| match token {
            Some(token) => {
                let token = Value::from(token).to_string();
                let escaped = &token[1..token.len() - 1];
                problem.to_string().replace(escaped, "(token)")
            }
            None => problem.to_string(),
        });
        let seconds = header(RETRY_AFTER).and_then(|seconds| seconds.parse().ok());
        let mut refusal =
            ProblemDetails::new(status, seconds.map(Duration::from_secs), body.as_bytes());
        if let Some(place) = header(LOCATION).filter(|_| status.is_redirection()) {
            let place = without_token(place);
            refusal.detail = format!("the service redirects to {place}; use that address");
        }
        match status {
            StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => ClientError::Busy(refusal),
            _ => ClientError::Refused(refusal),
        }
    }
}

/// The problem document in the response to a refused request, as defined by RFC 9457. Members that
/// the response lacks are empty.
#[derive(Debug)]
pub struct ProblemDetails {
    status: StatusCode,
    /// The last path segment of the problem type, such as `overloaded`. Empty without a type.
    pub slug: String,
    /// The explanation of this occurrence.
    pub detail: String,
    /// `true` if the response has a JSON body. A response without a JSON body comes from another
    /// program, such as a proxy.
    pub is_explained: bool,
    retry_after: Option<Duration>,
    /// The whole document, or null if the body is not JSON.
    problem: Value,
}

impl ProblemDetails {
    /// Returns the status of the response.
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// Returns a text member of the document, such as `reason`, `limit` or `example`, or `None` if
    /// the document lacks the member.
    pub fn text(&self, member: &str) -> Option<&str> {
        self.problem.get(member)?.as_str()
    }

    /// Parses the body of an error response. `retry_after` is the value of the header
    /// `Retry-After`, which is rounded to whole seconds. The member `retry_after_ms` of the
    /// document takes precedence, because it is exact to a millisecond.
    pub(super) fn new(
        status: StatusCode,
        retry_after: Option<Duration>,
        body: &[u8],
    ) -> ProblemDetails {
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
        ProblemDetails {
            status,
            slug: slug.to_owned(),
            detail: detail.to_owned(),
            is_explained: problem.is_some(),
            retry_after: exact.or(retry_after),
            problem: problem.unwrap_or_default(),
        }
    }
}

/// Returns the first error of type `E` among an error and its causes.
pub(super) fn find_cause<'a, E: Error + 'static>(
    error: &'a (dyn Error + 'static),
) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // A `TransportError` or an `io::Error` can wrap another error, but its `source` returns the
        // cause of the wrapped error. Visit the wrapped error first.
        let transport = error.downcast_ref::<TransportError>();
        let io = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        next = match (transport, io) {
            (Some(transport), _) => Some(transport.cause()),
            (None, Some(inner)) => Some(inner),
            (None, None) => error.source(),
        };
    }
    None
}

impl fmt::Display for ProblemDetails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.detail)
    }
}

/// An error of the HTTP library reqwest. Its message leaves out the outermost errors of the chain,
/// because they say only that a request failed.
#[derive(Debug)]
pub(super) struct TransportError(pub(super) reqwest::Error);

impl TransportError {
    fn cause(&self) -> &(dyn Error + 'static) {
        let mut error: &(dyn Error + 'static) = &self.0;
        while let Some(source) = error.source().filter(|_| error.is::<reqwest::Error>()) {
            error = source;
        }
        error
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.cause(), f)
    }
}

impl Error for TransportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause().source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_document_says_more_than_the_status() {
        let body =
            br#"{"type":"https://x/problems/head-moved","detail":"it is 3","retry_after_ms":250}"#;
        let refusal = ProblemDetails::new(StatusCode::CONFLICT, Some(Duration::from_secs(1)), body);
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
    fn no_error_repeats_the_token() {
        let token = "idmint_\"SECRET\"";
        let told = Value::from(token).to_string();
        let escaped = told.replace('S', r"\u0053");
        for text in [&told, &escaped] {
            let body = format!(r#"{{"type":{text},"detail":{text},{text}:[{text}]}}"#);
            let of_status = |status| {
                ClientError::from_response(status, &HeaderMap::new(), body.as_bytes(), Some(token))
            };
            for status in [StatusCode::FORBIDDEN, StatusCode::SERVICE_UNAVAILABLE] {
                let error = of_status(status);
                assert!(error.to_string().ends_with(": (token)"), "{error}");
                assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
            }
            let wrong = serde_json::from_str::<u8>(text).expect_err("no number");
            assert!(wrong.to_string().contains("SECRET"), "{wrong}");
            let error = ClientError::not_idmint(wrong);
            assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
        }
    }

    #[test]
    fn a_refusal_without_a_document_is_told_by_its_status() {
        let refusal = ProblemDetails::new(
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
