//! A document of one or more messages: reports out of it, and ids into it.

use super::draft::Message;
use super::error::CdmError;
use super::form::CdmForm;
use super::insertion::Insertion;
use super::outcomes::Outcomes;
use super::read_rule::ReadRule;
use super::transcoded::{Origin, transcode};
use super::{kvn, space_track, xml};
use crate::conjunction::group_request::{GroupError, GroupRefusal};
use crate::conjunction::grouped_minter::GroupedMinter;
use crate::conjunction::object_rules::ObjectRules;
use crate::conjunction::sent_report::{NotedFault, SentReport};
use crate::id::Encoding;

/// One or more Conjunction Data Messages in one text.
///
/// Shape: at least one message. `B` holds the bytes, and is not copied. Source: CCSDS 508.0-B-1,
/// <https://public.ccsds.org/Pubs/508x0b1e2c2.pdf>, and for version 2.0 the draft CCSDS 508.0-P-1.1.
///
/// ```
/// use idmint::conjunction::SentReport;
/// use idmint::conjunction::cdm::{CdmForm, Document};
///
/// let sent = "CCSDS_CDM_VERS = 1.0\r\nCREATION_DATE = 2024-01-30T12:00:00\r\nTCA = 2024-032T00:00:00.25\r\n\
///     OBJECT = OBJECT1\r\nOBJECT_DESIGNATOR = 25544\r\nOBJECT = OBJECT2\r\nOBJECT_DESIGNATOR = 48274";
/// let document = Document::read(CdmForm::Kvn, sent)?;
/// let report = *document.messages()[0].report();
/// assert_eq!(report.primary(), 25_544);
/// let annotated = document.annotate(&[SentReport::new(report)], &["zwwqlzz-pjjmxmd-lkpvwq"]);
/// let comment = "\r\nCOMMENT CONJUNCTION_EVENT_ID = zwwqlzz-pjjmxmd-lkpvwq\r\n";
/// assert_eq!(annotated, sent.replacen("\r\n", comment, 1).as_bytes());
/// # Ok::<(), idmint::conjunction::cdm::CdmError>(())
/// ```
#[derive(Debug)]
pub struct Document<B> {
    source: B,
    /// The same in UTF-8, where it is written in another encoding.
    decoded: Option<String>,
    origin: Origin,
    messages: Vec<Message>,
    refused: Vec<(usize, CdmError)>,
}

impl<B: AsRef<[u8]>> Document<B> {
    /// Reads every message of a document, in time that grows with its length only.
    ///
    /// # Errors
    /// [`CdmError`] names the first line, and the keyword, that makes it no such document.
    pub fn read(form: CdmForm, source: B) -> Result<Document<B>, CdmError> {
        Document::read_by(
            ReadRule {
                objects: &ObjectRules::default(),
                note: None,
                is_partial: false,
            },
            form,
            source,
        )
    }

    /// Reads every message of a document, by a rule.
    ///
    /// # Errors
    /// [`CdmError`], as [`Document::read`]; where messages may be left out, only if the document as a whole cannot be read.
    pub fn read_by(rule: ReadRule<'_>, form: CdmForm, source: B) -> Result<Document<B>, CdmError> {
        let bytes = source.as_ref();
        let (decoded, origin) = if form == CdmForm::Xml {
            transcode(bytes)?
        } else {
            (None, Origin::UTF_8)
        };
        let Outcomes {
            messages, refused, ..
        } = match form {
            CdmForm::Kvn => kvn::read(bytes, rule),
            CdmForm::Xml => xml::read(
                decoded.as_ref().map_or(bytes, String::as_bytes),
                origin,
                rule,
            ),
            CdmForm::SpaceTrack => space_track::read(bytes, rule),
        }?;
        Ok(Document {
            source,
            decoded,
            origin,
            messages,
            refused,
        })
    }

    /// The messages that were read, in their order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The messages that were left out, by their positions among all, from 0.
    pub fn refused(&self) -> &[(usize, CdmError)] {
        &self.refused
    }

    /// The reports of the messages, each with the id that the message came with: read in the encoding of that position, or
    /// else in the first of the format that reads it. Whether a keyword CONJUNCTION_ID is of this service, the minter tells.
    ///
    /// # Errors
    /// [`CdmError`] of the first message whose id is none of the format, or that has two.
    pub fn sent_reports(
        &self,
        minter: &GroupedMinter,
        encoding: usize,
    ) -> Result<Vec<SentReport>, CdmError> {
        (0..self.messages.len())
            .map(|index| self.sent_report(index, minter, encoding))
            .collect()
    }

    /// The report of one message, as in [`Document::sent_reports`].
    ///
    /// # Errors
    /// [`CdmError`] if its id is none of the format, or it has two.
    pub fn sent_report(
        &self,
        index: usize,
        minter: &GroupedMinter,
        encoding: usize,
    ) -> Result<SentReport, CdmError> {
        let message = &self.messages[index];
        Ok(SentReport {
            report: *message.report(),
            noted: message.noted(minter, encoding)?,
        })
    }

    /// The refusal of one of the [sent_reports](Document::sent_reports), with its line and keyword. `encoding`: of ids in the
    /// message.
    pub fn explain(
        &self,
        GroupRefusal { index, error }: &GroupRefusal,
        encoding: &Encoding,
    ) -> CdmError {
        let message = &self.messages[*index];
        match error {
            GroupError::Report(error) => message.refuse(error),
            GroupError::OtherObjects { .. } => {
                message.refuse_existing_id(&NotedFault::OtherObjects)
            }
            GroupError::OtherId { gets, .. } => {
                message.refuse_existing_id(&NotedFault::OtherId(encoding.to_text(*gets)))
            }
        }
    }

    /// The same bytes with an id in each message, in their order. A message whose sent_report has an id stays as it is: whether
    /// it is the right one, grouping the [sent_reports](Document::sent_reports) checks.
    ///
    /// # Panics
    /// When there are not as many sent_reports and ids as messages.
    pub fn annotate(&self, sent_reports: &[SentReport], ids: &[impl AsRef<str>]) -> Vec<u8> {
        assert_eq!(ids.len(), self.messages.len(), "each message gets an id");
        assert_eq!(
            sent_reports.len(),
            self.messages.len(),
            "each message is a sent_report"
        );
        let source = self.source.as_ref();
        let messages = self.messages.iter().zip(sent_reports).zip(ids);
        let without_id = messages.filter(|((_, sent_report), _)| sent_report.noted.is_none());
        let without_id = without_id.map(|((message, _), id)| (&message.insertion, id.as_ref()));
        if let Some(decoded) = &self.decoded {
            return self.annotate_decoded(decoded, without_id);
        }
        // Enough for a comment with its key and its id.
        let room = ids.first().map_or(0, |id| 64 + 2 * id.as_ref().len()) * ids.len();
        let mut out = Vec::with_capacity(source.len() + room);
        let mut written = 0;
        for (insertion, id) in without_id {
            let at = insertion.at();
            out.extend_from_slice(&source[written..at]);
            insertion.write(source, id, &mut out);
            written = at;
        }
        out.extend_from_slice(&source[written..]);
        out
    }

    fn annotate_decoded<'a>(
        &self,
        decoded: &str,
        insertions: impl Iterator<Item = (&'a Insertion, &'a str)>,
    ) -> Vec<u8> {
        let source = self.source.as_ref();
        let mut out = Vec::with_capacity(source.len());
        let (mut read, mut written) = (0, 0);
        for (place, id) in insertions {
            let at = place.at();
            let end = written.max(self.origin.begin()) + self.origin.len_of(&decoded[read..at]);
            out.extend_from_slice(&source[written..end]);
            let mut insertion = Vec::new();
            place.write(decoded.as_bytes(), id, &mut insertion);
            self.origin
                .encode(str::from_utf8(&insertion).expect("made of texts"), &mut out);
            (read, written) = (at, end);
        }
        out.extend_from_slice(&source[written..]);
        out
    }
}
