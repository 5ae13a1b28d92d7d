//! `POST /ids/{format}` of a grouped format: reports in, one id for each out.
//!
//! A report's id is made of its own time and objects, so nothing is stored, and a node that cannot mint others answers.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;

use super::body::read_body;
use super::grouping::Ungrouped;
use super::json::{Object, strict_json};
use super::mint::{MEDIA_TYPES, answer, encoding, refuse_parameters};
use super::problem::{Problem, Slug};
use super::query::strict_query;
use super::representation::{MediaType, choose, media_type_of_body};
use super::service::Service;
use super::spelling::{Spelling, body};
use crate::id::{Format, Rejection};
use crate::minting::{Batch, GroupError, GroupRefusal, Grouped, Report, ReportError, Sighting};
use crate::time::UnixTime;
use crate::wire::{MintAnswer, MintDetails, ReportDetail, ReportRequest};

/// The longest body of reports, in bytes.
const BODY_LEN_MAX: usize = 16 * 1024 * 1024;

/// A longer body is answered on a thread of its own: a list of the greatest length takes a good part of a second, for
/// which the other requests of this thread would wait.
const BODY_LEN_AT_ONCE_MAX: usize = 64 * 1024;

/// Digits of a second that are told of a time of closest approach.
const TCA_DIGITS: u8 = 6;

/// Mints the ids of all reports in the body, or of none.
///
/// # Errors
/// A [`Problem`]: nothing was minted. `invalid-report` names the report and its member, such as `[3].primary`.
pub(super) async fn mint_reports(
    service: &Arc<Service>,
    position: usize,
    format: &Arc<Format>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let (parts, request_body) = request.into_parts();
    let media = choose(&parts.headers, &MEDIA_TYPES)?;
    let query = strict_query(parts.uri.query().unwrap_or_default(), &["count", "encoding", "type", "domain"])?;
    refuse_parameters(&query, "report", format)?;
    let encoding = encoding(&query, format)?;
    let request_body = read_body(request_body, BODY_LEN_MAX, service.limits.body_timeout).await?;
    if !request_body.is_empty() {
        media_type_of_body(&parts.headers, &[MediaType::Json])?;
    }
    let is_short = request_body.len() <= BODY_LEN_AT_ONCE_MAX;
    let most = service.limits.batch_max;
    let reports = at_once_or_aside(is_short, move || Reports::of_json(&request_body, most)).await?;
    let sightings: Vec<Sighting> =
        reports.list.iter().map(|report| Sighting { report: *report, expected: None }).collect();
    let grouped = service.group(position, &sightings).await.map_err(|error| match error {
        Ungrouped::Report(GroupRefusal { index, error: GroupError::Report(error) }) => {
            refused(&reports.place(index), &error)
        }
        Ungrouped::Report(GroupRefusal { index, error }) => {
            Problem::new(Slug::InvalidReport, format!("{}{error}", reports.place(index)))
        }
        Ungrouped::Problem(problem) => problem,
    })?;
    let count = u64::try_from(grouped.len()).expect("a list is shorter than 2^64");
    let content = match media {
        MediaType::Json => {
            let format = Arc::clone(format);
            Body::from(at_once_or_aside(is_short, move || detailed(&format, encoding, &grouped)).await)
        }
        _ => {
            let ids = Batch::of_ids(grouped.iter().map(|grouped| grouped.id).collect());
            body(Spelling::new(media, format, encoding, count, None), service.outgoing(position, ids))
        }
    };
    Ok(answer(media, format, count, content))
}

/// Does what takes long on a thread of its own.
async fn at_once_or_aside<T: Send + 'static>(is_short: bool, work: impl FnOnce() -> T + Send + 'static) -> T {
    if is_short {
        return work();
    }
    tokio::task::spawn_blocking(work).await.expect("it does not panic, and nobody aborts it")
}

/// A request that works, for a format that may have any epoch and objects of any width.
pub(super) fn example(service: &Service, position: usize, format: &Format) -> String {
    let of = |seconds: i128, primary, secondary| {
        let tca = UnixTime::from_nanos(seconds * 1_000_000_000);
        Report::new(tca, primary, secondary).expect("two objects, neither of them 0")
    };
    let known = Some(of(1_706_745_600, 25_544, 48_274));
    let known = known.filter(|report| service.mint.grouped(position).id_of(report).is_ok());
    let report = known.unwrap_or_else(|| of(format.epoch.seconds() + 1, 1, 2));
    let tca = report.tca().to_text(0).unwrap_or_default().into();
    let report = ReportRequest { tca, primary: report.primary(), secondary: report.secondary() };
    let json = serde_json::to_string(&report).expect("a text and two numbers");
    format!("POST /ids/{} {json}", format.name)
}

/// What a body reports.
struct Reports {
    list: Vec<Report>,
    /// Whether it was a list, so that a place in it needs a number.
    is_list: bool,
}

impl Reports {
    /// Reads one report, or a list of 1 to `most`.
    fn of_json(json: &[u8], most: u32) -> Result<Reports, Problem> {
        if json.is_empty() {
            let detail = "the body is empty, it must be a report or a list of reports";
            return Err(Problem::new(Slug::InvalidReport, detail).reason("report_form"));
        }
        let is_list = json.trim_ascii_start().first() == Some(&b'[');
        let given: Vec<Object<ReportRequest<'_>>> = if is_list { read_json(json)? } else { vec![read_json(json)?] };
        if given.is_empty() || given.len() > usize::try_from(most).unwrap_or(usize::MAX) {
            let detail = format!("there are {} reports in the list, it must hold from 1 to {most}", given.len());
            return Err(Problem::new(Slug::InvalidReport, detail).reason("count").limit(most.to_string()));
        }
        let mut reports = Reports { list: Vec::with_capacity(given.len()), is_list };
        for (at, Object(report)) in given.iter().enumerate() {
            let report = read_report(report, || reports.place(at))?;
            reports.list.push(report);
        }
        Ok(reports)
    }

    /// What stands before the name of a member of the report at that place.
    fn place(&self, at: usize) -> String {
        if self.is_list { format!("[{at}].") } else { String::new() }
    }
}

fn read_json<'a, T: serde::Deserialize<'a>>(json: &'a [u8]) -> Result<T, Problem> {
    strict_json(json, Slug::InvalidReport).map_err(|problem| match problem.slug() {
        Slug::InvalidReport => problem.reason("report_form"),
        _ => problem,
    })
}

fn read_report(given: &ReportRequest<'_>, place: impl Fn() -> String) -> Result<Report, Problem> {
    let tca = UnixTime::from_utc_text(&given.tca).map_err(|error| {
        let problem = Problem::new(Slug::InvalidReport, format!("{}tca: {error}", place()));
        problem.reason(Rejection::BadTimestamp.code())
    })?;
    Report::new(tca, given.primary, given.secondary).map_err(|error| refused(&place(), &error))
}

fn refused(place: &str, error: &ReportError) -> Problem {
    let (reason, limit) = match error {
        ReportError::ObjectZero { .. } => (Rejection::OutOfRange.code(), Some("1".to_owned())),
        ReportError::SameObject { .. } => ("same_object", None),
        ReportError::ObjectTooGreat { most, .. } => (Rejection::OutOfRange.code(), Some(most.to_string())),
        ReportError::TcaTooEarly { begins, .. } => (Rejection::BeforeEpoch.code(), Some(begins.to_string())),
        ReportError::TcaTooLate { ended, .. } => (Rejection::Overflow.code(), Some(ended.to_string())),
        ReportError::IdTooGreat { below, .. } => (Rejection::Overflow.code(), Some(below.to_string())),
    };
    let problem = Problem::new(Slug::InvalidReport, format!("{place}{error}")).reason(reason);
    match limit {
        Some(limit) => problem.limit(limit),
        None => problem,
    }
}

/// The answer in JSON, which alone says what became of each report. Built whole: it is a few times as long as the
/// body, and that was read whole too.
fn detailed(format: &Format, encoding: usize, grouped: &[Grouped]) -> Vec<u8> {
    let detail = |grouped: &Grouped| ReportDetail {
        id: format.encodings[encoding].to_text(grouped.id),
        created: grouped.created,
        anchor_tca: UnixTime::from(grouped.anchor).to_text(TCA_DIGITS).expect("a time that was read can be written"),
        tca_delta_us: grouped.delta_us,
    };
    let details: Vec<ReportDetail> = grouped.iter().map(detail).collect();
    let answer = MintAnswer {
        format: format.name.clone(),
        count: u64::try_from(grouped.len()).expect("a list is shorter than 2^64"),
        label: None,
        ids: details.iter().map(|detail| detail.id.clone()).collect(),
        details: Some(MintDetails::Reports(details)),
    };
    serde_json::to_vec(&answer).expect("texts and numbers always serialize")
}
