//! A document of one or more messages: reports out of it, and ids into it.

use super::draft::Message;
use super::error::CdmError;
use super::form::CdmForm;
use super::{kvn, space_track, xml};
use crate::conjunction::group_request::{GroupError, GroupRefusal, Sighting};
use crate::id::{Encoding, Format};

/// One or more Conjunction Data Messages in one text.
///
/// Shape: at least one message. `B` holds the bytes, and is not copied. Source: CCSDS 508.0-B-1,
/// <https://public.ccsds.org/Pubs/508x0b1e2c2.pdf>.
///
/// ```
/// use idmint::conjunction::cdm::{CdmForm, Document};
///
/// let sent = "CCSDS_CDM_VERS = 1.0\r\nCREATION_DATE = 2024-01-30T12:00:00\r\nTCA = 2024-032T00:00:00.25\r\n\
///     OBJECT = OBJECT1\r\nOBJECT_DESIGNATOR = 25544\r\nOBJECT = OBJECT2\r\nOBJECT_DESIGNATOR = 48274";
/// let document = Document::read(CdmForm::Kvn, sent)?;
/// assert_eq!(document.messages()[0].report().primary(), 25_544);
/// let annotated = document.annotate(&["zwwqlzz-pjjmxmd-lkpvwq"]);
/// let comment = "\r\nCOMMENT CONJUNCTION_EVENT_ID = zwwqlzz-pjjmxmd-lkpvwq\r\n";
/// assert_eq!(annotated, sent.replacen("\r\n", comment, 1).as_bytes());
/// # Ok::<(), idmint::conjunction::cdm::CdmError>(())
/// ```
#[derive(Debug)]
pub struct Document<B> {
    source: B,
    messages: Vec<Message>,
}

impl<B: AsRef<[u8]>> Document<B> {
    /// Reads every message of a document, in time that grows with its length only.
    ///
    /// # Errors
    /// [`CdmError`] names the first line, and the keyword, that makes it no such document.
    pub fn read(form: CdmForm, source: B) -> Result<Document<B>, CdmError> {
        let messages = match form {
            CdmForm::Kvn => kvn::read(source.as_ref()),
            CdmForm::Xml => xml::read(source.as_ref()),
            CdmForm::SpaceTrack => space_track::read(source.as_ref()),
        }?;
        Ok(Document { source, messages })
    }

    /// The messages, in their order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The reports of the messages, each with the id that the message came with: read in the encoding of that position, or
    /// else in the first of the format that reads it.
    ///
    /// # Errors
    /// [`CdmError`] of the first message whose id is none of the format.
    pub fn sightings(&self, format: &Format, encoding: usize) -> Result<Vec<Sighting>, CdmError> {
        let sighting = |message: &Message| {
            let expected = message
                .existing_id()
                .map(|existing| existing.read(format, encoding).ok_or_else(|| message.refuse_existing_id(None)));
            Ok(Sighting { report: *message.report(), expected: expected.transpose()? })
        };
        self.messages.iter().map(sighting).collect()
    }

    /// The refusal of one of the [sightings](Document::sightings), with its line and keyword. `encoding`: of ids in the
    /// message.
    pub fn explain(&self, GroupRefusal { index, error }: &GroupRefusal, encoding: &Encoding) -> CdmError {
        let message = &self.messages[*index];
        match error {
            GroupError::Report(error) => message.refuse(error),
            GroupError::OtherId { gets, .. } => message.refuse_existing_id(Some(&encoding.to_text(*gets))),
        }
    }

    /// The same bytes with an id in each message, in their order. A message that came with an id stays as it is: whether it
    /// is the right one, grouping the [sightings](Document::sightings) checks.
    ///
    /// # Panics
    /// When there are not as many ids as messages.
    pub fn annotate(&self, ids: &[impl AsRef<str>]) -> Vec<u8> {
        assert_eq!(ids.len(), self.messages.len(), "each message gets an id");
        let source = self.source.as_ref();
        // Enough for a comment with its key and its id.
        let room = ids.first().map_or(0, |id| 64 + 2 * id.as_ref().len()) * ids.len();
        let mut out = Vec::with_capacity(source.len() + room);
        let mut written = 0;
        for (message, id) in self.messages.iter().zip(ids).filter(|(message, _)| message.existing_id().is_none()) {
            let at = message.insertion.at();
            out.extend_from_slice(&source[written..at]);
            message.insertion.write(source, id.as_ref(), &mut out);
            written = at;
        }
        out.extend_from_slice(&source[written..]);
        out
    }
}
