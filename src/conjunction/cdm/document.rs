//! A document of one or more messages: read as a whole, and written again with ids in it.

use super::draft::Message;
use super::error::CdmError;
use super::form::CdmForm;
use super::{kvn, space_track, xml};

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
/// let annotated = document.annotated(&["zwwqlzz-pjjmxmd-lkpvwq"]);
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

    /// The same bytes with an id in each message, in their order; a message that has one already stays as it is. To see
    /// that it is the right one is up to the caller ([`Message::noted`]).
    ///
    /// # Panics
    /// When there are not as many ids as messages.
    pub fn annotated(&self, ids: &[impl AsRef<str>]) -> Vec<u8> {
        assert_eq!(ids.len(), self.messages.len(), "each message gets an id");
        let source = self.source.as_ref();
        // A comment is about as long as its key and its id twice over.
        let room = ids.first().map_or(0, |id| 64 + 2 * id.as_ref().len()) * ids.len();
        let mut out = Vec::with_capacity(source.len() + room);
        let mut written = 0;
        for (message, id) in self.messages.iter().zip(ids).filter(|(message, _)| message.noted().is_none()) {
            let at = message.place.at();
            out.extend_from_slice(&source[written..at]);
            message.place.write(source, id.as_ref(), &mut out);
            written = at;
        }
        out.extend_from_slice(&source[written..]);
        out
    }
}
