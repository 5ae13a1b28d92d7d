//! Reads a document with one or more Conjunction Data Messages. The document can be returned with a
//! conjunction id inserted into each message.

use super::draft::Message;
use super::error::CdmError;
use super::form::CdmForm;
use super::insertion::Insertion;
use super::outcomes::Outcomes;
use super::outcomes::ReadRule;
use super::transcoded::{Origin, transcode};
use super::{csv, kvn, space_track, xml};
use crate::conjunction::group_request::{GroupError, GroupRefusal};
use crate::conjunction::grouped_minter::GroupedMinter;
use crate::conjunction::object_rules::ObjectRules;
use crate::conjunction::sent_report::{EVENT_ID_KEY, NotedFault, SentReport};
use idmint_core::id::Encoding;

/// One or more Conjunction Data Messages (CDM) in one text.
///
/// `B` is the type of the bytes, which are not copied. Source: CCSDS 508.0-B-1,
/// <https://public.ccsds.org/Pubs/508x0b1e2c2.pdf>. Version 2.0 follows the draft CCSDS
/// 508.0-P-1.1.
///
/// ```
/// use idmint_records::conjunction::SentReport;
/// use idmint_records::conjunction::cdm::{CdmForm, Document};
///
/// let sent = "CCSDS_CDM_VERS = 1.0\r\nCREATION_DATE = 2024-01-30T12:00:00\r\nTCA = 2024-032T00:00:00.25\r\n\
///     OBJECT = OBJECT1\r\nOBJECT_DESIGNATOR = 25544\r\nOBJECT = OBJECT2\r\nOBJECT_DESIGNATOR = 48274";
/// let document = Document::read(CdmForm::Kvn, sent)?;
/// let report = *document.messages()[0].report();
/// assert_eq!(report.primary(), 25_544);
/// let annotated = document.annotate(&[SentReport::new(report)], &["zwwqlzz-pjjmxmd-lkpvwq"]);
/// let comment = "\r\nCOMMENT CONJUNCTION_EVENT_ID = zwwqlzz-pjjmxmd-lkpvwq\r\n";
/// assert_eq!(annotated, sent.replacen("\r\n", comment, 1).as_bytes());
/// # Ok::<(), idmint_records::conjunction::cdm::CdmError>(())
/// ```
#[derive(Debug)]
pub struct Document<B> {
    source: B,
    /// The document converted to UTF-8, or `None` if the original document is in UTF-8.
    decoded: Option<String>,
    origin: Origin,
    /// The place to insert the heading of a new CSV column for the ids, or `None` if the document
    /// needs no new column.
    heading: Option<Insertion>,
    messages: Vec<Message>,
    refused: Vec<(usize, CdmError)>,
    count: usize,
}

impl<B: AsRef<[u8]>> Document<B> {
    /// Reads every message of a document. The time that this takes is proportional to the length of
    /// the document.
    ///
    /// # Errors
    /// Returns [`CdmError`] for the first invalid line, with its keyword.
    pub fn read(form: CdmForm, source: B) -> Result<Document<B>, CdmError> {
        Document::read_by(
            ReadRule {
                objects: &ObjectRules::default(),
                note: None,
                is_partial: false,
                count_max: u32::MAX,
            },
            form,
            source,
        )
    }

    /// Reads every message of a document. `rule` says how designators are converted to numbers, and
    /// whether invalid messages are left out.
    ///
    /// # Errors
    /// Returns the same [`CdmError`] as [`Document::read`]. If the rule leaves out invalid
    /// messages, only errors that concern the document as a whole are returned.
    pub fn read_by(rule: ReadRule<'_>, form: CdmForm, source: B) -> Result<Document<B>, CdmError> {
        let bytes = source.as_ref();
        // JSON is always in UTF-8 (RFC 8259), so only documents in the other forms are converted.
        let (decoded, origin) = match form {
            CdmForm::Kvn | CdmForm::Xml | CdmForm::Csv => transcode(bytes)?,
            CdmForm::SpaceTrack => (None, Origin::UTF_8),
        };
        let text = decoded.as_ref().map_or(bytes, String::as_bytes);
        let outcomes = match form {
            CdmForm::Kvn => kvn::read(text, rule),
            CdmForm::Xml => xml::read(text, origin, rule),
            CdmForm::SpaceTrack => space_track::read(text, rule),
            CdmForm::Csv => csv::read(text, rule),
        }?;
        let count = outcomes.len();
        let Outcomes {
            messages,
            refused,
            heading,
            ..
        } = outcomes;
        Ok(Document {
            source,
            decoded,
            origin,
            heading,
            messages,
            refused,
            count,
        })
    }

    /// Returns the number of messages, including those that were left out because they are invalid
    /// or beyond [`ReadRule::count_max`].
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns `true` if the document is in UTF-16.
    pub fn is_utf16(&self) -> bool {
        self.origin.is_utf16()
    }

    /// Returns the messages that were read, in document order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the errors of the invalid messages that were left out. Each error comes with the
    /// position of its message among all messages of the document, from 0.
    pub fn refused(&self) -> &[(usize, CdmError)] {
        &self.refused
    }

    /// Returns the report of each message, together with its attached id: the conjunction id that
    /// idmint wrote into the message earlier, if any.
    ///
    /// The id in a comment, JSON member or CSV column is read in the encoding with the index
    /// `encoding`. If that fails, it is read in the first encoding of the format that accepts it.
    /// The value of the keyword CONJUNCTION_ID counts only in KVN and XML, and only if `minter`
    /// could have made it for the objects of the message, because other originators write their own
    /// ids there.
    ///
    /// # Errors
    /// Returns [`CdmError`] for the first message whose attached id is not an id of the format, or
    /// whose comment and CONJUNCTION_ID contain two different ids of idmint.
    pub fn sent_reports(
        &self,
        minter: &GroupedMinter,
        encoding: usize,
    ) -> Result<Vec<SentReport>, CdmError> {
        (0..self.messages.len())
            .map(|index| self.sent_report(index, minter, encoding))
            .collect()
    }

    /// Returns the report of one message with its attached id, as [`Document::sent_reports`] does
    /// for all messages. `index` is the index of the message in [`Document::messages`].
    ///
    /// # Errors
    /// Returns [`CdmError`] if the attached id is not an id of the format, or if the comment and
    /// CONJUNCTION_ID contain two different ids of idmint.
    ///
    /// # Panics
    /// Panics if no message has this index.
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

    /// Converts the refusal of a report to an error with the line and the keyword that caused it.
    /// The report must be one of the [sent_reports](Document::sent_reports). Ids in the error
    /// message are written in `encoding`.
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

    /// Returns the bytes of the document with the id of each message inserted. `ids` must be in the
    /// order of the messages.
    ///
    /// A message that already contains a conjunction id of idmint (an attached id) is not changed.
    /// To make sure that the message gets this same id, group the
    /// [sent_reports](Document::sent_reports) with
    /// [`NotedRule::must_agree`](crate::conjunction::NotedRule::must_agree).
    ///
    /// # Panics
    /// Panics if `sent_reports` or `ids` does not have exactly one item for each message.
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
        let heading = self.heading.iter().map(|place| (place, EVENT_ID_KEY));
        let insertions = heading.chain(without_id);
        if let Some(decoded) = &self.decoded {
            return self.annotate_decoded(decoded, insertions);
        }
        // Reserve enough memory to insert a comment, with its keyword and its id, into each
        // message.
        let room = ids.first().map_or(0, |id| 64 + 2 * id.as_ref().len()) * ids.len();
        let mut out = Vec::with_capacity(source.len() + room);
        let mut written = 0;
        for (insertion, id) in insertions {
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
