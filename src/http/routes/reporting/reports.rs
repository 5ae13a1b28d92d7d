//! `POST /conjunctions`, and `POST /ids/{format}` of a grouped format: reports in, one id for each out, or the same messages with the ids in them.
//!
//! A report joins a conjunction that is stored, or is the first of one; in mode `pure` nothing is stored, and a node that
//! cannot mint others answers too.

use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::Response;

use super::grouping::Grouping;
use super::report_body::ReportBody;
use super::report_order::{ReportOrder, Wanted};
use crate::conjunction::{GroupedMinter, ReadRule, Report};
use crate::http::access::DurableWork;
use crate::http::answer::{AnswerBody, Problem};
use crate::http::request::read_reports;
use crate::id::Format;
use crate::service::{ServedFormat, Service};
use crate::time::UnixTime;
use crate::wire::ReportRequest;

/// How many reports may be told apart in one answer: a problem can be a hundred times as long as its report.
const PARTIAL_MAX: u32 = 10_000;

/// What may stand in the query of reports whose format is named in the query, too.
pub(in crate::http) const ALL_PARAMETERS: [&str; 8] = [
    "format", "count", "encoding", "type", "domain", "return", "noted", "partial",
];

/// What may where it is named in the path.
pub(in crate::http) const PARAMETERS: &[&str] = ALL_PARAMETERS.split_at(1).1;

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
        permits,
    } = ReportBody::read(service, &parts, body).await?;
    let requests = &service.load().requests;
    let way = permits.way(requests);
    let is_partial = order.wanted == Wanted::IdsOrProblems;
    let batch_max = service.limits().batch_max;
    let most = if is_partial {
        batch_max.min(PARTIAL_MAX)
    } else {
        batch_max
    };
    let (objects, note) = (service.object_rules(), service.note());
    let read = move || {
        read_reports(
            bytes,
            media,
            most,
            ReadRule {
                objects: &objects,
                note,
                is_partial,
            },
        )
    };
    let (service, served, minter) = (Arc::clone(service), Arc::clone(served), Arc::clone(minter));
    let grouping = Grouping {
        service,
        served,
        minter,
        order,
        way,
    };
    if is_partial {
        let each = grouping.look_at_each(read).await?;
        let group = async move {
            let _held = permits;
            grouping.answer_each(each).await
        };
        return DurableWork::of(&parts, requests, group).await;
    }
    let all = grouping.look_at_all(read).await?;
    let group = async move {
        let _held = permits;
        grouping.answer_all(all).await
    };
    DurableWork::of(&parts, requests, group).await
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
    let report = ReportRequest {
        tca,
        primary: report.primary(),
        secondary: report.secondary(),
        noted: None,
    };
    let json = serde_json::to_string(&report).expect("a text and two numbers");
    format!("POST /ids/{} {json}", format.name)
}
