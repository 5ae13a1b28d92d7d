//! An answer as it came, or why it did not.

use std::fmt;

/// A whole answer. A body that came in chunks is put together.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// From the status line to the empty line, both included.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// Why there is no whole answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReceiveError {
    /// The connection ended. Of the answer this much had come; `None` is less than its head.
    #[error("the connection ended before the answer did")]
    Closed(Option<Answer>),
    /// The rest may still come: receive again.
    #[error("nothing more came in time")]
    TimedOut,
    #[error("no HTTP/1.1 answer: {0}")]
    Malformed(String),
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self
            .head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "));
        lines.find_map(|(given, value)| given.eq_ignore_ascii_case(name).then_some(value))
    }

    /// The body as text. Bytes that are no UTF-8 are replaced.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// Head and body, to be passed on.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        [self.head.as_bytes(), &self.body].concat()
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.head, self.text())
    }
}
