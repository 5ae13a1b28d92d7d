//! `POST /ids/{format}` of a grouped format: reports in, one id for each out, or the same messages with the ids in them.
//!
//! A report joins a conjunction that is stored, or is the first of one; in mode `pure` nothing is stored, and a node that
//! cannot mint others answers too.

use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::Response;

use crate::conjunction::{Grouped, GroupedMinter, Report};
use crate::http::answer::{
    AnswerBody, IdEncoder, MINT_MEDIA_TYPES, MediaType, Problem, Slug, media_type_of_body, minted, negotiate,
};
use crate::http::request::{Query, encoding, payer_of, read_paid_body, read_reports, refuse_count, strict_query};
use crate::id::Format;
use crate::minting::Batch;
use crate::service::{BulkPass, GroupFailure, Outgoing, Requests, ServedFormat, Service};
use crate::time::UnixTime;
use crate::wire::{MintAnswer, MintDetails, ReportDetail, ReportRequest};

/// The longest body of reports, in bytes.
const BODY_LEN_MAX: usize = 16 * 1024 * 1024;

/// A longer body is answered on a thread of its own: a list of the greatest length takes a good part of a second, for
/// which the other requests of this thread would wait.
const BODY_LEN_AT_ONCE_MAX: usize = 64 * 1024;

/// What reports take once they are read, beside the bytes that they are read from, in hundredths of those. They take more; this
/// is what lets the longest body be paid for out of one peer's share.
const PARSE_PERCENT: usize = 70;

/// About what reading, grouping and answering takes for each byte.
const NANOS_FOR_A_BYTE: u64 = 25;

/// Reports of a longer body are read, grouped and answered one request after the other: they take several times the body.
const LARGE_LEN: usize = 4 * 1024 * 1024;

/// What a body of reports can be.
const BODY_TYPES: [MediaType; 4] = [MediaType::Json, MediaType::Text, MediaType::Xml, MediaType::TextXml];

/// Digits of a second that are told of a time of closest approach.
const TCA_DIGITS: u8 = 6;

/// What comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// The ids.
    Ids,
    /// The messages, with their ids in them.
    Messages,
}

/// Mints the ids of all reports in the body, or of none.
///
/// # Errors
/// A [`Problem`]: nothing was minted. `invalid-report` names the report and its member, such as `[3].primary`, or the line
/// and the keyword.
pub(in crate::http) async fn mint_reports(
    service: &Arc<Service>,
    served: &Arc<ServedFormat>,
    minter: &Arc<GroupedMinter>,
    request: Request,
) -> Result<Response<AnswerBody>, Problem> {
    let (parts, request_body) = request.into_parts();
    let format = &served.counted().format;
    let query = parts.uri.query().unwrap_or_default();
    let query = strict_query(query, &["count", "encoding", "type", "domain", "return"])?;
    refuse_count(&query, "report", format)?;
    let (wanted, encoding) = (wanted(&query)?, encoding(&query, format)?);
    let media = match wanted {
        Wanted::Ids => negotiate(&parts.headers, &MINT_MEDIA_TYPES)?,
        Wanted::Messages => {
            let body_media = media_type_of_body(&parts.headers, request_body.is_end_stream(), &BODY_TYPES)?;
            negotiate(&parts.headers, &[body_media])?
        }
    };
    let (payer, timeout) = (payer_of(service, &parts.extensions), service.limits().body_timeout);
    let declared_len = usize::try_from(request_body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut pass = match declared_len > BODY_LEN_AT_ONCE_MAX {
        true => Some(service.load().requests.enter_bulk(estimate(declared_len))?),
        false => None,
    };
    pass.iter_mut().for_each(BulkPass::pause);
    let paid = read_paid_body(request_body, BODY_LEN_MAX, timeout, &payer, PARSE_PERCENT).await?;
    let (request_body, _paid) = paid.into_parts();
    let is_short = request_body.len() <= BODY_LEN_AT_ONCE_MAX;
    let requests = &service.load().requests;
    let _turn = if request_body.len() > LARGE_LEN { Some(requests.turn_of_largest().await) } else { None };
    let _pass = if is_short { None } else { Some(requests.go_on(pass, estimate(request_body.len()))?) };
    let body_media =
        if request_body.is_empty() { MediaType::Json } else { media_type_of_body(&parts.headers, false, &BODY_TYPES)? };

    let (most, of_format) = (service.limits().batch_max, Arc::clone(format));
    let read = move || {
        let reports = read_reports(request_body, body_media, most)?;
        if wanted == Wanted::Messages && reports.messages().is_none() {
            let detail = "return=cdm goes with Conjunction Data Messages, and the body has none to give back";
            return Err(Problem::new(Slug::InvalidParameter, detail).reason("return"));
        }
        let sightings = reports.sightings(&of_format, encoding)?;
        Ok::<_, Problem>((reports, sightings))
    };
    let (reports, sightings) = at_once_or_aside(requests, is_short, read).await?;
    let grouped = service.group(served, minter, &sightings).await.map_err(|error| match error {
        GroupFailure::Report(refusal) => Problem::from(reports.explain(&refusal, &format.encodings[encoding])),
        GroupFailure::Service(error) => Problem::from(error),
    })?;
    let (counted, format) = (Arc::clone(served.counted()), Arc::clone(format));
    let write = move || match (wanted, media) {
        (Wanted::Messages, _) => {
            let messages = reports.messages().expect("checked before anything was minted");
            let ids: Vec<String> = grouped.iter().map(|one| format.encodings[encoding].to_text(one.id)).collect();
            minted(media, &format, count_of(&grouped), messages.annotate(&ids))
        }
        (Wanted::Ids, MediaType::Json) => {
            minted(media, &format, count_of(&grouped), detailed(&format, encoding, &grouped))
        }
        (Wanted::Ids, _) => {
            let count = count_of(&grouped);
            let ids = Batch::of_ids(grouped.iter().map(|one| one.id).collect());
            let encoder = IdEncoder::new(media, &format, encoding, count, None);
            minted(media, &format, count, AnswerBody::of_ids(encoder, Outgoing::new(counted, ids), None))
        }
    };
    Ok(at_once_or_aside(requests, is_short, write).await)
}

/// Does short work here, and long work on a thread where nobody waits for it.
async fn at_once_or_aside<T: Send + 'static>(
    requests: &Requests,
    is_short: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if is_short { work() } else { requests.work_aside(work).await }
}

/// About what a body of so many bytes takes.
fn estimate(len: usize) -> Duration {
    Duration::from_nanos(NANOS_FOR_A_BYTE.saturating_mul(u64::try_from(len).unwrap_or(u64::MAX)))
}

fn count_of(grouped: &[Grouped]) -> u64 {
    u64::try_from(grouped.len()).expect("a list is shorter than 2^64")
}

fn wanted(query: &Query<'_>) -> Result<Wanted, Problem> {
    match query.get("return") {
        None => Ok(Wanted::Ids),
        Some("cdm") => Ok(Wanted::Messages),
        Some(other) => {
            let detail = format!("return is {other:?}, it can only be cdm");
            Err(Problem::new(Slug::InvalidParameter, detail).reason("return").limit("cdm"))
        }
    }
}

/// A request that works, for a format that may have any epoch and objects of any width.
pub(in crate::http) fn example(minter: &GroupedMinter, format: &Format) -> String {
    let of = |seconds: i128, primary, secondary| {
        let tca = UnixTime::from_nanos(seconds * 1_000_000_000);
        Report::new(tca, primary, secondary).expect("two objects, neither of them 0")
    };
    let known = Some(of(1_706_745_600, 25_544, 48_274));
    let known = known.filter(|report| minter.id_of(report).is_ok());
    let report = known.unwrap_or_else(|| of(format.epoch.seconds() + 1, 1, 2));
    let tca = report.tca().to_text(0).unwrap_or_default().into();
    let report = ReportRequest { tca, primary: report.primary(), secondary: report.secondary() };
    let json = serde_json::to_string(&report).expect("a text and two numbers");
    format!("POST /ids/{} {json}", format.name)
}

/// The answer in JSON, which alone says what became of each report. Built whole: it is a few times as long as the
/// body, and that was read whole too.
fn detailed(format: &Format, encoding: usize, grouped: &[Grouped]) -> Vec<u8> {
    let detail = |one: &Grouped| ReportDetail {
        id: format.encodings[encoding].to_text(one.id),
        created: one.created,
        anchor_tca: UnixTime::from(one.anchor).to_text(TCA_DIGITS).expect("a time that was read can be written"),
        tca_delta_us: one.delta_us,
    };
    let details: Vec<ReportDetail> = grouped.iter().map(detail).collect();
    let answer = MintAnswer {
        format: format.name.clone(),
        count: count_of(grouped),
        label: None,
        ids: details.iter().map(|detail| detail.id.clone()).collect(),
        details: Some(MintDetails::Reports(details)),
    };
    serde_json::to_vec(&answer).expect("texts and numbers always serialize")
}
