//! The receive buffer of a connection. The buffer contains bytes that are not parsed yet, and the
//! response that is being received.

use std::ops::Range;

use super::parser::Piece;
use super::{Answer, AnswerEnd, AnswerParser, ReceiveError};

/// The maximum number of bytes that are read at a time.
const READ_LEN: usize = 256 * 1024;

/// The receive buffer of a connection. The owner of the socket reads bytes into
/// [`Receiver::space`], and then calls [`Receiver::filled`].
pub(crate) struct Receiver {
    parser: AnswerParser,
    buffer: Vec<u8>,
    /// The range of the buffer that is not parsed yet.
    unread: Range<usize>,
    partial: Option<Answer>,
}

impl Receiver {
    pub(crate) fn new() -> Self {
        Self {
            parser: AnswerParser::new(),
            buffer: vec![0; READ_LEN],
            unread: 0..0,
            partial: None,
        }
    }

    /// Returns the next response, or `None` if it is incomplete.
    ///
    /// # Errors
    /// Returns [`ReceiveError::Malformed`] if the bytes are not a response.
    pub(crate) fn next_answer(&mut self) -> Result<Option<Answer>, ReceiveError> {
        let (parser, partial) = (&mut self.parser, &mut self.partial);
        let parsed = parser.parse(&self.buffer[self.unread.clone()], |piece| match piece {
            Piece::Head { status, text } => {
                *partial = Some(Answer {
                    status,
                    head: text.to_owned(),
                    body: Vec::new(),
                });
            }
            Piece::Body(bytes) => partial
                .as_mut()
                .expect("a head comes first")
                .body
                .extend_from_slice(bytes),
        });
        let (used, end) = parsed.map_err(ReceiveError::Malformed)?;
        self.unread.start += used;
        Ok(end.and_then(|_| self.partial.take()))
    }

    /// Discards the next response, or returns `None` if it is incomplete.
    ///
    /// # Errors
    /// Returns [`ReceiveError::Malformed`] if the bytes are not a response.
    pub(crate) fn skip_answer(&mut self) -> Result<Option<AnswerEnd>, ReceiveError> {
        let parsed = self.parser.parse(&self.buffer[self.unread.clone()], |_| {});
        let (used, end) = parsed.map_err(ReceiveError::Malformed)?;
        self.unread.start += used;
        Ok(end)
    }

    /// Returns the space into which the next bytes can be read.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        if self.unread.is_empty() {
            self.unread = 0..0;
        }
        if self.unread.end == self.buffer.len() {
            // Move the unread bytes to the beginning of the buffer. Normally these are only the
            // beginning of an incomplete head or line.
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
            self.buffer.resize(self.unread.end + READ_LEN, 0);
        }
        &mut self.buffer[self.unread.end..]
    }

    /// Records that `len` bytes were read into [`Receiver::space`].
    pub(crate) fn filled(&mut self, len: usize) {
        self.unread.end += len;
    }

    /// Returns the error to report when the connection was closed.
    pub(crate) fn closed(&mut self) -> ReceiveError {
        ReceiveError::Closed(self.partial.take())
    }

    /// Removes and returns the bytes that are not parsed yet.
    pub(crate) fn take_unread(&mut self) -> Vec<u8> {
        self.buffer[std::mem::take(&mut self.unread)].to_vec()
    }
}
