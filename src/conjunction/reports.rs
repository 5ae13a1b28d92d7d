//! The reports of one text in any form: read, refused in the words of the form, and written back with their ids.

use super::cdm::{CdmError, CdmForm, Document};
use super::group_request::{GroupError, GroupRefusal, Sighting};
use super::report::{Report, ReportError};
use crate::id::{Encoding, Format};

/// The reports of one text, at least one.
///
/// `B` holds the bytes of messages, and is not copied.
#[derive(Debug)]
pub enum Reports<B> {
    /// Reports alone, such as those in JSON of this service.
    Plain {
        /// The reports in their order.
        reports: Vec<Report>,
        /// Whether they came as a list, so that an error needs the index of its report.
        is_list: bool,
    },
    /// Conjunction Data Messages, which can be written back with their ids.
    Messages(Document<B>),
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
    pub fn read_messages(form: CdmForm, source: B, most: u32) -> Result<Reports<B>, ReportsError> {
        let document = Document::read(form, source)?;
        check_count(document.messages().len(), most)?;
        Ok(Reports::Messages(document))
    }

    /// Reads 1 to `most` plain reports, each a time of closest approach and the two objects.
    ///
    /// # Errors
    /// [`ReportsError::Count`] first, then [`ReportsError::Report`].
    pub fn read_plain<'a>(
        given: impl ExactSizeIterator<Item = (&'a str, u64, u64)>,
        is_list: bool,
        most: u32,
    ) -> Result<Reports<B>, ReportsError> {
        check_count(given.len(), most)?;
        let read = |(index, (tca, primary, secondary))| {
            Report::from_text(tca, primary, secondary).map_err(|error| refuse_plain(is_list, index, error))
        };
        let reports = given.enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Reports::Plain { reports, is_list })
    }

    /// The reports, each with the id that came with it: see [`Document::sightings`].
    ///
    /// # Errors
    /// [`ReportsError::Message`] of the first message whose id is none of the format.
    pub fn sightings(&self, format: &Format, encoding: usize) -> Result<Vec<Sighting>, ReportsError> {
        match self {
            Reports::Plain { reports, .. } => {
                Ok(reports.iter().map(|report| Sighting { report: *report, expected: None }).collect())
            }
            Reports::Messages(document) => Ok(document.sightings(format, encoding)?),
        }
    }

    /// The refusal of one of the [sightings](Reports::sightings), in the words of its form. `encoding`: of ids in the message.
    pub fn explain(&self, refusal: &GroupRefusal, encoding: &Encoding) -> ReportsError {
        match (self, &refusal.error) {
            (Reports::Messages(document), _) => document.explain(refusal, encoding).into(),
            (Reports::Plain { is_list, .. }, GroupError::Report(error)) => {
                refuse_plain(*is_list, refusal.index, error.clone())
            }
            (Reports::Plain { .. }, GroupError::OtherId { .. }) => unreachable!("plain reports come without ids"),
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

fn check_count(count: usize, most: u32) -> Result<(), ReportsError> {
    if count > 0 && count <= usize::try_from(most).unwrap_or(usize::MAX) {
        return Ok(());
    }
    Err(ReportsError::Count { count, most })
}

fn refuse_plain(is_list: bool, index: usize, error: ReportError) -> ReportsError {
    ReportsError::Report { index: is_list.then_some(index), error }
}
