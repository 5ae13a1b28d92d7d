//! A report as it was sent: with the id that a sender noted in it, perhaps.

use std::fmt;

use super::report::Report;
use crate::id::Format;

/// A report, and the id that was sent with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentReport {
    /// The report.
    pub report: Report,
    /// The id that came with the report, by which it is matched: see [`NotedRule`].
    pub noted: Option<u128>,
}

impl SentReport {
    /// A report that came without an id.
    pub fn new(report: Report) -> SentReport {
        SentReport {
            report,
            noted: None,
        }
    }
}

/// How reports are matched by the ids that came with them.
///
/// An anchor within reach of the report is joined, the oldest of several, whatever id came with the report. Where none is, an
/// id that is not known is adopted, if its tick is within reach: it becomes the id of a new anchor, at the time within the tick
/// that is nearest to the report. So what was answered once is answered again, whatever is reported in between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NotedRule {
    /// Whether reports keep the ids that they came with: a known one is joined and another one adopted, however far the time of
    /// the report has moved, and whatever other anchors are near.
    pub keep: bool,
    /// Whether a report is refused that gets another id than it came with; otherwise its outcome says so.
    pub must_agree: bool,
}

/// The name of the id of a conjunction in every form of reports: in a comment, and of a member.
pub const EVENT_ID_KEY: &str = "CONJUNCTION_EVENT_ID";

/// The keyword for the id of a conjunction in Conjunction Data Messages from version 2.0 on: of this service, or of anybody.
pub const CONJUNCTION_ID_KEY: &str = "CONJUNCTION_ID";

/// What is wrong with the id that came with a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotedFault {
    /// It is none of the format.
    NoId,
    /// It is of other objects than the report.
    OtherObjects,
    /// The report gets another one, this one.
    OtherId(String),
}

impl NotedFault {
    /// Why, as one word a program can match on.
    pub fn reason(&self) -> &'static str {
        match self {
            NotedFault::NoId | NotedFault::OtherId(_) => "another_id",
            NotedFault::OtherObjects => "another_pair",
        }
    }
}

/// Written behind the id that it is about.
impl fmt::Display for NotedFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotedFault::NoId => out.write_str("is no id of this format"),
            NotedFault::OtherObjects => {
                out.write_str("is not the id of a conjunction of these two objects")
            }
            NotedFault::OtherId(own) => {
                write!(out, "stands here, the id of this conjunction is {own:?}")
            }
        }
    }
}

/// Reads an id in the encoding of that position, or else in the first of the format that reads it.
pub(super) fn read_noted(text: &str, format: &Format, encoding: usize) -> Option<u128> {
    let asked_for = std::iter::once(&format.encodings[encoding]);
    asked_for
        .chain(&format.encodings)
        .find_map(|encoding| encoding.read(text).ok())
}
