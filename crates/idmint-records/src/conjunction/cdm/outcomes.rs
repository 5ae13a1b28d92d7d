//! Collects a result for each message of a document while the document is read. The result is the
//! message or an error.

use super::draft::Message;
use super::error::CdmError;
use super::insertion::Insertion;
use super::version::NoteForm;
use crate::conjunction::object_rules::ObjectRules;

/// The messages that were read, and the messages that were refused.
#[derive(Debug)]
pub(super) struct Outcomes<'a> {
    pub(super) rule: ReadRule<'a>,
    pub(super) messages: Vec<Message>,
    /// The errors of the refused messages. Each error comes with the position of its message among
    /// all messages of the document, from 0.
    pub(super) refused: Vec<(usize, CdmError)>,
    /// The place in a CSV document, before the first message, to insert the heading of a new column
    /// for the ids. `None` if no heading is needed.
    pub(super) heading: Option<Insertion>,
    /// The number of messages that were added, including the messages beyond the maximum, which are
    /// only counted.
    count: usize,
}

impl<'a> Outcomes<'a> {
    pub(super) fn new(rule: ReadRule<'a>) -> Outcomes<'a> {
        Outcomes {
            rule,
            messages: Vec::new(),
            refused: Vec::new(),
            heading: None,
            count: 0,
        }
    }

    /// Returns the number of messages that were added so far, including refused messages.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Returns `true` once the maximum number of messages of a document has been added. Further
    /// messages are counted, but not kept.
    pub(super) fn are_full(&self) -> bool {
        self.count >= usize::try_from(self.rule.count_max).unwrap_or(usize::MAX)
    }

    /// Counts the next message of the document without keeping it.
    pub(super) fn count_only(&mut self) {
        self.count += 1;
    }

    /// Adds the result for the next message of the document.
    ///
    /// # Errors
    /// Returns the error of the message, unless the settings say that invalid messages are left
    /// out.
    pub(super) fn add(&mut self, outcome: Result<Message, CdmError>) -> Result<(), CdmError> {
        let position = self.count;
        match outcome {
            Err(error) if !self.rule.is_partial => return Err(error),
            _ if self.are_full() => {}
            Ok(message) => self.messages.push(message),
            Err(error) => self.refused.push((position, error)),
        }
        self.count_only();
        Ok(())
    }
}

/// The settings for reading a document.
#[derive(Debug, Clone, Copy)]
pub struct ReadRule<'a> {
    /// The rules for converting designators to catalogue numbers.
    pub objects: &'a ObjectRules,
    /// The form in which the conjunction id is written into a message of CCSDS 508.0. If `None`,
    /// the version of the message decides.
    pub note: Option<NoteForm>,
    /// `true` if invalid messages are left out. Otherwise, one invalid message refuses the whole
    /// document.
    pub is_partial: bool,
    /// The maximum number of messages, including invalid ones, whose results are kept. Further
    /// messages are only counted, because the results of tiny messages take many times the memory
    /// of the document.
    pub count_max: u32,
}
