//! A report as it was sent, including the id that the sender may have attached to it.

use std::time::Duration;

use super::grouped_minter::GroupedMinter;
use super::report::Report;
use idmint_core::id::Format;

/// A report, and the id that the sender attached to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentReport {
    /// The report: a time and two objects.
    pub report: Report,
    /// The id that the sender attached to the report, or `None`. [`NotedRule`] says how it is used.
    pub noted: Option<u128>,
}

impl SentReport {
    /// Creates a report without an attached id.
    pub fn new(report: Report) -> SentReport {
        SentReport {
            report,
            noted: None,
        }
    }
}

/// The rule for the use of the conjunction id that a sender has attached to a report.
///
/// By default, a report joins the oldest anchor within one second, even if the id of that anchor
/// differs from the attached id. If no anchor is within one second, the report can create an anchor
/// that gives its attached id. This requires that no conjunction has the id yet, and that a time
/// within one second gives the id. The nearest such time becomes the anchor. Otherwise the report's
/// own time becomes a new anchor.
///
/// As a result, a report that is sent again gets the same response, whatever other reports arrive
/// in between. The exception is an analysis that joined the conjunction of its attached id from
/// more than one second away (see `named_reach`). If another conjunction is stored within one
/// second of the analysis later, the analysis joins this nearer conjunction when it is sent again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NotedRule {
    /// `true` if a report always keeps the id that its sender attached. The report joins the
    /// conjunction with this id, however far away in time it is, and even if others are nearer. If
    /// no such conjunction is stored, the report begins one.
    pub keep: bool,
    /// `true` if a report is refused when the id that it would get differs from its attached id.
    /// Otherwise the response only says that the ids differ.
    pub must_agree: bool,
    /// The maximum difference in time, inclusive, at which a report joins the stored conjunction
    /// whose id its sender attached. It matters only if no conjunction is within one second of the
    /// report. It is zero except for analyses.
    pub named_reach: Duration,
}

/// The name under which the id of a conjunction is attached to a report: in a comment, as a JSON
/// member or as a CSV column.
pub const EVENT_ID_KEY: &str = "CONJUNCTION_EVENT_ID";

/// The keyword for a conjunction id in Conjunction Data Messages since version 2.0. An organisation
/// that creates such messages may set it to an id of its own.
pub const CONJUNCTION_ID_KEY: &str = "CONJUNCTION_ID";

/// The problem with an attached id. In an error message, the text of the problem follows the id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotedFault {
    /// The attached id is not an id of the format.
    #[error("is not an id of this format; find out which system assigned it")]
    NoId,
    /// The attached id does not belong to a close approach of the report's two objects.
    #[error("is not the id of a conjunction of these two objects; check the objects and the id")]
    OtherObjects,
    /// The report does not belong to the conjunction that has the attached id. The value is the id
    /// that the report gets instead, as text.
    #[error(
        "is not the id of this conjunction, which gets {0:?}; noted=keep keeps the id of the report"
    )]
    OtherId(String),
}

impl NotedFault {
    /// Returns the problem as one word, which programs can match on.
    pub fn reason(&self) -> &'static str {
        match self {
            NotedFault::NoId | NotedFault::OtherId(_) => "another_id",
            NotedFault::OtherObjects => "another_pair",
        }
    }
}

/// Parses an id in the encoding with the index `encoding`. If that fails, tries the other encodings
/// of the format in order.
pub(super) fn read_noted(text: &str, format: &Format, encoding: usize) -> Option<u128> {
    let asked_for = std::iter::once(&format.encodings[encoding]);
    asked_for
        .chain(&format.encodings)
        .find_map(|encoding| encoding.read(text).ok())
}

/// Parses an id of the two objects of `report`, in any encoding of the format. Returns `None` if
/// the text is not an id of these objects. An id of another originator may also parse as an id of
/// the format, but it is unlikely to name the same two objects.
pub(super) fn read_own(text: &str, minter: &GroupedMinter, report: &Report) -> Option<u128> {
    let encodings = minter.format().encodings.iter();
    let mut ids = encodings.filter_map(|encoding| encoding.read(text).ok());
    ids.find(|id| minter.anchors_of(*id, report).is_some())
}
