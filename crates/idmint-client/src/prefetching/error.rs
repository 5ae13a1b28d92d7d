//! Errors of prefetched ids.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::error::ClientError;

/// The reason why a call returned no id. All callers that waited for the same request get the same
/// error.
#[derive(Debug, Clone)]
pub enum IdsError {
    /// An option or an idempotency key is invalid, or the list of addresses is empty. No request
    /// was sent.
    Options(&'static str),
    /// The refill thread cannot be started or has ended.
    NotStarted(Arc<std::io::Error>),
    /// A request failed, or the response was an error.
    Unanswered {
        /// The URL of the address that failed.
        url: String,
        /// The cause.
        cause: Arc<ClientError>,
        /// `true` if the request may have taken effect although the call failed.
        outcome_unknown: bool,
        /// The error of another address whose certificate is not trusted.
        untrusted: Option<Arc<IdsError>>,
    },
    /// The stock was not refilled within the timeout.
    Late,
}

impl IdsError {
    pub(super) fn unanswered(url: &str, cause: ClientError) -> IdsError {
        IdsError::Unanswered {
            url: url.to_owned(),
            outcome_unknown: cause.outcome_is_unknown(),
            cause: Arc::new(cause),
            untrusted: None,
        }
    }

    /// Returns a copy of this error for one call. `unknown` is `true` if a request of that call may
    /// have taken effect.
    pub(super) fn of_call(&self, unknown: bool) -> IdsError {
        let mut error = self.clone();
        if let IdsError::Unanswered {
            outcome_unknown, ..
        } = &mut error
        {
            *outcome_unknown = unknown;
        }
        error
    }

    /// Returns this error, whose message then includes the certificate error of another address.
    pub(super) fn beside(mut self, other: Option<IdsError>) -> IdsError {
        let is_other = !self.is_untrusted();
        if let IdsError::Unanswered { untrusted, .. } = &mut self {
            *untrusted = other.filter(|_| is_other).map(Arc::new);
        }
        self
    }

    /// Returns `true` if the certificate of the address is not trusted.
    pub(super) fn is_untrusted(&self) -> bool {
        matches!(self.cause(), Some(ClientError::Untrusted { .. }))
    }

    /// Returns `true` if the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        let may_pass =
            |cause: &ClientError| cause.may_pass() || cause.is_refusal("ledger-importing");
        matches!(self, IdsError::Late) || self.cause().is_some_and(may_pass)
    }

    /// Returns `true` if the response does not come from an idmint service, for example because the
    /// address is wrong.
    pub fn is_bad_response(&self) -> bool {
        matches!(self.cause(), Some(ClientError::NotIdmint(_)))
    }

    /// Returns `true` if the request may have taken effect although the call failed.
    pub fn outcome_is_unknown(&self) -> bool {
        matches!(
            self,
            IdsError::Unanswered {
                outcome_unknown: true,
                ..
            }
        )
    }

    /// Returns `true` if the service refused the request and named the type of the problem.
    pub(super) fn has_slug(&self) -> bool {
        let refusal = self.cause().and_then(ClientError::refusal);
        refusal.is_some_and(|refusal| !refusal.slug.is_empty())
    }

    /// Returns `true` if the service cannot handle this request now, for a reason that may not
    /// concern other requests. For example, a format may have no ids left until its next time unit.
    pub(super) fn is_of_request(&self) -> bool {
        let refusal = self.cause().and_then(ClientError::refusal);
        refusal.is_some_and(|refusal| {
            matches!(refusal.status(), 409 | 503 | 504)
                && !["", "overloaded", "draining"].contains(&refusal.slug.as_str())
        })
    }

    /// Returns `true` if the request cannot succeed until an operator acts or an import ends.
    /// The response then has status 409 or 503 and names no time to wait.
    pub(super) fn waits_for_operator(&self) -> bool {
        let wait = self.cause().and_then(ClientError::retry_after);
        self.is_of_request() && self.status() != Some(504) && wait.is_none_or(|wait| wait.is_zero())
    }

    /// Returns the largest count that the service accepts, if it refused the request because of its
    /// count.
    pub(super) fn count_max(&self) -> Option<u32> {
        let refusal = self.cause()?.refusal()?;
        let is_of_count = refusal.status() == 422 && refusal.text("reason") == Some("count");
        let limit = refusal.text("limit").filter(|_| is_of_count)?;
        limit.parse().ok()
    }

    /// Returns the status of an error response, or `None` if the call failed for another reason.
    pub fn status(&self) -> Option<u16> {
        Some(self.cause()?.refusal()?.status())
    }

    /// Returns the error of the HTTP client, or `None` if the call failed for another reason, such
    /// as waiting too long for prefetched ids.
    fn cause(&self) -> Option<&ClientError> {
        match self {
            IdsError::Unanswered { cause, .. } => Some(cause),
            IdsError::Options(_) | IdsError::NotStarted(_) | IdsError::Late => None,
        }
    }
}

pub(super) fn ended() -> IdsError {
    IdsError::NotStarted(Arc::new(std::io::Error::other("the thread has ended")))
}

impl fmt::Display for IdsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_own(out)?;
        match self {
            IdsError::Unanswered {
                untrusted: Some(other),
                ..
            } => write!(out, "; {other}"),
            _ => Ok(()),
        }
    }
}

impl IdsError {
    /// Writes the message without the certificate error of another address.
    fn write_own(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (url, cause) = match self {
            IdsError::Options(wrong) => return out.write_str(wrong),
            IdsError::NotStarted(_) => {
                return out.write_str("cannot start the prefetching thread");
            }
            IdsError::Late => return out.write_str("the service sent no ids within the timeout"),
            IdsError::Unanswered { url, cause, .. } => (url, cause),
        };
        if let ClientError::Untrusted { .. } = **cause {
            return write!(
                out,
                "{cause}; set authorities to the certificate of its authority"
            );
        }
        let Some(refusal) = cause.refusal() else {
            return write!(out, "{url}: {cause}");
        };
        write!(out, "{url} answers {refusal}")?;
        match refusal.status() {
            401 => out.write_str("; set token to one that http.tokens of the service has"),
            403 => out.write_str("; the token does not cover this: see http.tokens of the service"),
            421 => {
                out.write_str("; use a host name of the service, or add this one to its http.hosts")
            }
            _ => refusal
                .text("example")
                .map_or(Ok(()), |example| write!(out, "; this works: {example}")),
        }
    }
}

impl Error for IdsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            IdsError::Options(_) | IdsError::Late => None,
            IdsError::NotStarted(cause) => Some(cause.as_ref()),
            // The message of this variant already includes the message of `cause`, so the chain
            // continues after it.
            IdsError::Unanswered { cause, .. } => cause.source(),
        }
    }
}
