//! Why there is no id.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::client::error::ClientError;

/// Why there is no id, or no other answer; every caller that waited for it has the same one.
#[derive(Debug, Clone)]
pub enum IdsError {
    /// The options contradict each other, or there is no address. Nothing was sent.
    Options(&'static str),
    /// No thread that fills the stock can be started.
    NotStarted(Arc<std::io::Error>),
    /// What this address answers, or that it does not.
    Unanswered {
        /// The address.
        url: String,
        /// Why.
        cause: Arc<ClientError>,
    },
}

impl IdsError {
    pub(super) fn unanswered(url: &str, cause: ClientError) -> IdsError {
        IdsError::Unanswered {
            url: url.to_owned(),
            cause: Arc::new(cause),
        }
    }

    /// Whether the same request may work later.
    pub fn is_transient(&self) -> bool {
        matches!(self, IdsError::Unanswered { cause, .. } if cause.may_pass())
    }

    /// How many ids are had at most, where more were asked for.
    pub(super) fn count_max(&self) -> Option<u32> {
        match self {
            IdsError::Unanswered { cause, .. } => {
                let refusal = cause.refusal().filter(|refusal| {
                    refusal.status() == 422 && refusal.text("reason") == Some("count")
                })?;
                refusal.text("limit")?.parse().ok()
            }
            IdsError::Options(_) | IdsError::NotStarted(_) => None,
        }
    }

    /// The status of the answer; `None` if there was none.
    pub fn status(&self) -> Option<u16> {
        match self {
            IdsError::Unanswered { cause, .. } => cause.refusal().map(|refusal| refusal.status()),
            IdsError::Options(_) | IdsError::NotStarted(_) => None,
        }
    }
}

impl fmt::Display for IdsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (url, cause) = match self {
            IdsError::Options(wrong) => return out.write_str(wrong),
            IdsError::NotStarted(_) => {
                return out.write_str("no thread that fills the stock can be started");
            }
            IdsError::Unanswered { url, cause } => (url, cause),
        };
        let Some(refusal) = cause.refusal() else {
            return write!(out, "{url}: {cause}");
        };
        write!(out, "{url} answers {refusal}")?;
        match refusal.status() {
            401 => out.write_str("; set token to one that http.tokens of the service has"),
            403 => out.write_str("; the token does not cover this: see http.tokens of the service"),
            421 => out.write_str(
                "; ask by a name that the service answers for, or add this one to its http.hosts",
            ),
            _ => refusal
                .text("example")
                .map_or(Ok(()), |example| write!(out, "; this works: {example}")),
        }
    }
}

impl Error for IdsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            IdsError::Options(_) => None,
            IdsError::NotStarted(cause) => Some(cause.as_ref()),
            // The message has the cause itself.
            IdsError::Unanswered { cause, .. } => cause.source(),
        }
    }
}
