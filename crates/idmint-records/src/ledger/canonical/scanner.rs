//! Reads a JSON text, one token at a time.

use crate::ledger::event_error::{EventError, clip};
use idmint_core::id::Rejection;

/// The maximum nesting of arrays and objects.
pub(in crate::ledger) const DEPTH_MAX: usize = 64;

/// A JSON text, and the position up to which it was read.
#[derive(Debug)]
pub(in crate::ledger) struct Scanner<'a> {
    /// The JSON text, which is known to be valid UTF-8. Strings in the text are therefore not
    /// checked again.
    pub(in crate::ledger) bytes: &'a [u8],
    pub(in crate::ledger) at: usize,
}

impl<'a> Scanner<'a> {
    /// Creates a scanner at the beginning of a text.
    ///
    /// # Errors
    /// Returns [`Rejection::InvalidJson`] if the text is not UTF-8.
    pub(in crate::ledger) fn new(json: &'a [u8]) -> Result<Scanner<'a>, EventError> {
        match std::str::from_utf8(json) {
            Ok(_) => Ok(Scanner { bytes: json, at: 0 }),
            Err(error) => Err(Scanner {
                bytes: json,
                at: error.valid_up_to(),
            }
            .invalid("this is not UTF-8")),
        }
    }

    /// Returns the next byte without advancing, or `None` at the end of the text.
    pub(in crate::ledger) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(in crate::ledger) fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Skips white space. If the next byte is `byte`, reads it and returns `true`.
    pub(in crate::ledger) fn eat(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Reads the byte after an item of an array or object. Returns `true` if this byte is `close`,
    /// so the item is the last one, and `false` if it is a comma. `wanted` describes the two bytes
    /// in an error message.
    pub(in crate::ledger) fn is_last_item(
        &mut self,
        close: u8,
        wanted: &str,
    ) -> Result<bool, EventError> {
        if self.eat(close) {
            Ok(true)
        } else if self.eat(b',') {
            Ok(false)
        } else {
            Err(self.unexpected(wanted))
        }
    }

    /// Reads `word`, such as `true`, or returns an error. The caller has seen the first letter.
    pub(in crate::ledger) fn word(&mut self, word: &str) -> Result<(), EventError> {
        if self.bytes[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(());
        }
        Err(self.unexpected("a value"))
    }

    /// Checks that only white space is left in the text.
    pub(in crate::ledger) fn end(&mut self) -> Result<(), EventError> {
        self.skip_space();
        if self.at == self.bytes.len() {
            Ok(())
        } else {
            Err(self.unexpected("the end"))
        }
    }

    /// Returns the error for a text that does not have `wanted` at the current position.
    #[cold]
    pub(in crate::ledger) fn unexpected(&self, wanted: &str) -> EventError {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return self.invalid(&format!("the text ends, but {wanted} is expected"));
        }
        let shown = clip(&rest[..rest.len().min(12)]);
        self.invalid(&format!(
            "found `{}`, but {wanted} is expected",
            shown.trim_end_matches(char::REPLACEMENT_CHARACTER)
        ))
    }

    /// Returns the error for a text that is invalid from the current position on.
    #[cold]
    pub(in crate::ledger) fn invalid(&self, what: &str) -> EventError {
        EventError::new(
            Rejection::InvalidJson,
            format!("not JSON at byte {}: {what}", self.at),
        )
    }
}
