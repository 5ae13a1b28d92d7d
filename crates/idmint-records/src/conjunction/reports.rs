//! The reports that one text contains, as JSON or as Conjunction Data Messages. The reports can be
//! returned with their ids. If they are refused, the errors use the names in the text, such as
//! `SAT_1_ID`.

use std::collections::BTreeMap;

use super::cdm::{CdmError, CdmForm, Document, ReadRule};
use super::external_id::ExternalId;
use super::group_request::{GroupError, GroupRefusal, GroupRequest};
use super::grouped_minter::GroupedMinter;
use super::report::{Report, ReportError, Role};
use super::sent_report::{EVENT_ID_KEY, NotedFault, SentReport, read_noted, read_own};
use idmint_core::id::Encoding;

/// The reports of one text. The list is empty only if all reports were invalid and were left out.
///
/// `B` is the type of the bytes of a document with messages. The bytes are not copied.
#[derive(Debug)]
pub enum Reports<B> {
    /// Plain reports, such as idmint's own JSON reports.
    Plain {
        /// The reports, in the order in which they were sent.
        reports: Vec<PlainReport>,
        /// The form in which the reports are written.
        kind: PlainKind,
        /// `true` if the reports were sent as a list. In this case, an error contains the index of
        /// the report that is at fault.
        is_list: bool,
        /// The errors of the invalid reports that were left out of `reports`. Each error comes with
        /// the position of its report among all reports that were sent, counted from 0.
        refused: Vec<(usize, ReportsError)>,
    },
    /// Conjunction Data Messages, which can be returned with their ids.
    Messages(Document<B>),
}

/// A form of reports that are not Conjunction Data Messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainKind {
    /// The JSON reports of idmint.
    Own,
    /// The JSON in which analysts write reports, with the members `event_id`, `tca`,
    /// `primary_object.norad_id` and `secondary_object.norad_id`.
    Analysis {
        /// `true` if the service stores conjunctions. An `event_id` that does not belong to the
        /// report's objects is then stored as the id of another originator. If `false`, such an
        /// `event_id` is an error.
        keeps_foreign: bool,
    },
}

/// The kind of reports that analysts write as JSON, on a service that stores close approaches. An
/// `event_id` that is not an id of the report's objects is then stored as an id of another system.
const FOREIGN_KEPT: PlainKind = PlainKind::Analysis {
    keeps_foreign: true,
};

/// The JSON member of an analyst's report that contains the catalogue number of the second object.
const SECONDARY_OF_ANALYSIS: &str = "secondary_object.norad_id";

impl PlainKind {
    /// Returns the name of the JSON member with the id that the sender attached.
    const fn noted(self) -> &'static str {
        match self {
            PlainKind::Own => EVENT_ID_KEY,
            PlainKind::Analysis { .. } => "event_id",
        }
    }

    /// Returns the name of the JSON member with the invalid value. Returns `None` if the text of
    /// `error` already contains this name, or if the error is about several members together.
    fn member_of(self, error: &ReportError) -> Option<&'static str> {
        match (self, error) {
            (
                PlainKind::Analysis { .. },
                ReportError::ObjectZero { role } | ReportError::ObjectTooGreat { role, .. },
            ) => Some(match role {
                Role::Primary => "primary_object.norad_id",
                Role::Secondary => SECONDARY_OF_ANALYSIS,
            }),
            (PlainKind::Analysis { .. }, ReportError::SameObject { .. }) => {
                Some(SECONDARY_OF_ANALYSIS)
            }
            _ => None,
        }
    }
}

/// A report that is not part of a Conjunction Data Message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainReport {
    /// The report: a time and two objects.
    pub report: Report,
    /// The id that the sender attached to the report, as text.
    pub noted: Option<String>,
}

/// The reports of a text, separated into reports that can get an id and reports that cannot get an
/// id.
#[derive(Debug)]
pub struct SortedReports {
    /// The reports that can get an id. Each report comes with its position among all reports of the
    /// text, counted from 0.
    pub sent_reports: Vec<(usize, SentReport)>,
    /// The ids that other originators gave to the conjunctions. Each id comes with the index of its
    /// report in `sent_reports`.
    pub externals: Vec<(usize, ExternalId)>,
    /// The reasons why the other reports get no id. Each reason comes with the position of its
    /// report among all reports of the text, counted from 0.
    pub refused: Vec<(usize, ReportsError)>,
}

/// A report outside of a Conjunction Data Message, as it was written. The time, and the id that the
/// sender attached, are not parsed yet.
#[derive(Debug, Clone, Copy)]
pub struct WrittenReport<'a> {
    /// The time of closest approach.
    pub tca: &'a str,
    /// The catalogue number of the object that is named first.
    pub primary: u64,
    /// The catalogue number of the other object.
    pub secondary: u64,
    /// The id that the sender attached to the report.
    pub noted: Option<&'a str>,
}

/// The reason why the reports in a text get no ids. One error refuses all reports in the text,
/// unless the invalid ones may be left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportsError {
    /// A Conjunction Data Message is invalid, no id can be made for it, or it contains a
    /// conjunction id from idmint that does not belong to it.
    #[error(transparent)]
    Message(#[from] CdmError),
    /// A plain report, which is not part of a Conjunction Data Message, has invalid values or gets
    /// no id.
    #[error("{}{}{error}", of_index(.index), .member.map(|member| format!("{member}: ")).unwrap_or_default())]
    Report {
        /// The index of the report in the list, counted from 0, or `None` if the reports were not
        /// sent as a list.
        index: Option<usize>,
        /// The name of the JSON member with the invalid value. `None` if the text of `error`
        /// already contains this name, or if no single value is invalid.
        member: Option<&'static str>,
        /// The reason why the report gets no id.
        error: ReportError,
    },
    /// A plain report does not have the required form.
    #[error("{message}")]
    Form {
        /// A description of the problem, with the index of the report in the list.
        message: String,
    },
    /// The id that the sender attached to a plain report does not belong to the report.
    #[error("{}{member}: {text:?} {fault}", of_index(.index))]
    Noted {
        /// The index of the report in the list, counted from 0, or `None` if the reports were not
        /// sent as a list.
        index: Option<usize>,
        /// The name of the JSON member with the attached id.
        member: &'static str,
        /// The id that the sender attached to the report, as text.
        text: String,
        /// The problem with the attached id.
        fault: NotedFault,
    },
    /// The text has no reports, or too many.
    #[error("the body holds {count} reports, but must hold from 1 to {most}")]
    Count {
        /// The number of reports in the text.
        count: usize,
        /// The maximum number of reports in one text.
        most: u32,
    },
}

impl<B: AsRef<[u8]>> Reports<B> {
    /// Reads the messages of a document. There must be 1 to `rule.count_max` messages.
    ///
    /// # Errors
    /// Returns [`ReportsError::Message`] if a message is invalid, and [`ReportsError::Count`] if
    /// the document has too few or too many messages.
    pub fn read_messages(
        form: CdmForm,
        source: B,
        rule: ReadRule<'_>,
    ) -> Result<Reports<B>, ReportsError> {
        let document = Document::read_by(rule, form, source)?;
        ReportsError::check_count(document.count(), rule.count_max)?;
        Ok(Reports::Messages(document))
    }

    /// Reads plain reports. There must be 1 to `most` reports. Each item is a report, or the reason
    /// why it does not have the required form. The reason begins with the index of the report.
    ///
    /// # Errors
    /// Returns [`ReportsError::Count`] if `given` has too few or too many reports, which is checked
    /// first. Otherwise returns the error of the first invalid report. If `is_partial` is `true`,
    /// invalid reports are left out instead.
    pub fn read_plain<'a>(
        kind: PlainKind,
        given: impl ExactSizeIterator<Item = Result<WrittenReport<'a>, String>>,
        is_list: bool,
        most: u32,
        is_partial: bool,
    ) -> Result<Reports<B>, ReportsError> {
        ReportsError::check_count(given.len(), most)?;
        let read = |index: usize, written: Result<WrittenReport<'_>, String>| {
            let written = written.map_err(|message| ReportsError::Form { message })?;
            let report = Report::from_text(written.tca, written.primary, written.secondary);
            let place = PlainPlace {
                kind,
                index: is_list.then_some(index),
            };
            let report = report.map_err(|error| place.refuse(error))?;
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
            kind,
            is_list,
            refused,
        })
    }

    /// Separates the reports that can get an id from those that cannot. Positions count all reports
    /// of the text, from 0.
    ///
    /// `encoding` is the index of the encoding that is tried first to parse attached ids.
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

    /// Returns the positions of the reports that were not left out as invalid. Positions count all
    /// reports of the text, from 0.
    fn positions(&self, refused: &[(usize, ReportsError)]) -> Vec<usize> {
        let mut at_fault = refused.iter().map(|(position, _)| *position).peekable();
        (0..self.len() + refused.len())
            .filter(|position| at_fault.next_if_eq(position).is_none())
            .collect()
    }

    /// Returns warnings for the sender, about messages whose version is unknown. Each key is the
    /// position of a report among all reports of the text, from 0.
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

    /// Returns the number of reports that were not left out.
    fn len(&self) -> usize {
        match self {
            Reports::Plain { reports, .. } => reports.len(),
            Reports::Messages(document) => document.messages().len(),
        }
    }

    /// Returns the reports together with their attached ids.
    ///
    /// An attached id is read in the encoding with the index `encoding`. If that fails, it is read
    /// in the first encoding of the format that accepts it. On a service that stores conjunctions,
    /// an `event_id` of an analysis that does not belong to the report's objects is ignored here,
    /// because `externals` returns it.
    ///
    /// # Errors
    /// Returns [`ReportsError::Message`] or [`ReportsError::Noted`] for the first report whose
    /// attached id is not an id of the format. A message with two different ids of idmint is also
    /// an error.
    pub fn sent_reports(
        &self,
        minter: &GroupedMinter,
        encoding: usize,
    ) -> Result<Vec<SentReport>, ReportsError> {
        (0..self.len())
            .map(|index| self.sent_report(index, index, minter, encoding))
            .collect()
    }

    /// Returns the ids that other organizations gave to the close approaches in these reports. Each
    /// id comes with the index of its report in [sent_reports](Reports::sent_reports).
    pub fn externals(&self, minter: &GroupedMinter) -> Vec<(usize, ExternalId)> {
        (0..self.len())
            .filter_map(|index| Some((index, self.external(index, minter)?)))
            .collect()
    }

    fn external(&self, index: usize, minter: &GroupedMinter) -> Option<ExternalId> {
        match self {
            Reports::Messages(document) => document.messages()[index].external(minter),
            Reports::Plain { reports, kind, .. } => {
                let PlainReport { report, noted } = &reports[index];
                let foreign = noted.as_ref().filter(|text| {
                    *kind == FOREIGN_KEPT && read_own(text, minter, report).is_none()
                });
                ExternalId::new(foreign?)
            }
        }
    }

    /// Returns `true` if the reports are analyses: plain reports in the JSON that analysts write.
    pub fn are_analyses(&self) -> bool {
        matches!(
            self,
            Reports::Plain {
                kind: PlainKind::Analysis { .. },
                ..
            }
        )
    }

    /// Returns the report with the index `index` and the id that its sender attached. `position`
    /// counts all reports of the text, including the invalid ones that were left out.
    fn sent_report(
        &self,
        index: usize,
        position: usize,
        minter: &GroupedMinter,
        encoding: usize,
    ) -> Result<SentReport, ReportsError> {
        match self {
            Reports::Plain {
                reports,
                kind,
                is_list,
                ..
            } => {
                let PlainReport { report, noted } = &reports[index];
                let place = PlainPlace {
                    kind: *kind,
                    index: is_list.then_some(position),
                };
                let read = |text: &String| {
                    if *kind == FOREIGN_KEPT {
                        return Ok(read_own(text, minter, report));
                    }
                    let noted = read_noted(text, minter.format(), encoding);
                    let no_id = || place.refuse_noted(text, NotedFault::NoId);
                    noted.map(Some).ok_or_else(no_id)
                };
                let noted = noted.as_ref().map(read).transpose()?;
                Ok(SentReport {
                    report: *report,
                    noted: noted.flatten(),
                })
            }
            Reports::Messages(document) => Ok(document.sent_report(index, minter, encoding)?),
        }
    }

    /// Converts the reason why a report was refused to an error for the sender of the report. The
    /// report must be one of the [sent_reports](Reports::sent_reports). The error uses the names in
    /// the sent text, such as `SAT_1_ID`. Ids in the error message are written in `encoding`.
    pub fn explain(&self, refusal: &GroupRefusal, encoding: &Encoding) -> ReportsError {
        self.explain_at(refusal.index, refusal, encoding)
    }

    fn explain_at(
        &self,
        position: usize,
        refusal: &GroupRefusal,
        encoding: &Encoding,
    ) -> ReportsError {
        let (reports, place) = match self {
            Reports::Messages(document) => return document.explain(refusal, encoding).into(),
            Reports::Plain {
                reports,
                kind,
                is_list,
                ..
            } => {
                let index = is_list.then_some(position);
                (reports, PlainPlace { kind: *kind, index })
            }
        };
        let noted = || reports[refusal.index].noted.as_deref().unwrap_or_default();
        match &refusal.error {
            GroupError::Report(error) => place.refuse(error.clone()),
            GroupError::OtherObjects { .. } => {
                place.refuse_noted(noted(), NotedFault::OtherObjects)
            }
            GroupError::OtherId { gets, .. } => {
                place.refuse_noted(noted(), NotedFault::OtherId(encoding.to_text(*gets)))
            }
        }
    }

    /// Returns the messages as a document, or `None` for plain reports.
    pub fn messages(&self) -> Option<&Document<B>> {
        match self {
            Reports::Messages(document) => Some(document),
            Reports::Plain { .. } => None,
        }
    }
}

impl ReportsError {
    /// Checks that the number of reports is 1 to `most`.
    ///
    /// # Errors
    /// Returns [`ReportsError::Count`] if `count` is not 1 to `most`.
    pub fn check_count(count: usize, most: u32) -> Result<(), ReportsError> {
        if count > 0 && count <= usize::try_from(most).unwrap_or(usize::MAX) {
            return Ok(());
        }
        Err(ReportsError::Count { count, most })
    }
}

/// The position of a plain report, for errors.
#[derive(Clone, Copy)]
struct PlainPlace {
    kind: PlainKind,
    /// The index of the report in the list, or `None` if the reports were not sent as a list.
    index: Option<usize>,
}

impl PlainPlace {
    fn refuse(self, error: ReportError) -> ReportsError {
        ReportsError::Report {
            index: self.index,
            member: self.kind.member_of(&error),
            error,
        }
    }

    fn refuse_noted(self, text: &str, fault: NotedFault) -> ReportsError {
        ReportsError::Noted {
            index: self.index,
            member: self.kind.noted(),
            text: text.to_owned(),
            fault,
        }
    }
}

/// Returns the beginning of an error message about one report of a list, such as `[3].` for the
/// index 3.
fn of_index(index: &Option<usize>) -> String {
    index.map(|index| format!("[{index}].")).unwrap_or_default()
}
