//! What an answer says of its caller's rate.

use std::sync::{Arc, OnceLock};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::rate::{Left, Rate};

const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The fields `RateLimit` and `RateLimit-Policy`, once the request has been counted. Clones are one note.
///
/// Source: RateLimit header fields for HTTP, draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4,
/// <https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/>.
#[derive(Debug, Clone, Default)]
pub struct RateNote(Arc<OnceLock<[HeaderValue; 2]>>);

impl RateNote {
    /// What is left of this rate; `None` if nothing is.
    pub(super) fn fill(&self, rate: &Rate, left: Option<Left>) {
        let (requests, seconds) =
            left.map_or((0, 1), |left| (left.requests, left.until_full.as_nanos().div_ceil(1_000_000_000)));
        let fields = [format!("\"second\";r={requests};t={seconds}"), format!("\"second\";q={};w=1", rate.requests())];
        let value = |field: String| HeaderValue::try_from(field).expect("digits and visible ASCII");
        // A request is counted once.
        let _ = self.0.set(fields.map(value));
    }

    /// Writes the fields, if the request was counted.
    pub fn write(&self, headers: &mut HeaderMap) {
        if let Some([left, policy]) = self.0.get() {
            headers.insert(RATELIMIT, left.clone());
            headers.insert(RATELIMIT_POLICY, policy.clone());
        }
    }
}
