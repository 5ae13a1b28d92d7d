//! How documents are read, and where ids are put into their messages.

use super::version::NoteForm;
use crate::conjunction::object_rules::ObjectRules;

/// How a document is read.
#[derive(Debug, Clone, Copy)]
pub struct ReadRule<'a> {
    /// Which objects its designators stand for.
    pub objects: &'a ObjectRules,
    /// Where ids are put into messages of CCSDS 508.0; by the version of each if absent.
    pub note: Option<NoteForm>,
    /// Whether a message that is wrong is left out; otherwise it refuses the document.
    pub is_partial: bool,
}
