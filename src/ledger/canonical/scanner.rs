//! Reads a JSON text token by token.

use crate::id::Rejection;
use crate::ledger::event_error::{EventError, clip};

/// How deep arrays and objects may be nested.
pub(in crate::ledger) const DEPTH_MAX: usize = 64;

/// A JSON text and the position up to which it is read.
#[derive(Debug)]
pub(in crate::ledger) struct Scanner<'a> {
    /// UTF-8, so that strings need no further check.
    pub(in crate::ledger) bytes: &'a [u8],
    pub(in crate::ledger) at: usize,
}

impl<'a> Scanner<'a> {
    /// The beginning of a text.
    ///
    /// # Errors
    /// [`Rejection::InvalidJson`] if it is not UTF-8.
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

    /// The next byte. Does not advance.
    pub(in crate::ledger) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(in crate::ledger) fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Skips white space and reads this byte if it is next.
    pub(in crate::ledger) fn eat(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Reads this word. Its first letter has been seen at this position.
    pub(in crate::ledger) fn word(&mut self, word: &str) -> Result<(), EventError> {
        if self.bytes[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(());
        }
        Err(self.unexpected("a value"))
    }

    /// Fails if anything but white space is left.
    pub(in crate::ledger) fn end(&mut self) -> Result<(), EventError> {
        self.skip_space();
        if self.at == self.bytes.len() {
            Ok(())
        } else {
            Err(self.unexpected("the end"))
        }
    }

    /// The error for a token other than `wanted` at this position.
    #[cold]
    pub(in crate::ledger) fn unexpected(&self, wanted: &str) -> EventError {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return self.invalid(&format!("it ends where {wanted} is expected"));
        }
        let shown = clip(&rest[..rest.len().min(12)]);
        self.invalid(&format!(
            "`{}` where {wanted} is expected",
            shown.trim_end_matches(char::REPLACEMENT_CHARACTER)
        ))
    }

    /// The error for text that is no JSON from this position on.
    #[cold]
    pub(in crate::ledger) fn invalid(&self, what: &str) -> EventError {
        EventError::new(
            Rejection::InvalidJson,
            format!("not JSON at byte {}: {what}", self.at),
        )
    }
}
