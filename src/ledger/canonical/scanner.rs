//! The place in a JSON text up to which it is read.

use crate::id::Rejection;
use crate::ledger::event_error::{EventError, clipped};

/// How deep arrays and objects may be nested.
pub(in crate::ledger) const DEPTH_MAX: usize = 64;

/// A JSON text and the place up to which it is read.
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
            Err(error) => Err(Scanner { bytes: json, at: error.valid_up_to() }.invalid("this is not UTF-8")),
        }
    }

    /// The next byte, which is not read by this.
    pub(in crate::ledger) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(in crate::ledger) fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Reads this byte, if it is the next after white space.
    pub(in crate::ledger) fn eat(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Reads this word, since its first letter stands here.
    pub(in crate::ledger) fn word(&mut self, word: &str) -> Result<(), EventError> {
        if self.bytes[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(());
        }
        Err(self.unexpected("a value"))
    }

    /// Whether everything is read but white space.
    pub(in crate::ledger) fn end(&mut self) -> Result<(), EventError> {
        self.skip_space();
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.unexpected("the end")) }
    }

    /// Something else stands here.
    #[cold]
    pub(in crate::ledger) fn unexpected(&self, wanted: &str) -> EventError {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return self.invalid(&format!("it ends where {wanted} is expected"));
        }
        let shown = clipped(&rest[..rest.len().min(12)]);
        self.invalid(&format!("`{}` where {wanted} is expected", shown.trim_end_matches(char::REPLACEMENT_CHARACTER)))
    }

    /// It is not JSON from here on.
    #[cold]
    pub(in crate::ledger) fn invalid(&self, what: &str) -> EventError {
        EventError::new(Rejection::InvalidJson, format!("not JSON at byte {}: {what}", self.at))
    }
}
