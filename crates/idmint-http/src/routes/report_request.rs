//! A request with conjunction reports: query, headers and body. The service limits long work, so a
//! request with a long body, for example, needs a permit.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::request::Parts;
use bytes::Bytes;

use crate::answer::{MediaType, Problem, media_type_of_body, negotiate, negotiate_minted};
use crate::request::{
    Query, bulk_of, encoding, owner_of, query_of, read_reserved_body, refuse_count,
    report_count_max, work_on,
};
use idmint_core::id::Format;
use idmint_records::conjunction::NotedRule;
use idmint_service::{BulkPass, MemoryReservation, PeerBulk, Place, Service};

/// The accepted media types of reports.
pub(super) const BODY_TYPES: [MediaType; 5] = [
    MediaType::Json,
    MediaType::Text,
    MediaType::Xml,
    MediaType::TextXml,
    MediaType::Csv,
];

/// The content of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The ids.
    Ids,
    /// The id of each report, or the reason why the report is refused. An invalid report does not
    /// affect the other reports.
    IdsOrProblems,
    /// The messages of the reports, with the new ids inserted.
    Messages,
}

/// The requested content and form of the response.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportOrder {
    pub(super) wanted: Wanted,
    /// The index of the encoding among the encodings of the format.
    pub(super) encoding: usize,
    /// The rule for reports that already contain an id.
    pub(super) noted_rule: NotedRule,
    /// The media type of the response.
    pub(super) media: MediaType,
}

impl ReportOrder {
    /// Parses the head of a request. `parameters` are the accepted query parameters.
    ///
    /// # Errors
    /// Returns a [`Problem`] that names the parameter or the header.
    pub(super) fn read(
        parts: &Parts,
        parameters: &'static [&'static str],
        format: &Format,
        has_body: bool,
    ) -> Result<ReportOrder, Problem> {
        let query = query_of(&parts.uri, parameters)?;
        refuse_count(&query, "report", format)?;
        let wanted = match query.get("return") {
            None => Wanted::Ids,
            Some(_) => Wanted::Messages,
        };
        let encoding = encoding(&query, format)?;
        // With the parameter `return`, the response contains the messages with their conjunctions'
        // ids. An id that a message already contains must agree with the id that the message gets.
        let noted_rule = NotedRule {
            keep: query.is_set_to("noted", "keep")?,
            must_agree: wanted == Wanted::Messages,
            named_reach: Duration::ZERO,
        };
        let wanted = if is_partial(&query, wanted)? {
            Wanted::IdsOrProblems
        } else {
            wanted
        };
        let media = match wanted {
            Wanted::IdsOrProblems => negotiate(&parts.headers, &[MediaType::Json])?,
            Wanted::Ids => negotiate_minted(&parts.headers, format)?,
            Wanted::Messages => {
                let body = media_type_of_body(&parts.headers, !has_body, &BODY_TYPES)?;
                check_return(&query, body)?;
                negotiate(&parts.headers, &[body])?
            }
        };
        Ok(ReportOrder {
            wanted,
            encoding,
            noted_rule,
            media,
        })
    }
}

/// Checks that `return`, which asks for messages with their ids, fits the media type of the body.
fn check_return(query: &Query<'_>, body: MediaType) -> Result<(), Problem> {
    let only = match body {
        MediaType::Csv => "csv",
        _ => "cdm",
    };
    match query.get("return").unwrap_or(only) {
        given if given == only => Ok(()),
        given => {
            let body = body.essence();
            let detail =
                format!("return is {given:?}, but can only be {only} for a body of {body}");
            Err(Problem::parameter("return", detail).limit(only))
        }
    }
}

/// `true` if an invalid report gets its own error and does not affect the other reports.
fn is_partial(query: &Query<'_>, wanted: Wanted) -> Result<bool, Problem> {
    let refuse = |detail: String, limit| Err(Problem::parameter("partial", detail).limit(limit));
    match query.get("partial") {
        None | Some("false") => Ok(false),
        Some("true") if wanted == Wanted::Ids => Ok(true),
        Some("true") => refuse(
            "partial cannot be combined with return, which returns all messages".to_owned(),
            "false",
        ),
        Some(other) => refuse(
            format!("partial is {other:?}, but can only be true or false"),
            "true or false",
        ),
    }
}

/// The maximum length of a body of reports, in bytes.
const BODY_LEN_MAX: usize = 16 * 1024 * 1024;

/// The maximum length, in bytes, of a body that may count as short work. A longer body counts as
/// long work whatever its content, and needs a permit before it is read.
const BODY_LEN_AT_ONCE_MAX: usize = 64 * 1024;

/// The memory reserved for parsed reports, in percent of the body's length. Parsed reports may take
/// more memory. However, a higher value could make the reservation for the longest body exceed the
/// limit of one peer.
const PARSE_PERCENT: usize = 70;

/// The estimated time per byte, in nanoseconds, to read, group and answer reports.
const NANOS_FOR_A_BYTE: u64 = 25;

/// The additional estimated time per report in a short body, in nanoseconds. An estimate from the
/// length of the body alone may be too low, because the response to a short body may be long.
const NANOS_FOR_A_REPORT: u64 = 2_500;

/// The length, in bytes, above which only one body is processed at a time, because such a body
/// takes several times its length in memory.
const LARGE_LEN: usize = 4 * 1024 * 1024;

/// The reports of a request before they are parsed.
pub(super) struct ReportBody {
    pub(super) bytes: Bytes,
    pub(super) media: MediaType,
    /// The memory reservation for the body.
    pub(super) memory: Option<MemoryReservation>,
    pub(super) permits: Permits,
}

/// A turn for a large body and a permit for long work, which are held until the work is done.
pub(super) struct Permits {
    _turn: Option<Place>,
    bulk: Option<BulkPass>,
}

impl ReportBody {
    /// Reads the body of a request, and gets the permits for the work on it.
    ///
    /// # Errors
    /// Returns a [`Problem`] if the body is too long, arrives too slowly or has a media type that
    /// is not supported, or if the service is overloaded.
    pub(super) async fn read(
        service: &Service,
        parts: &Parts,
        body: Body,
    ) -> Result<ReportBody, Problem> {
        let owner = owner_of(service, &parts.extensions);
        let timeout = service.limits().body_timeout;
        let peer_bulk = bulk_of(service, &parts.extensions);
        let declared_len = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let mut bulk = match declared_len > BODY_LEN_AT_ONCE_MAX {
            true => Some(peer_bulk.enter(estimate(declared_len))?),
            false => None,
        };
        bulk.iter_mut().for_each(BulkPass::pause);
        let reserved =
            read_reserved_body(body, BODY_LEN_MAX, timeout, &owner, PARSE_PERCENT).await?;
        let (bytes, memory) = reserved.into_parts();
        let turn = if bytes.len() > LARGE_LEN {
            Some(peer_bulk.turn_of_largest().await)
        } else {
            None
        };
        let media = match bytes.is_empty() {
            true => MediaType::Json,
            false => media_type_of_body(&parts.headers, false, &BODY_TYPES)?,
        };
        let mut bulk = peer_bulk.go_on(bulk, estimate(bytes.len()))?;
        if bytes.len() <= BODY_LEN_AT_ONCE_MAX {
            let of_body = bytes.clone();
            let count = move || report_count_max(&of_body, media);
            let count = work_on(bulk.as_ref().map(BulkPass::peer), count).await;
            let of_reports = Duration::from_nanos(NANOS_FOR_A_REPORT.saturating_mul(count));
            bulk = peer_bulk.go_on(bulk, estimate(bytes.len()) + of_reports)?;
        }
        Ok(ReportBody {
            bytes,
            media,
            memory,
            permits: Permits { _turn: turn, bulk },
        })
    }
}

impl Permits {
    /// Returns the handle to process the body on another thread, or `None` to process it at once.
    pub(super) fn aside(&self) -> Option<PeerBulk> {
        self.bulk.as_ref().map(|pass| pass.peer().clone())
    }
}

/// Returns the estimated time to process a body of `len` bytes.
fn estimate(len: usize) -> Duration {
    Duration::from_nanos(NANOS_FOR_A_BYTE.saturating_mul(u64::try_from(len).unwrap_or(u64::MAX)))
}
