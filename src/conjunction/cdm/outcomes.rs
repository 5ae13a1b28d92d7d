//! What becomes of each message of a document while it is read.

use super::draft::Message;
use super::error::CdmError;
use super::read_rule::ReadRule;

/// The messages that were read, and those that were not.
#[derive(Debug)]
pub(super) struct Outcomes<'a> {
    pub(super) rule: ReadRule<'a>,
    pub(super) messages: Vec<Message>,
    /// By position in the document, from 0.
    pub(super) refused: Vec<(usize, CdmError)>,
}

impl<'a> Outcomes<'a> {
    pub(super) fn new(rule: ReadRule<'a>) -> Outcomes<'a> {
        Outcomes {
            rule,
            messages: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// The number of messages so far.
    pub(super) fn len(&self) -> usize {
        self.messages.len() + self.refused.len()
    }

    /// Takes in the outcome of the next message.
    ///
    /// # Errors
    /// The error of the message, if the document is refused for it.
    pub(super) fn add(&mut self, outcome: Result<Message, CdmError>) -> Result<(), CdmError> {
        match outcome {
            Ok(message) => self.messages.push(message),
            Err(error) if self.rule.is_partial => self.refused.push((self.len(), error)),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
