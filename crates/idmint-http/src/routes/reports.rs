//! `POST /conjunctions`, and `POST /ids/{format}` for a grouped format: takes conjunction reports,
//! and returns one id for each report, or the messages with their ids.
//!
//! A conjunction is a close approach of two objects. A report joins a stored conjunction or starts
//! a new one. In mode `pure` no conjunction is stored, and the node responds even if it cannot mint
//! ids of other formats.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;

use super::report_answers::{
    check_len, count_of, detail_len, detailed, details, partial, refused_len, warned, warnings_len,
    with_warnings,
};
use super::report_request::{ReportBody, ReportOrder, Wanted};
use crate::access::DurableWork;
use crate::answer::{Answer, AnswerBody, IdEncoder, MediaType, Problem, Slug, minted};
use crate::request::{owner_of, paid_with, read_reports, reserve_answer, work_on};
use idmint_core::id::Format;
use idmint_core::minting::Batch;
use idmint_core::time::UnixTime;
use idmint_records::conjunction::{
    ExternalId, GroupRequest, GroupedMinter, NotedRule, ReadRule, Report, Reports, SentReport,
    SortedReports,
};
use idmint_service::{Conjunctions, GroupFailure, GroupedReports, PeerBulk, ServedFormat, Service};
use idmint_wire::ReportRequest;

/// The maximum number of reports in a request with `partial=true`, where each invalid report gets
/// its own problem. A problem can be a hundred times as long as its report.
const PARTIAL_MAX: u32 = 10_000;

/// The query parameters of a report request that names the format in its query, as `?format=…`.
pub(crate) const ALL_PARAMETERS: [&str; 8] = [
    "format", "count", "encoding", "type", "domain", "return", "noted", "partial",
];

/// The query parameters of a request that names the format in the path.
pub(crate) const PARAMETERS: &[&str] = ALL_PARAMETERS.split_at(1).1;

/// Mints ids for all reports in the body, or for none. `parameters` are the accepted query
/// parameters.
///
/// # Errors
/// Returns a [`Problem`] if the request fails. The caller then gets no id. After 503 or 504, some
/// conjunctions may have been stored, and a retry returns their ids. `invalid-report` names the
/// report and its member, such as `[3].primary`, or the line and the keyword.
pub(crate) async fn mint_reports(
    service: &Arc<Service>,
    served: &Arc<ServedFormat>,
    minter: &Arc<GroupedMinter>,
    parameters: &'static [&'static str],
    request: Request,
) -> Answer<AnswerBody> {
    served.check_minted()?;
    let (parts, body) = request.into_parts();
    let order = ReportOrder::read(
        &parts,
        parameters,
        &served.counted().format,
        !body.is_end_stream(),
    )?;
    let ReportBody {
        bytes,
        media,
        memory,
        permits,
    } = ReportBody::read(service, &parts, body).await?;
    let owner = owner_of(service, &parts.extensions);
    let requests = &service.load().requests;
    let (body_len, aside) = (bytes.len(), permits.aside());
    let is_partial = order.wanted == Wanted::IdsOrProblems;
    let batch_max = service.limits().batch_max;
    let count_max = if is_partial {
        batch_max.min(PARTIAL_MAX)
    } else {
        batch_max
    };
    let (objects, note) = (service.object_rules(), service.note());
    let analysis_reach = match service.conjunctions() {
        Conjunctions::Pure => None,
        Conjunctions::Stored { analysis_reach, .. } => Some(analysis_reach),
    };
    let read = move || {
        let rule = ReadRule {
            objects: &objects,
            note,
            is_partial,
            count_max,
        };
        read_reports(bytes, media, rule, analysis_reach.is_some())
    };
    let (service, served, minter) = (Arc::clone(service), Arc::clone(served), Arc::clone(minter));
    let grouping = Grouping {
        service,
        served,
        minter,
        order,
        aside,
        analysis_reach: analysis_reach.unwrap_or_default(),
    };
    if is_partial {
        let each = grouping.look_at_each(read).await?;
        let memory = reserve_answer(&owner, memory, each.answer_len).await?;
        let group = async move {
            let _held = permits;
            let answer = grouping.answer_each(each).await?;
            Ok(paid_with(answer, memory))
        };
        return DurableWork::of(&parts, requests, group).await;
    }
    let all = grouping.look_at_all(read).await?;
    let answer_len = match grouping.order.wanted {
        Wanted::Messages => body_len + all.details_len,
        Wanted::Ids | Wanted::IdsOrProblems => all.details_len,
    };
    let memory = reserve_answer(&owner, memory, answer_len).await?;
    let group = async move {
        let _held = permits;
        let answer = grouping.answer_all(all).await?;
        Ok(paid_with(answer, memory))
    };
    DurableWork::of(&parts, requests, group).await
}

/// Returns an example request that works. The usual example may be before the format's epoch, or
/// its objects may need too many bits. In these cases, the example has the objects 1 and 2, one
/// second after the epoch.
pub(crate) fn example(minter: &GroupedMinter, format: &Format) -> String {
    let of = |seconds: i128, primary, secondary| {
        let tca = UnixTime::from_nanos(seconds * 1_000_000_000);
        Report::new(tca, primary, secondary).expect("two objects, neither of them 0")
    };
    let known = Some(of(1_706_745_600, 25_544, 48_274));
    let known = known.filter(|report| minter.id_of(report).is_ok());
    let report = known.unwrap_or_else(|| of(format.epoch.seconds() + 1, 1, 2));
    let tca = report.tca().to_text(0).unwrap_or_default().into();
    let report = ReportRequest {
        tca,
        primary: report.primary(),
        secondary: report.secondary(),
        noted: None,
    };
    let json = serde_json::to_string(&report).expect("a text and two numbers");
    format!("POST /ids/{} {json}", format.name)
}

/// Warnings about reports that were not read exactly as written, by the position of the report in
/// the request.
type Warnings = BTreeMap<usize, String>;

/// The data needed to assign the reports of a request to conjunctions.
struct Grouping {
    service: Arc<Service>,
    served: Arc<ServedFormat>,
    minter: Arc<GroupedMinter>,
    order: ReportOrder,
    /// The handle that runs the work on another thread, or `None` if the work runs at once.
    aside: Option<PeerBulk>,
    /// The maximum time between an analysis and the conjunction that it joins. An analysis is a
    /// report that names its conjunction in the member `event_id`.
    analysis_reach: Duration,
}

/// Reports that are accepted or refused together.
struct AllOrNone {
    reports: Reports<Bytes>,
    sent_reports: Arc<[SentReport]>,
    externals: Vec<(usize, ExternalId)>,
    warnings: Warnings,
    /// The estimated length of the JSON details of all these reports in the response, in bytes.
    details_len: usize,
}

/// Reports that are accepted or refused one by one.
struct OneByOne {
    sorted: SortedReports,
    are_analyses: bool,
    warnings: Warnings,
    /// The estimated length of the response, in bytes.
    answer_len: usize,
}

impl Grouping {
    /// Checks reports that are accepted or refused together.
    ///
    /// # Errors
    /// Returns a [`Problem`] if a report is invalid, or if the response would be too long.
    async fn look_at_all(
        &self,
        read: impl FnOnce() -> Result<Reports<Bytes>, Problem> + Send + 'static,
    ) -> Result<AllOrNone, Problem> {
        let (minter, order) = (Arc::clone(&self.minter), self.order);
        let id_detail_len = self.detail_len();
        let look = move || {
            let reports = read()?;
            if order.wanted == Wanted::Messages && reports.messages().is_none() {
                let detail = "return=cdm needs Conjunction Data Messages, but the body has none; send messages, or \
                              leave out return";
                return Err(Problem::parameter("return", detail));
            }
            let sent_reports: Arc<[_]> = reports.sent_reports(&minter, order.encoding)?.into();
            let (externals, warnings) = (reports.externals(&minter), reports.warnings());
            let of_ids = sent_reports.len().saturating_mul(id_detail_len);
            let details_len = of_ids + warnings_len(&warnings);
            Ok(AllOrNone {
                reports,
                sent_reports,
                externals,
                warnings,
                details_len,
            })
        };
        let all = work_on(self.aside.as_ref(), look).await?;
        if order.wanted == Wanted::Ids && order.media == MediaType::Json {
            check_len(all.details_len)?;
        }
        Ok(all)
    }

    /// Checks reports that are accepted or refused one by one.
    ///
    /// # Errors
    /// Returns a [`Problem`] if the body has no reports, or if the response would be too long.
    async fn look_at_each(
        &self,
        read: impl FnOnce() -> Result<Reports<Bytes>, Problem> + Send + 'static,
    ) -> Result<OneByOne, Problem> {
        let (minter, encoding) = (Arc::clone(&self.minter), self.order.encoding);
        let id_detail_len = self.detail_len();
        let look = move || {
            let reports = read()?;
            let (sorted, warnings) = (reports.sort_out(&minter, encoding), reports.warnings());
            let of_refused: usize = sorted
                .refused
                .iter()
                .map(|(_, error)| refused_len(error))
                .sum();
            let of_ids = sorted.sent_reports.len() * id_detail_len;
            let answer_len = of_refused + of_ids + warnings_len(&warnings);
            check_len(answer_len)?;
            Ok::<_, Problem>(OneByOne {
                sorted,
                are_analyses: reports.are_analyses(),
                warnings,
                answer_len,
            })
        };
        work_on(self.aside.as_ref(), look).await
    }

    /// Groups all reports into conjunctions and responds. If grouping fails, no report gets an id.
    ///
    /// # Errors
    /// Returns a [`Problem`] if grouping fails. After 503 or 504, some conjunctions may have been
    /// stored nevertheless.
    async fn answer_all(self, all: AllOrNone) -> Answer<AnswerBody> {
        let AllOrNone {
            reports,
            sent_reports,
            externals,
            warnings,
            ..
        } = all;
        let are_analyses = reports.are_analyses();
        let found = self.group(&sent_reports, &externals, are_analyses).await;
        let format = Arc::clone(self.format());
        let (wanted, encoding, media) = (self.order.wanted, self.order.encoding, self.order.media);
        let found = found.map_err(|failure| match failure {
            GroupFailure::Report(refusal) => {
                Problem::from(reports.explain(&refusal, &format.encodings[encoding]))
            }
            GroupFailure::Service(error) => Problem::from(error),
        })?;
        let write = move || {
            let count = count_of(&found.grouped);
            match (wanted, media) {
                (Wanted::Messages, _) => {
                    let messages = reports
                        .messages()
                        .expect("checked before anything was minted");
                    let encoding = &format.encodings[encoding];
                    let ids: Vec<String> = found
                        .grouped
                        .iter()
                        .map(|one| encoding.to_text(one.id))
                        .collect();
                    let annotated = messages.annotate(&sent_reports, &ids);
                    let mut answer = minted(media, &format, count, annotated);
                    if messages.is_utf16() {
                        let text = format!("{}; charset=utf-16", media.essence());
                        let text = HeaderValue::try_from(text).expect("a media type is ASCII");
                        answer.headers_mut().insert(CONTENT_TYPE, text);
                    }
                    warned(answer, &warnings)
                }
                (_, MediaType::Json) => {
                    let details = details(&format, encoding, &found).enumerate();
                    minted(
                        media,
                        &format,
                        count,
                        detailed(&format, with_warnings(details, warnings)),
                    )
                }
                (_, _) => {
                    let ids = Batch::of_ids(found.grouped.iter().map(|one| one.id).collect());
                    let encoder = IdEncoder::new(media, &format, encoding, count, None);
                    let body = AnswerBody::of_ids(encoder, &format, ids, None);
                    warned(minted(media, &format, count, body), &warnings)
                }
            }
        };
        Ok(work_on(self.aside.as_ref(), write).await)
    }

    /// Assigns each accepted report to its conjunction, and writes the result of every report.
    ///
    /// # Errors
    /// Returns a [`Problem`] if the assignment fails. No report then gets an id, but after 503 or
    /// 504 some conjunctions may have been stored.
    async fn answer_each(self, each: OneByOne) -> Answer<AnswerBody> {
        let OneByOne {
            sorted:
                SortedReports {
                    sent_reports,
                    externals,
                    refused,
                },
            are_analyses,
            warnings,
            ..
        } = each;
        let (positions, sent_reports): (Vec<usize>, Vec<SentReport>) =
            sent_reports.into_iter().unzip();
        let sent_reports = sent_reports.into();
        // Grouping accepts all of these reports, because `look_at_each` has checked them.
        let found = self
            .group(&sent_reports, &externals, are_analyses)
            .await
            .map_err(|failure| match failure {
                GroupFailure::Report(refusal) => {
                    Problem::new(Slug::InvalidReport, refusal.to_string())
                }
                GroupFailure::Service(error) => Problem::from(error),
            })?;
        self.service.counters().count_refused_reports(refused.len());
        let (format, order) = (Arc::clone(self.format()), self.order);
        let write = move || {
            let details = positions
                .into_iter()
                .zip(details(&format, order.encoding, &found));
            let body = partial(&format, with_warnings(details, warnings), refused);
            minted(order.media, &format, count_of(&found.grouped), body)
        };
        Ok(work_on(self.aside.as_ref(), write).await)
    }

    async fn group(
        &self,
        sent_reports: &Arc<[SentReport]>,
        externals: &[(usize, ExternalId)],
        are_analyses: bool,
    ) -> Result<GroupedReports, GroupFailure> {
        let named_reach = match are_analyses {
            true => self.analysis_reach,
            false => Duration::ZERO,
        };
        let noted_rule = NotedRule {
            named_reach,
            ..self.order.noted_rule
        };
        let (minter, reports) = (Arc::clone(&self.minter), Arc::clone(sent_reports));
        let request = move || {
            GroupRequest::new(minter, &reports).map(|request| request.with_noted_rule(noted_rule))
        };
        let request = work_on(self.aside.as_ref(), request).await;
        self.service
            .group(
                &self.served,
                &self.minter,
                request.map_err(GroupFailure::Report)?,
                sent_reports,
                externals,
                !named_reach.is_zero(),
            )
            .await
    }

    fn format(&self) -> &Arc<Format> {
        &self.served.counted().format
    }

    /// Returns the estimated length of the details of an accepted report.
    fn detail_len(&self) -> usize {
        let are_stored = matches!(self.service.conjunctions(), Conjunctions::Stored { .. });
        detail_len(self.format(), self.order.encoding, are_stored)
    }
}
