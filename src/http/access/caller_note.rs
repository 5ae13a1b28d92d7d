//! What is found out about a caller while a request is let in: what its answer says of the rate, and what was shown.

use std::sync::{Arc, OnceLock};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::permit::Permit;
use super::rate::{Left, Rate};

const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// What is known of a caller once the request was looked at. Clones are one note.
#[derive(Debug, Clone, Default)]
pub struct CallerNote(Arc<Found>);

/// Source of the fields: RateLimit header fields for HTTP, draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4,
/// <https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/>.
#[derive(Debug, Default)]
struct Found {
    /// The fields `RateLimit` and `RateLimit-Policy`, once the request has been counted.
    rate: OnceLock<[HeaderValue; 2]>,
    /// What the caller was let in by.
    permit: OnceLock<Arc<Permit>>,
    /// Whether an audit trail is told of the request whatever comes of it.
    is_told: OnceLock<()>,
}

impl CallerNote {
    /// That an audit trail is told of the request, whatever comes of it.
    pub(in crate::http) fn is_to_be_told(&self) {
        // A request has one route.
        let _ = self.0.is_told.set(());
    }

    /// Whether that is so.
    pub(super) fn is_told(&self) -> bool {
        self.0.is_told.get().is_some()
    }

    /// That this was shown, whatever it is good for.
    pub(super) fn has_shown(&self, permit: &Arc<Permit>) {
        // A request is looked at once.
        let _ = self.0.permit.set(Arc::clone(permit));
    }

    /// What was shown, such as "the token `billing`".
    pub(super) fn shown_by(&self) -> Option<&str> {
        self.0.permit.get().map(|permit| permit.shown_by.as_str())
    }

    /// What is left of this rate; `None` if nothing is.
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
        // A request is counted once.
        let _ = self.0.rate.set(fields.map(value));
    }

    /// Writes the fields, if the request was counted.
    pub fn write(&self, headers: &mut HeaderMap) {
        if let Some([left, policy]) = self.0.rate.get() {
            headers.insert(RATELIMIT, left.clone());
            headers.insert(RATELIMIT_POLICY, policy.clone());
        }
    }
}
