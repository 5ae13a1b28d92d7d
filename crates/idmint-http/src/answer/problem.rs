//! The problem document (RFC 9457), which is the response to a request that fails.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::body::{AnswerBody, NO_SNIFFING};
use super::json::json_bytes;
use super::problem_catalog::Slug;

/// The media type of every problem, whatever the request's `Accept` header.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// The maximum length of a detail, in characters. Without this limit, a response could repeat a
/// whole request body.
const DETAIL_CHARS_MAX: usize = 400;

/// The maximum length of a response, in bytes. It does not apply to responses that are sent line by
/// line or consist only of ids.
pub(crate) const ANSWER_LEN_MAX: usize = 64 * 1024 * 1024;

/// The response of a route, or the problem that becomes its response.
pub(crate) type Answer<B = Body> = Result<Response<B>, Problem>;

/// The reason why a request failed: the kind of problem, and the details of this occurrence.
///
/// The response is `application/problem+json` with the members `type`, `title`, `status` and
/// `detail`. The members `reason`, `limit`, `retry_after_ms`, `accepts` and `example` are present
/// if they are known. Some kinds of problems have further members, such as `head`.
/// [`Edge`](crate::Edge) adds the request id as the member `instance`, so that handlers need not
/// know the id.
///
/// Source: RFC 9457, <https://www.rfc-editor.org/rfc/rfc9457>.
///
/// ```
/// use axum::response::IntoResponse;
/// use idmint_http::{Problem, Slug};
///
/// let problem = Problem::new(Slug::InvalidParameter, "count is 0");
/// assert_eq!(problem.into_response().status(), 422);
/// ```
// The members are boxed to keep a problem small. Every handler returns a `Result` with a problem,
// and a large error type would slow down successful requests.
#[derive(Debug, Clone)]
pub struct Problem(Box<Members>);

#[derive(Debug, Clone)]
struct Members {
    slug: Slug,
    detail: String,
    reason: Option<String>,
    limit: Option<String>,
    retry_after: Option<Duration>,
    example: Option<String>,
    accepts: Vec<&'static str>,
    more: Vec<(&'static str, Value)>,
}

impl Problem {
    /// Returns a problem response of the kind `slug`. `detail` names the offending value and the
    /// bound that it broke.
    ///
    /// A detail longer than 400 characters is cut, because parts of it come from the caller.
    pub fn new(slug: Slug, detail: impl Into<String>) -> Self {
        Self(Box::new(Members {
            slug,
            detail: clip(detail.into()),
            reason: None,
            limit: None,
            retry_after: None,
            example: None,
            accepts: Vec::new(),
            more: Vec::new(),
        }))
    }

    /// Returns the problem for a parameter with an invalid value. Its member `reason` is the name
    /// of the parameter.
    pub(crate) fn parameter(name: &str, detail: impl Into<String>) -> Self {
        Self::new(Slug::InvalidParameter, detail).reason(name)
    }

    /// Sets the reason: one word that a program can match.
    #[must_use]
    pub(crate) fn reason(mut self, reason: impl Into<String>) -> Self {
        self.0.reason = Some(reason.into());
        self
    }

    /// Sets the bound that was broken, with its unit.
    #[must_use]
    pub(crate) fn limit(mut self, limit: impl Into<String>) -> Self {
        self.0.limit = Some(limit.into());
        self
    }

    /// Sets the time after which the same request may succeed. The header `Retry-After` has this
    /// time in seconds, rounded up, and the member `retry_after_ms` in milliseconds. Both are at
    /// least 1, because a client treats a 503 without a retry time as a failure that only an
    /// operator can fix.
    #[must_use]
    pub(crate) fn retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait.max(Duration::from_millis(1)));
        self
    }

    /// Sets an example of a request that works.
    #[must_use]
    pub(crate) fn example(mut self, example: impl Into<String>) -> Self {
        self.0.example = Some(example.into());
        self
    }

    /// Sets an example of a request that works, if the status is 422 and the problem has no
    /// example.
    #[must_use]
    pub(crate) fn or_example(self, example: impl FnOnce() -> String) -> Self {
        let lacks_one =
            self.status() == StatusCode::UNPROCESSABLE_ENTITY && self.0.example.is_none();
        if lacks_one {
            self.example(example())
        } else {
            self
        }
    }

    /// Sets the media types that the route accepts.
    #[must_use]
    pub(crate) fn accepts(mut self, media_types: impl IntoIterator<Item = &'static str>) -> Self {
        self.0.accepts = media_types.into_iter().collect();
        self
    }

    /// Adds a JSON member to the body, such as `head`, the id of the last event in a ledger.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.more.push((name, value.into()));
        self
    }

    /// Returns the kind of this problem.
    pub(crate) fn slug(&self) -> Slug {
        self.0.slug
    }

    /// Returns the details of this occurrence.
    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Returns the status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.slug.page().status)
            .expect("the catalog holds valid status codes, tested there")
    }

    pub(crate) fn body(&self, instance: Option<&str>) -> Vec<u8> {
        json_bytes(&Document {
            problem: &self.0,
            instance,
        })
    }
}

impl Problem {
    /// Returns the response for this problem.
    pub(crate) fn into_answer(self) -> Response<AnswerBody> {
        let mut response = Response::new(AnswerBody::from(self.body(None)));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
        if let Some(wait) = self.0.retry_after {
            headers.insert(
                header::RETRY_AFTER,
                HeaderValue::from(seconds_rounded_up(wait)),
            );
        }
        if let Some((name, value)) = header_named_by(self.0.slug, &self.0.accepts) {
            headers.insert(name, value);
        }
        // Keep the problem in the response, because `name_instance` later writes the body again.
        // The new body contains the request id, which this function does not know.
        response.extensions_mut().insert(self);
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        self.into_answer().map(Body::new)
    }
}

/// Writes the request id into a problem response. Leaves other responses unchanged.
///
/// Returns the problem, or `None` if the response is not a problem.
pub(crate) fn name_instance(
    response: &mut Response<AnswerBody>,
    request_id: &HeaderValue,
) -> Option<Problem> {
    let problem = response.extensions_mut().remove::<Problem>()?;
    *response.body_mut() = AnswerBody::from(problem.body(request_id.to_str().ok()));
    // Remove `Content-Length`, because it is the length of the shorter body without the request id.
    response.headers_mut().remove(header::CONTENT_LENGTH);
    Some(problem)
}

/// Returns the problem for a response that would be too long. `instead` is advice for the caller,
/// such as to send fewer texts in one request.
pub(crate) fn too_long(slug: Slug, instead: &str) -> Problem {
    let detail = format!("the response would exceed {ANSWER_LEN_MAX} bytes: {instead}");
    Problem::new(slug, detail)
        .reason("answer_len")
        .limit(format!("{ANSWER_LEN_MAX} bytes"))
}

/// Returns the header that RFC 9110 requires for this problem's status, if any. Sections 11.6.1 and
/// 15.5.16 define these headers.
fn header_named_by(slug: Slug, accepts: &[&'static str]) -> Option<(HeaderName, HeaderValue)> {
    match slug {
        Slug::Unauthorized => Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
        Slug::UnsupportedMediaType if !accepts.is_empty() => {
            HeaderValue::from_str(&accepts.join(", "))
                .ok()
                .map(|value| (header::ACCEPT, value))
        }
        _ => None,
    }
}

/// Rounds up to whole seconds, and at least to 1, because `Retry-After: 0` invites a tight loop.
fn seconds_rounded_up(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}

fn millis_rounded_up(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn clip(mut detail: String) -> String {
    if let Some((end, _)) = detail.char_indices().nth(DETAIL_CHARS_MAX) {
        detail.truncate(end);
        detail.push('…');
    }
    detail
}

/// Serializes the problem without the member `instance`, for responses that contain several
/// problems.
impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Document {
            problem: &self.0,
            instance: None,
        }
        .serialize(serializer)
    }
}

struct Document<'a> {
    problem: &'a Members,
    instance: Option<&'a str>,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { problem, instance } = self;
        let page = problem.slug.page();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &format_args!("/problems/{}", page.name))?;
        map.serialize_entry("title", page.title)?;
        map.serialize_entry("status", &page.status)?;
        map.serialize_entry("detail", &problem.detail)?;
        if let Some(instance) = instance {
            map.serialize_entry("instance", instance)?;
        }
        if let Some(reason) = &problem.reason {
            map.serialize_entry("reason", reason)?;
        }
        if let Some(limit) = &problem.limit {
            map.serialize_entry("limit", limit)?;
        }
        if let Some(wait) = problem.retry_after {
            map.serialize_entry("retry_after_ms", &millis_rounded_up(wait))?;
        }
        if !problem.accepts.is_empty() {
            map.serialize_entry("accepts", &problem.accepts)?;
        }
        if let Some(example) = &problem.example {
            map.serialize_entry("example", example)?;
        }
        for (name, value) in &problem.more {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_holds_only_what_is_known() {
        let problem = Problem::new(Slug::HeadMoved, "the head is another").with("head", "00ab");
        let document = String::from_utf8(problem.body(Some("req-1"))).expect("JSON is UTF-8");
        assert_eq!(
            document,
            "{\"type\":\"/problems/head-moved\",\"title\":\"The head of the ledger moved\",\"status\":409,\
             \"detail\":\"the head is another\",\"instance\":\"req-1\",\"head\":\"00ab\"}\n"
        );
    }

    #[test]
    fn waits_are_rounded_up_and_never_zero_seconds() {
        for (millis, seconds) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (59_999, 60)] {
            assert_eq!(
                seconds_rounded_up(Duration::from_millis(millis)),
                seconds,
                "{millis} ms"
            );
        }
        assert_eq!(millis_rounded_up(Duration::from_micros(1_001)), 2);
    }

    #[test]
    fn a_wait_of_zero_is_written_as_a_millisecond() {
        let problem = Problem::new(Slug::ClockBehind, "behind").retry_after(Duration::ZERO);
        assert_eq!(problem.0.retry_after.map(millis_rounded_up), Some(1));
    }

    #[test]
    fn headers_say_when_to_retry_and_not_to_store() {
        let response = Problem::new(Slug::Overloaded, "too many")
            .retry_after(Duration::from_millis(1_200))
            .into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[header::RETRY_AFTER], "2");
        assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
        assert_eq!(response.headers()[header::CONTENT_TYPE], PROBLEM_JSON);
    }

    #[test]
    fn a_missing_token_is_asked_for() {
        let response = Problem::new(Slug::Unauthorized, "no token").into_response();
        assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer");
    }

    #[test]
    fn a_long_detail_is_cut_between_characters() {
        let problem = Problem::new(Slug::MalformedRequest, "é".repeat(10_000));
        assert_eq!(problem.detail().chars().count(), DETAIL_CHARS_MAX + 1);
    }
}
