//! An HTTP response, or the reason why it was not received completely.

use std::fmt;

/// A complete response. If the body was chunked, the chunks are joined.
pub struct Answer {
    pub status: u16,
    /// The text from the status line to the empty line, including both.
    pub head: String,
    pub body: Vec<u8>,
}

/// The reason why a response was not received completely.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The connection was closed. The value is the part of the response that arrived, or `None` if
    /// its head is incomplete.
    #[error("the connection ended before the answer did")]
    Closed(Option<Answer>),
    /// No further bytes arrived in time. The rest may still arrive if the caller receives again.
    #[error("nothing more came in time")]
    TimedOut,
    #[error("no HTTP/1.1 answer: {0}")]
    Malformed(String),
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self
            .head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "));
        lines.find_map(|(given, value)| given.eq_ignore_ascii_case(name).then_some(value))
    }

    /// Returns the body as text. Invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// Returns the head and the body as bytes, which can be forwarded.
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.head.as_bytes(), &self.body].concat()
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.head, self.text())
    }
}
