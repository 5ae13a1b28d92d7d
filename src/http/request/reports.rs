//! The forms in which reports come: JSON of this service, and Conjunction Data Messages as KVN, as XML and as JSON.

use bytes::Bytes;

use super::json::{Object, check_form, strict_json};
use crate::conjunction::{
    CdmError, CdmForm, Document, GroupError, GroupRefusal, Message, Report, ReportError, Sighting, without_bom,
};
use crate::http::answer::{MediaType, Problem, Slug};
use crate::id::{Encoding, Format, Rejection};
use crate::time::UnixTime;
use crate::wire::ReportRequest;

/// What a body reports.
pub(in crate::http) enum Reports {
    /// JSON of this service.
    Plain {
        list: Vec<Report>,
        /// Whether it was a list, so that a place in it needs a number.
        is_list: bool,
    },
    /// Conjunction Data Messages.
    Messages(Document<Bytes>),
}

impl Reports {
    /// Reads one report, or 1 to `most`. Which form JSON has is told by the names in it.
    ///
    /// # Errors
    /// 400 `malformed-request` for what cannot be read at all; 422 `invalid-report` for what reports nothing.
    pub(in crate::http) fn read(body: Bytes, media: MediaType, most: u32) -> Result<Reports, Problem> {
        if body.is_empty() {
            let detail = "the body is empty, it must be a report or a list of reports";
            return Err(Problem::new(Slug::InvalidReport, detail).reason("report_form"));
        }
        let form = match media {
            MediaType::Text => CdmForm::Kvn,
            MediaType::Xml | MediaType::TextXml => CdmForm::Xml,
            _ if CdmForm::is_space_track(&body) => {
                check_form(without_bom(&body))?;
                CdmForm::SpaceTrack
            }
            _ => return plain(&body, most),
        };
        let document = Document::read(form, body).map_err(|error| problem(&error))?;
        check_count(document.messages().len(), most)?;
        Ok(Reports::Messages(document))
    }

    /// That there are messages that can be told back.
    pub(in crate::http) fn check_for_messages(&self) -> Result<(), Problem> {
        match self {
            Reports::Messages(_) => Ok(()),
            Reports::Plain { .. } => {
                let detail = "return=cdm goes with Conjunction Data Messages, and the body has none to give back";
                Err(Problem::new(Slug::InvalidParameter, detail).reason("return"))
            }
        }
    }

    /// The reports, each with the id that came with it, in whatever spelling.
    pub(in crate::http) fn sightings(&self, format: &Format, encoding: usize) -> Result<Vec<Sighting>, Problem> {
        match self {
            Reports::Plain { list, .. } => {
                Ok(list.iter().map(|report| Sighting { report: *report, expected: None }).collect())
            }
            Reports::Messages(document) => {
                let sighting = |message: &Message| {
                    let expected = message.noted().map(|noted| {
                        let read = noted.id_in(format, encoding);
                        read.ok_or_else(|| problem(&message.noted_otherwise(None)))
                    });
                    Ok(Sighting { report: *message.report(), expected: expected.transpose()? })
                };
                document.messages().iter().map(sighting).collect()
            }
        }
    }

    /// The messages with their ids in them.
    ///
    /// # Panics
    /// When these are no messages.
    pub(in crate::http) fn annotated(&self, ids: &[String]) -> Vec<u8> {
        match self {
            Reports::Messages(document) => document.annotated(ids),
            Reports::Plain { .. } => unreachable!("checked before anything was minted"),
        }
    }

    /// Why the reports got no ids, told in the words of their form.
    pub(in crate::http) fn refused(
        &self,
        GroupRefusal { index, error }: &GroupRefusal,
        encoding: &Encoding,
    ) -> Problem {
        match (self, error) {
            (Reports::Plain { is_list, .. }, GroupError::Report(error)) => refused(&place(*is_list, *index), error),
            (Reports::Messages(document), GroupError::Report(error)) => {
                with_limit(problem(&document.messages()[*index].refused(error)), error.limit())
            }
            (Reports::Messages(document), GroupError::OtherId { gets, .. }) => {
                problem(&document.messages()[*index].noted_otherwise(Some(&encoding.to_text(*gets))))
            }
            (Reports::Plain { .. }, GroupError::OtherId { .. }) => unreachable!("they come without ids"),
        }
    }
}

fn problem(error: &CdmError) -> Problem {
    let slug = if error.reason == "not_utf8" { Slug::MalformedRequest } else { Slug::InvalidReport };
    let problem = Problem::new(slug, error.to_string()).reason(error.reason).with("line", error.line);
    match &error.keyword {
        Some(keyword) => problem.with("keyword", keyword.as_str()),
        None => problem,
    }
}

fn plain(json: &[u8], most: u32) -> Result<Reports, Problem> {
    let is_list = json.trim_ascii_start().first() == Some(&b'[');
    let given: Vec<Object<ReportRequest<'_>>> = if is_list { read_json(json)? } else { vec![read_json(json)?] };
    check_count(given.len(), most)?;
    let read = |(at, Object(report)): (usize, &Object<ReportRequest<'_>>)| read_report(report, || place(is_list, at));
    let list = given.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    Ok(Reports::Plain { list, is_list })
}

fn check_count(count: usize, most: u32) -> Result<(), Problem> {
    if count > 0 && count <= usize::try_from(most).unwrap_or(usize::MAX) {
        return Ok(());
    }
    let detail = format!("there are {count} reports in the body, it must hold from 1 to {most}");
    Err(Problem::new(Slug::InvalidReport, detail).reason("count").limit(most.to_string()))
}

/// What stands before the name of a member of the report at that place.
fn place(is_list: bool, at: usize) -> String {
    if is_list { format!("[{at}].") } else { String::new() }
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
    let problem = Problem::new(Slug::InvalidReport, format!("{place}{error}")).reason(error.reason());
    with_limit(problem, error.limit())
}

fn with_limit(problem: Problem, limit: Option<String>) -> Problem {
    match limit {
        Some(limit) => problem.limit(limit),
        None => problem,
    }
}
