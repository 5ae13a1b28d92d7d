//! The reports of one text in any form: read, refused in the words of the form, and written back with their ids.

use std::collections::BTreeMap;

use super::cdm::{CdmError, CdmForm, Document, ReadRule};
use super::external_id::ExternalId;
use super::group_request::{GroupError, GroupRefusal, GroupRequest};
use super::grouped_minter::GroupedMinter;
use super::report::{Report, ReportError};
use super::sent_report::{EVENT_ID_KEY, NotedFault, SentReport, read_noted};
use crate::id::Encoding;

/// The reports of one text, at least one.
///
/// `B` holds the bytes of messages, and is not copied.
#[derive(Debug)]
pub enum Reports<B> {
    /// Reports alone, such as those in JSON of this service.
    Plain {
        /// The reports in their order.
        reports: Vec<PlainReport>,
        /// Whether they came as a list, so that an error needs the index of its report.
        is_list: bool,
        /// The reports that were left out, by their positions among all, from 0.
        refused: Vec<(usize, ReportsError)>,
    },
    /// Conjunction Data Messages, which can be written back with their ids.
    Messages(Document<B>),
}

/// A report of which nothing is written back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainReport {
    /// The report.
    pub report: Report,
    /// The id that came with it, as it was written.
    pub noted: Option<String>,
}

/// The reports of a text that can have ids, and the others.
#[derive(Debug)]
pub struct SortedReports {
    /// Each with its position in the text, from 0.
    pub sent_reports: Vec<(usize, SentReport)>,
    /// The ids of other originators that came with these, by their places among them.
    pub externals: Vec<(usize, ExternalId)>,
    /// Why those at the other positions get no id.
    pub refused: Vec<(usize, ReportsError)>,
}

/// A plain report as it was written.
#[derive(Debug, Clone, Copy)]
pub struct WrittenReport<'a> {
    /// The time of closest approach.
    pub tca: &'a str,
    /// The number of the object reported first.
    pub primary: u64,
    /// The number of the other object.
    pub secondary: u64,
    /// The id that came with it.
    pub noted: Option<&'a str>,
}

/// Why the reports of a text get no ids. None of them does then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportsError {
    /// A message cannot be read, makes no id, or came with another one.
    #[error(transparent)]
    Message(#[from] CdmError),
    /// A plain report cannot be read or makes no id.
    #[error("{}{error}", .index.map(|index| format!("[{index}].")).unwrap_or_default())]
    Report {
        /// The index of the report, from 0, if it is one of a list.
        index: Option<usize>,
        /// The reason.
        error: ReportError,
    },
    /// A plain report has not the form of one.
    #[error("{}{message}", .index.map(|index| format!("[{index}].")).unwrap_or_default())]
    Form {
        /// The index of the report, from 0, if it is one of a list.
        index: Option<usize>,
        /// What is wrong.
        message: String,
    },
    /// A plain report came with an id that is none of its own.
    #[error("{}{EVENT_ID_KEY}: {text:?} {fault}", .index.map(|index| format!("[{index}].")).unwrap_or_default())]
    Noted {
        /// The index of the report, from 0, if it is one of a list.
        index: Option<usize>,
        /// The id that came with it.
        text: String,
        /// What is wrong with it.
        fault: NotedFault,
    },
    /// There is no report, or too many.
    #[error("there are {count} reports in the body, it must hold from 1 to {most}")]
    Count {
        /// The number of reports.
        count: usize,
        /// The greatest number.
        most: u32,
    },
}

impl<B: AsRef<[u8]>> Reports<B> {
    /// Reads 1 to `most` messages.
    ///
    /// # Errors
    /// [`ReportsError::Message`], [`ReportsError::Count`].
    pub fn read_messages(
        form: CdmForm,
        source: B,
        most: u32,
        rule: ReadRule<'_>,
    ) -> Result<Reports<B>, ReportsError> {
        let document = Document::read_by(rule, form, source)?;
        ReportsError::check_count(document.messages().len() + document.refused().len(), most)?;
        Ok(Reports::Messages(document))
    }

    /// Reads 1 to `most` plain reports, each a time of closest approach and the two objects, or why it has not that form.
    ///
    /// # Errors
    /// [`ReportsError::Count`] first; then, unless a report that is wrong `is_partial` left out, the first that is.
    pub fn read_plain<'a>(
        given: impl ExactSizeIterator<Item = Result<WrittenReport<'a>, String>>,
        is_list: bool,
        most: u32,
        is_partial: bool,
    ) -> Result<Reports<B>, ReportsError> {
        ReportsError::check_count(given.len(), most)?;
        let read = |index: usize, written: Result<WrittenReport<'_>, String>| {
            let form = |message| ReportsError::Form {
                index: is_list.then_some(index),
                message,
            };
            let written = written.map_err(form)?;
            let report = Report::from_text(written.tca, written.primary, written.secondary);
            let report = report.map_err(|error| refuse_plain(is_list, index, error))?;
            Ok::<_, ReportsError>(PlainReport {
                report,
                noted: written.noted.map(str::to_owned),
            })
        };
        let (mut reports, mut refused) = (Vec::with_capacity(given.len()), Vec::new());
        for (index, written) in given.enumerate() {
            match read(index, written) {
                Ok(report) => reports.push(report),
                Err(error) if is_partial => refused.push((index, error)),
                Err(error) => return Err(error),
            }
        }
        Ok(Reports::Plain {
            reports,
            is_list,
            refused,
        })
    }

    /// Every report that can have an id, and why the others get none, each with its position among all, from 0.
    ///
    /// `encoding`: of ids that came with reports.
    pub fn sort_out(&self, minter: &GroupedMinter, encoding: usize) -> SortedReports {
        let mut refused = self.refused();
        let (mut sent_reports, mut externals) = (Vec::with_capacity(self.len()), Vec::new());
        let of_ids = &minter.format().encodings[encoding];
        for (index, position) in self.positions(&refused).into_iter().enumerate() {
            let sent_report = self
                .sent_report(index, position, minter, encoding)
                .and_then(|sent_report| {
                    let checked = GroupRequest::check(minter, &sent_report);
                    let explain =
                        |error| self.explain_at(position, &GroupRefusal { index, error }, of_ids);
                    checked.map(|()| sent_report).map_err(explain)
                });
            match sent_report {
                Ok(sent_report) => {
                    externals.extend(
                        self.external(index, minter)
                            .map(|external| (sent_reports.len(), external)),
                    );
                    sent_reports.push((position, sent_report));
                }
                Err(error) => refused.push((position, error)),
            }
        }
        SortedReports {
            sent_reports,
            externals,
            refused,
        }
    }

    /// The positions of the reports that were read among all, from 0.
    fn positions(&self, refused: &[(usize, ReportsError)]) -> Vec<usize> {
        let mut at_fault = refused.iter().map(|(position, _)| *position).peekable();
        (0..self.len() + refused.len())
            .filter(|position| at_fault.next_if_eq(position).is_none())
            .collect()
    }

    /// What the sender of the reports should know of how they were read, by their positions among all, from 0.
    pub fn warnings(&self) -> BTreeMap<usize, String> {
        let Reports::Messages(document) = self else {
            return BTreeMap::new();
        };
        if document
            .messages()
            .iter()
            .all(|message| message.version().is_known())
        {
            return BTreeMap::new();
        }
        let positions = self.positions(&self.refused());
        let warnings = document
            .messages()
            .iter()
            .map(|message| message.version().warning());
        positions
            .into_iter()
            .zip(warnings)
            .filter_map(|(position, warning)| Some((position, warning?)))
            .collect()
    }

    fn refused(&self) -> Vec<(usize, ReportsError)> {
        match self {
            Reports::Plain { refused, .. } => refused.clone(),
            Reports::Messages(document) => document
                .refused()
                .iter()
                .map(|(position, error)| (*position, error.clone().into()))
                .collect(),
        }
    }

    /// The number of reports that were read.
    fn len(&self) -> usize {
        match self {
            Reports::Plain { reports, .. } => reports.len(),
            Reports::Messages(document) => document.messages().len(),
        }
    }

    /// The reports, each with the id that came with it: read in the encoding of that position, or else in the first of the
    /// format that reads it.
    ///
    /// # Errors
    /// [`ReportsError::Message`], [`ReportsError::Noted`] of the first whose id is none of the format.
    pub fn sent_reports(
        &self,
        minter: &GroupedMinter,
        encoding: usize,
    ) -> Result<Vec<SentReport>, ReportsError> {
        (0..self.len())
            .map(|index| self.sent_report(index, index, minter, encoding))
            .collect()
    }

    /// The ids of other originators that came with the [sent_reports](Reports::sent_reports), by their places among them.
    pub fn externals(&self, minter: &GroupedMinter) -> Vec<(usize, ExternalId)> {
        (0..self.len())
            .filter_map(|index| Some((index, self.external(index, minter)?)))
            .collect()
    }

    fn external(&self, index: usize, minter: &GroupedMinter) -> Option<ExternalId> {
        self.messages()?.messages()[index].external(minter)
    }

    /// `position`: that of the report among all, those that were left out too.
    fn sent_report(
        &self,
        index: usize,
        position: usize,
        minter: &GroupedMinter,
        encoding: usize,
    ) -> Result<SentReport, ReportsError> {
        match self {
            Reports::Plain {
                reports, is_list, ..
            } => {
                let PlainReport { report, noted } = &reports[index];
                let read = |text: &String| {
                    let no_id = || refuse_noted(*is_list, position, text, NotedFault::NoId);
                    read_noted(text, minter.format(), encoding).ok_or_else(no_id)
                };
                Ok(SentReport {
                    report: *report,
                    noted: noted.as_ref().map(read).transpose()?,
                })
            }
            Reports::Messages(document) => Ok(document.sent_report(index, minter, encoding)?),
        }
    }

    /// The refusal of one of the [sent_reports](Reports::sent_reports), in the words of its form. `encoding`: of ids in the message.
    pub fn explain(&self, refusal: &GroupRefusal, encoding: &Encoding) -> ReportsError {
        self.explain_at(refusal.index, refusal, encoding)
    }

    fn explain_at(
        &self,
        position: usize,
        refusal: &GroupRefusal,
        encoding: &Encoding,
    ) -> ReportsError {
        let (reports, is_list) = match self {
            Reports::Messages(document) => return document.explain(refusal, encoding).into(),
            Reports::Plain {
                reports, is_list, ..
            } => (reports, *is_list),
        };
        let noted = || reports[refusal.index].noted.as_deref().unwrap_or_default();
        match &refusal.error {
            GroupError::Report(error) => refuse_plain(is_list, position, error.clone()),
            GroupError::OtherObjects { .. } => {
                refuse_noted(is_list, position, noted(), NotedFault::OtherObjects)
            }
            GroupError::OtherId { gets, .. } => refuse_noted(
                is_list,
                position,
                noted(),
                NotedFault::OtherId(encoding.to_text(*gets)),
            ),
        }
    }

    /// The messages, if these are messages.
    pub fn messages(&self) -> Option<&Document<B>> {
        match self {
            Reports::Messages(document) => Some(document),
            Reports::Plain { .. } => None,
        }
    }
}

impl ReportsError {
    /// Whether there are 1 to `most` reports.
    ///
    /// # Errors
    /// [`ReportsError::Count`].
    pub fn check_count(count: usize, most: u32) -> Result<(), ReportsError> {
        if count > 0 && count <= usize::try_from(most).unwrap_or(usize::MAX) {
            return Ok(());
        }
        Err(ReportsError::Count { count, most })
    }
}

fn refuse_noted(is_list: bool, index: usize, text: &str, fault: NotedFault) -> ReportsError {
    ReportsError::Noted {
        index: is_list.then_some(index),
        text: text.to_owned(),
        fault,
    }
}

fn refuse_plain(is_list: bool, index: usize, error: ReportError) -> ReportsError {
    ReportsError::Report {
        index: is_list.then_some(index),
        error,
    }
}
