//! `POST /conjunctions`, and `POST /ids/{format}` of a grouped format: reports in, one id for each out, or the same messages with the ids in them.
//!
//! A report joins a conjunction that is stored, or is the first of one; in mode `pure` nothing is stored, and a node that
//! cannot mint others answers too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::{HeaderValue, Response};

use crate::conjunction::{Grouped, GroupedMinter, NotedRule, ReadRule, Report, ReportsError, Sighting, SortedReports};
use crate::http::access::DurableWork;
use crate::http::answer::{
    ANSWER_LEN_MAX, AnswerBody, IDMINT_WARNING, IdEncoder, MediaType, Problem, Slug, json_bytes, media_type_of_body,
    minted, negotiate, negotiate_minted, too_long,
};
use crate::http::request::{
    Query, encoding, payer_of, read_paid_body, read_reports, refuse_count, report_count_max, strict_query,
};
use crate::id::Format;
use crate::minting::Batch;
use crate::service::{BulkPass, GroupFailure, GroupedReports, Requests, ServedFormat, Service};
use crate::time::UnixTime;
use crate::wire::{MintAnswer, MintDetails, PartialDetail, PartialReports, ReportDetail, ReportRequest};

/// The longest body of reports, in bytes.
const BODY_LEN_MAX: usize = 16 * 1024 * 1024;

/// A longer body is long work whatever is in it, and admitted before it is read.
const BODY_LEN_AT_ONCE_MAX: usize = 64 * 1024;

/// What reports take once they are read, beside the bytes that they are read from, in hundredths of those. They take more; this
/// is what lets the longest body be paid for out of one peer's share.
const PARSE_PERCENT: usize = 70;

/// About what reading, grouping and answering takes for each byte.
const NANOS_FOR_A_BYTE: u64 = 25;

/// And for each report of a shorter body, where there may be much to say of little.
const NANOS_FOR_A_REPORT: u64 = 2_500;

/// What is said of a report beside its ids, and of one that is refused beside twice the reason, in bytes.
const DETAIL_LEN: usize = 128;
const REFUSED_LEN: usize = 400;

/// What stands around a warning.
const WARNING_LEN: usize = 16;

/// Reports of a longer body are read, grouped and answered one request after the other: they take several times the body.
const LARGE_LEN: usize = 4 * 1024 * 1024;

/// How many reports may be told apart in one answer: a problem can be a hundred times as long as its report.
const PARTIAL_MAX: u32 = 10_000;

/// What a body of reports can be.
const BODY_TYPES: [MediaType; 4] = [MediaType::Json, MediaType::Text, MediaType::Xml, MediaType::TextXml];

/// Digits of a second that are told of a time of closest approach.
const TCA_DIGITS: u8 = 6;

/// What may stand in the query of reports whose format is named in the query, too.
pub(super) const ALL_PARAMETERS: [&str; 8] =
    ["format", "count", "encoding", "type", "domain", "return", "noted", "partial"];

/// What may where it is named in the path.
pub(super) const PARAMETERS: &[&str] = ALL_PARAMETERS.split_at(1).1;

/// What comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// The ids.
    Ids,
    /// The messages, with their ids in them.
    Messages,
}

/// Mints the ids of all reports in the body, or of none. `parameters`: what may stand in the query.
///
/// # Errors
/// A [`Problem`]: nothing was minted. `invalid-report` names the report and its member, such as `[3].primary`, or the line
/// and the keyword.
pub(in crate::http) async fn mint_reports(
    service: &Arc<Service>,
    served: &Arc<ServedFormat>,
    minter: &Arc<GroupedMinter>,
    parameters: &'static [&'static str],
    request: Request,
) -> Result<Response<AnswerBody>, Problem> {
    let (parts, request_body) = request.into_parts();
    let format = &served.counted().format;
    let query = parts.uri.query().unwrap_or_default();
    let query = strict_query(query, parameters)?;
    refuse_count(&query, "report", format)?;
    let (wanted, encoding) = (wanted(&query)?, encoding(&query, format)?);
    // A message that comes back has the id that it got, so it cannot have got another one than stands in it.
    let noted_rule = NotedRule { keep: keeps_noted(&query)?, must_agree: wanted == Wanted::Messages };
    let is_partial = is_partial(&query, wanted)?;
    let media = match wanted {
        Wanted::Ids if is_partial => negotiate(&parts.headers, &[MediaType::Json])?,
        Wanted::Ids => negotiate_minted(&parts.headers, format)?,
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
    let (request_body, paid) = paid.into_parts();
    let requests = &service.load().requests;
    let turn = if request_body.len() > LARGE_LEN { Some(requests.turn_of_largest().await) } else { None };
    let body_media =
        if request_body.is_empty() { MediaType::Json } else { media_type_of_body(&parts.headers, false, &BODY_TYPES)? };
    let of_reports = match request_body.len() <= BODY_LEN_AT_ONCE_MAX {
        true => NANOS_FOR_A_REPORT.saturating_mul(report_count_max(&request_body, body_media)),
        false => 0,
    };
    let pass = requests.go_on(pass, estimate(request_body.len()) + Duration::from_nanos(of_reports))?;
    let is_short = pass.is_none();

    let batch_max = service.limits().batch_max;
    let most = if is_partial { batch_max.min(PARTIAL_MAX) } else { batch_max };
    let (objects, note, of_minter) = (service.object_rules(), service.note(), Arc::clone(minter));
    let read_body =
        move || read_reports(request_body, body_media, most, ReadRule { objects: &objects, note, is_partial });
    if is_partial {
        let read = move || {
            let reports = read_body()?;
            Ok::<_, Problem>((reports.sort_out(&of_minter, encoding), reports.warnings()))
        };
        let (SortedReports { sightings, externals, refused }, warnings) =
            at_once_or_aside(requests, is_short, read).await?;
        let of_refused = refused.iter().map(|(_, error)| REFUSED_LEN + 2 * error.to_string().len());
        let of_granted = sightings.len() * detail_len(format, encoding) + warnings_len(&warnings);
        check_len(of_refused.sum::<usize>() + of_granted)?;
        let (positions, sightings): (Vec<usize>, Vec<Sighting>) = sightings.into_iter().unzip();
        let (service, served, minter) = (Arc::clone(service), Arc::clone(served), Arc::clone(minter));
        let group = async move {
            let _held = (paid, turn, pass);
            // Looked at one by one above, so none of them is refused.
            let reports = service.group(&served, &minter, &sightings, &externals, noted_rule).await.map_err(
                |error| match error {
                    GroupFailure::Report(refusal) => Problem::new(Slug::InvalidReport, refusal.to_string()),
                    GroupFailure::Service(error) => Problem::from(error),
                },
            )?;
            service.counters().count_refused_reports(refused.len());
            let format = Arc::clone(&served.counted().format);
            let write = move || {
                let details = positions.into_iter().zip(details(&format, encoding, &reports));
                let body = partial(&format, with_warnings(details, warnings), refused);
                minted(media, &format, count_of(&reports.grouped), body)
            };
            Ok(at_once_or_aside(&service.load().requests, is_short, write).await)
        };
        return DurableWork::of(&parts, requests, group).await;
    }
    let read = move || {
        let reports = read_body()?;
        if wanted == Wanted::Messages && reports.messages().is_none() {
            let detail = "return=cdm goes with Conjunction Data Messages, and the body has none to give back";
            return Err(Problem::new(Slug::InvalidParameter, detail).reason("return"));
        }
        let sightings = reports.sightings(&of_minter, encoding)?;
        let (externals, warnings) = (reports.externals(&of_minter), reports.warnings());
        Ok::<_, Problem>((reports, sightings, externals, warnings))
    };
    let (reports, sightings, externals, warnings) = at_once_or_aside(requests, is_short, read).await?;
    if wanted == Wanted::Ids && media == MediaType::Json {
        check_len(sightings.len().saturating_mul(detail_len(format, encoding)) + warnings_len(&warnings))?;
    }
    let (service, served, minter) = (Arc::clone(service), Arc::clone(served), Arc::clone(minter));
    let group = async move {
        let _held = (paid, turn, pass);
        let format = Arc::clone(&served.counted().format);
        let found = service.group(&served, &minter, &sightings, &externals, noted_rule).await;
        let found = found.map_err(|error| match error {
            GroupFailure::Report(refusal) => Problem::from(reports.explain(&refusal, &format.encodings[encoding])),
            GroupFailure::Service(error) => Problem::from(error),
        })?;
        let write = move || match (wanted, media) {
            (Wanted::Messages, _) => {
                let messages = reports.messages().expect("checked before anything was minted");
                let encoding = &format.encodings[encoding];
                let ids: Vec<String> = found.grouped.iter().map(|one| encoding.to_text(one.id)).collect();
                let body = messages.annotate(&sightings, &ids);
                warned(minted(media, &format, count_of(&found.grouped), body), &warnings)
            }
            (Wanted::Ids, MediaType::Json) => {
                let details = details(&format, encoding, &found).enumerate();
                let body = detailed(&format, with_warnings(details, warnings));
                minted(media, &format, count_of(&found.grouped), body)
            }
            (Wanted::Ids, _) => {
                let count = count_of(&found.grouped);
                let ids = Batch::of_ids(found.grouped.iter().map(|one| one.id).collect());
                let encoder = IdEncoder::new(media, &format, encoding, count, None);
                warned(minted(media, &format, count, AnswerBody::of_ids(encoder, &format, ids, None)), &warnings)
            }
        };
        Ok(at_once_or_aside(&service.load().requests, is_short, write).await)
    };
    DurableWork::of(&parts, requests, group).await
}

/// Does short work here, and long work on a thread where nobody waits for it.
async fn at_once_or_aside<T: Send + 'static>(
    requests: &Requests,
    is_short: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if is_short { work() } else { requests.work_aside(work).await }
}

/// Refuses an answer of so many bytes, if it is too long, before anything is minted for it.
fn check_len(len: usize) -> Result<(), Problem> {
    if len <= ANSWER_LEN_MAX {
        return Ok(());
    }
    Err(too_long(Slug::InvalidReport, "send fewer reports, or accept text/plain or application/x-ndjson for ids alone"))
}

/// About how much is said of a report that gets an id.
fn detail_len(format: &Format, encoding: usize) -> usize {
    DETAIL_LEN + 2 * format.encodings[encoding].len_max()
}

/// How much more is said of reports that were not read as they were written.
fn warnings_len(warnings: &BTreeMap<usize, String>) -> usize {
    warnings.values().map(|warning| WARNING_LEN + warning.len()).sum()
}

/// An answer without details, with the first warning in its head.
fn warned(mut answer: Response<AnswerBody>, warnings: &BTreeMap<usize, String>) -> Response<AnswerBody> {
    if let Some(first) = warnings.values().next() {
        let of_several =
            if warnings.len() > 1 { format!(" (the first of {} warnings)", warnings.len()) } else { String::new() };
        let value =
            HeaderValue::try_from(format!("{first}{of_several}")).expect("a warning is visible ASCII and spaces");
        answer.headers_mut().insert(IDMINT_WARNING, value);
    }
    answer
}

/// Details by the positions of their reports, with the warnings of these positions.
fn with_warnings(
    details: impl Iterator<Item = (usize, ReportDetail)>,
    mut warnings: BTreeMap<usize, String>,
) -> impl Iterator<Item = (usize, ReportDetail)> {
    details.map(move |(position, detail)| {
        let warning = warnings.remove(&position);
        (position, ReportDetail { warning, ..detail })
    })
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

/// Whether a report that is wrong is told beside the others, and refuses none of them.
fn is_partial(query: &Query<'_>, wanted: Wanted) -> Result<bool, Problem> {
    let refuse =
        |detail: String, limit| Err(Problem::new(Slug::InvalidParameter, detail).reason("partial").limit(limit));
    match query.get("partial") {
        None | Some("false") => Ok(false),
        Some("true") if wanted == Wanted::Ids => Ok(true),
        Some("true") => {
            refuse("partial does not go with return=cdm, which gives all messages back".to_owned(), "false")
        }
        Some(other) => refuse(format!("partial is {other:?}, it can only be true or false"), "true or false"),
    }
}

/// Whether reports keep the ids that they came with, however far their times have moved.
fn keeps_noted(query: &Query<'_>) -> Result<bool, Problem> {
    match query.get("noted") {
        None => Ok(false),
        Some("keep") => Ok(true),
        Some(other) => {
            let detail = format!("noted is {other:?}, it can only be keep");
            Err(Problem::new(Slug::InvalidParameter, detail).reason("noted").limit("keep"))
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
    let report = ReportRequest { tca, primary: report.primary(), secondary: report.secondary(), noted: None };
    let json = serde_json::to_string(&report).expect("a text and two numbers");
    format!("POST /ids/{} {json}", format.name)
}

/// The answer in JSON, which alone says what became of each report. Built whole: it is a few times as long as the
/// body, and that was read whole too.
fn detailed(format: &Format, details: impl Iterator<Item = (usize, ReportDetail)>) -> Vec<u8> {
    let details: Vec<ReportDetail> = details.map(|(_, detail)| detail).collect();
    let answer = MintAnswer {
        format: format.name.clone(),
        count: u64::try_from(details.len()).expect("a list is shorter than 2^64"),
        label: None,
        ids: details.iter().map(|detail| detail.id.clone()).collect(),
        details: Some(MintDetails::Reports(details)),
    };
    json_bytes(&answer)
}

/// The answer to reports of which some get no id: all of them in their order.
fn partial(
    format: &Format,
    details: impl Iterator<Item = (usize, ReportDetail)>,
    refused: Vec<(usize, ReportsError)>,
) -> Vec<u8> {
    let of_ids = details.map(|(position, detail)| (position, PartialDetail::Id(detail)));
    let of_refused = refused
        .into_iter()
        .map(|(position, error)| (position, PartialDetail::Refused { problem: Problem::from(error) }));
    let mut details: Vec<(usize, PartialDetail<Problem>)> = of_ids.chain(of_refused).collect();
    details.sort_by_key(|(position, _)| *position);
    let details: Vec<PartialDetail<Problem>> = details.into_iter().map(|(_, detail)| detail).collect();
    let id_of = |detail: &PartialDetail<Problem>| match detail {
        PartialDetail::Id(detail) => Some(detail.id.clone()),
        PartialDetail::Refused { .. } => None,
    };
    let ids: Vec<Option<String>> = details.iter().map(id_of).collect();
    let count = u64::try_from(ids.iter().flatten().count()).expect("a list is shorter than 2^64");
    let answer = PartialReports { format: format.name.clone(), count, ids, details };
    json_bytes(&answer)
}

fn details(format: &Format, encoding: usize, reports: &GroupedReports) -> impl Iterator<Item = ReportDetail> {
    let encoding = &format.encodings[encoding];
    reports.grouped.iter().enumerate().map(move |(at, one)| ReportDetail {
        id: encoding.to_text(one.id),
        created: one.created,
        anchor_tca: UnixTime::from(one.anchor).to_text(TCA_DIGITS).expect("a time that was read can be written"),
        tca_delta_us: one.delta_us,
        noted_differs: one.noted_differs == Some(true),
        near: reports.near.get(&at).into_iter().flatten().map(|id| encoding.to_text(*id)).collect(),
        warning: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_would_be_longer_than_64_mib_is_refused() {
        assert!(check_len(ANSWER_LEN_MAX).is_ok());
        let problem = check_len(ANSWER_LEN_MAX + 1).expect_err("a byte more");
        assert_eq!((problem.status().as_u16(), problem.slug()), (422, Slug::InvalidReport));
        assert!(problem.detail().contains("67108864 bytes"), "{}", problem.detail());
    }
}
