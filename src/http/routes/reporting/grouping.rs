//! The work on the reports of one request: look at them, group them, and write what became of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::Response;
use bytes::Bytes;

use super::report_answers::{
    check_len, count_of, detail_len, detailed, details, partial, refused_len, warned, warnings_len,
    with_warnings,
};
use super::report_body::Way;
use super::report_order::{ReportOrder, Wanted};
use crate::conjunction::{ExternalId, GroupedMinter, Reports, SentReport, SortedReports};
use crate::http::answer::{AnswerBody, IdEncoder, MediaType, Problem, Slug, minted};
use crate::id::Format;
use crate::minting::Batch;
use crate::service::{GroupFailure, GroupedReports, ServedFormat, Service};

/// What is said of reports that were not read as they were written, by their positions.
type Warnings = BTreeMap<usize, String>;

/// What the reports of a request are grouped by.
pub(super) struct Grouping {
    pub(super) service: Arc<Service>,
    pub(super) served: Arc<ServedFormat>,
    pub(super) minter: Arc<GroupedMinter>,
    pub(super) order: ReportOrder,
    pub(super) way: Way,
}

/// Reports of which all get ids, or none.
pub(super) struct AllOrNone {
    reports: Reports<Bytes>,
    sent_reports: Vec<SentReport>,
    externals: Vec<(usize, ExternalId)>,
    warnings: Warnings,
}

/// Reports of which some get no id.
pub(super) struct OneByOne {
    sorted: SortedReports,
    warnings: Warnings,
}

impl Grouping {
    /// Looks at reports that are refused together.
    ///
    /// # Errors
    /// A [`Problem`] of the first that is wrong, or of an answer that would be too long.
    pub(super) async fn look_at_all(
        &self,
        read: impl FnOnce() -> Result<Reports<Bytes>, Problem> + Send + 'static,
    ) -> Result<AllOrNone, Problem> {
        let (
            minter,
            ReportOrder {
                wanted,
                encoding,
                media,
                ..
            },
        ) = (Arc::clone(&self.minter), self.order);
        let look = move || {
            let reports = read()?;
            if wanted == Wanted::Messages && reports.messages().is_none() {
                let detail = "return=cdm goes with Conjunction Data Messages, and the body has none to give back";
                return Err(Problem::new(Slug::InvalidParameter, detail).reason("return"));
            }
            let sent_reports = reports.sent_reports(&minter, encoding)?;
            let (externals, warnings) = (reports.externals(&minter), reports.warnings());
            Ok(AllOrNone {
                reports,
                sent_reports,
                externals,
                warnings,
            })
        };
        let all = self.way.work(look).await?;
        if wanted == Wanted::Ids && media == MediaType::Json {
            let of_ids = all
                .sent_reports
                .len()
                .saturating_mul(detail_len(self.format(), encoding));
            check_len(of_ids + warnings_len(&all.warnings))?;
        }
        Ok(all)
    }

    /// Looks at reports that are refused one by one.
    ///
    /// # Errors
    /// A [`Problem`] of a body that is none of reports, or of an answer that would be too long.
    pub(super) async fn look_at_each(
        &self,
        read: impl FnOnce() -> Result<Reports<Bytes>, Problem> + Send + 'static,
    ) -> Result<OneByOne, Problem> {
        let (minter, encoding) = (Arc::clone(&self.minter), self.order.encoding);
        let look = move || {
            let reports = read()?;
            Ok::<_, Problem>(OneByOne {
                sorted: reports.sort_out(&minter, encoding),
                warnings: reports.warnings(),
            })
        };
        let each = self.way.work(look).await?;
        let of_refused: usize = each
            .sorted
            .refused
            .iter()
            .map(|(_, error)| refused_len(error))
            .sum();
        let of_ids = each.sorted.sent_reports.len() * detail_len(self.format(), encoding);
        check_len(of_refused + of_ids + warnings_len(&each.warnings))?;
        Ok(each)
    }

    /// Groups all of them, or none, and writes the answer.
    ///
    /// # Errors
    /// A [`Problem`]: nothing was minted.
    pub(super) async fn answer_all(self, all: AllOrNone) -> Result<Response<AnswerBody>, Problem> {
        let AllOrNone {
            reports,
            sent_reports,
            externals,
            warnings,
        } = all;
        let found = self.group(&sent_reports, &externals).await;
        let (
            format,
            ReportOrder {
                wanted,
                encoding,
                media,
                ..
            },
        ) = (Arc::clone(self.format()), self.order);
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
                    warned(
                        minted(
                            media,
                            &format,
                            count,
                            messages.annotate(&sent_reports, &ids),
                        ),
                        &warnings,
                    )
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
        Ok(self.way.work(write).await)
    }

    /// Groups those that get ids, and writes of each what became of it.
    ///
    /// # Errors
    /// A [`Problem`]: nothing was minted.
    pub(super) async fn answer_each(self, each: OneByOne) -> Result<Response<AnswerBody>, Problem> {
        let OneByOne {
            sorted:
                SortedReports {
                    sent_reports,
                    externals,
                    refused,
                },
            warnings,
        } = each;
        let (positions, sent_reports): (Vec<usize>, Vec<SentReport>) =
            sent_reports.into_iter().unzip();
        // Looked at one by one, so none of them is refused.
        let found =
            self.group(&sent_reports, &externals)
                .await
                .map_err(|failure| match failure {
                    GroupFailure::Report(refusal) => {
                        Problem::new(Slug::InvalidReport, refusal.to_string())
                    }
                    GroupFailure::Service(error) => Problem::from(error),
                })?;
        self.service.counters().count_refused_reports(refused.len());
        let (
            format,
            ReportOrder {
                encoding, media, ..
            },
        ) = (Arc::clone(self.format()), self.order);
        let write = move || {
            let details = positions
                .into_iter()
                .zip(details(&format, encoding, &found));
            let body = partial(&format, with_warnings(details, warnings), refused);
            minted(media, &format, count_of(&found.grouped), body)
        };
        Ok(self.way.work(write).await)
    }

    async fn group(
        &self,
        sent_reports: &[SentReport],
        externals: &[(usize, ExternalId)],
    ) -> Result<GroupedReports, GroupFailure> {
        self.service
            .group(
                &self.served,
                &self.minter,
                sent_reports,
                externals,
                self.order.noted_rule,
            )
            .await
    }

    fn format(&self) -> &Arc<Format> {
        &self.served.counted().format
    }
}
