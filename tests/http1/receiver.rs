//! What a connection has received: bytes that are not parsed yet, and the answer that is not whole yet.

use std::ops::Range;

use super::parser::Piece;
use super::{Answer, AnswerEnd, AnswerParser, ReceiveError};

/// How much is read at once.
const READ_LEN: usize = 256 * 1024;

/// Filled by whoever has the socket: [`Receiver::space`], then [`Receiver::filled`].
pub(super) struct Receiver {
    parser: AnswerParser,
    buffer: Vec<u8>,
    /// The part of the buffer that is not parsed.
    unread: Range<usize>,
    partial: Option<Answer>,
}

impl Receiver {
    pub(super) fn new() -> Self {
        Self {
            parser: AnswerParser::new(),
            buffer: vec![0; READ_LEN],
            unread: 0..0,
            partial: None,
        }
    }

    /// The next answer, if all of it has been received.
    ///
    /// # Errors
    /// [`ReceiveError::Malformed`].
    pub(super) fn next_answer(&mut self) -> Result<Option<Answer>, ReceiveError> {
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

    /// Skips the next answer, if all of it has been received.
    ///
    /// # Errors
    /// [`ReceiveError::Malformed`].
    pub(super) fn skip_answer(&mut self) -> Result<Option<AnswerEnd>, ReceiveError> {
        let parsed = self.parser.parse(&self.buffer[self.unread.clone()], |_| {});
        let (used, end) = parsed.map_err(ReceiveError::Malformed)?;
        self.unread.start += used;
        Ok(end)
    }

    /// Room for what is read next.
    pub(super) fn space(&mut self) -> &mut [u8] {
        if self.unread.is_empty() {
            self.unread = 0..0;
        }
        if self.unread.end == self.buffer.len() {
            // The beginning of a line without its end.
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
            self.buffer.resize(self.unread.end + READ_LEN, 0);
        }
        &mut self.buffer[self.unread.end..]
    }

    /// So many bytes of [`Receiver::space`] have been read.
    pub(super) fn filled(&mut self, len: usize) {
        self.unread.end += len;
    }

    /// The error for a connection that has ended now.
    pub(super) fn closed(&mut self) -> ReceiveError {
        ReceiveError::Closed(self.partial.take())
    }

    /// What was received and is no answer.
    pub(super) fn take_unread(&mut self) -> Vec<u8> {
        self.buffer[std::mem::take(&mut self.unread)].to_vec()
    }
}
