//! Why a text is not an event, or not the JSON that an event may carry.

use std::fmt;

use crate::id::Rejection;

/// The longest part of a value in a message, in characters.
const VALUE_CHARS_MAX: usize = 60;

/// A text that is not an event, or not the JSON an event may carry.
///
/// The message names the member, its value (cut after 60 characters) and what it should be.
///
/// ```
/// use idmint::ledger::Event;
///
/// let error = Event::from_json(br#"{"event": 7, "entities": {}}"#).expect_err("its name is a number");
/// assert_eq!(error.reason(), "wrong_type");
/// assert_eq!(error.to_string(), "`event` is 7, it must be a string");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventError(Box<Reason>);

// Behind a box: a result of the scanner then fits a register.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reason {
    rejection: Rejection,
    detail: String,
}

impl EventError {
    #[cold]
    pub(super) fn new(rejection: Rejection, detail: String) -> EventError {
        EventError(Box::new(Reason { rejection, detail }))
    }

    /// The same error, with the member of the event in front.
    pub(super) fn in_member(mut self, member: &str) -> EventError {
        self.0.detail = format!("`{member}`: {}", self.0.detail);
        self
    }

    /// The stable code of the reason.
    pub fn reason(&self) -> &'static str {
        self.0.rejection.code()
    }

    /// The reason.
    pub fn rejection(&self) -> Rejection {
        self.0.rejection
    }
}

impl fmt::Display for EventError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.detail)
    }
}

impl std::error::Error for EventError {}

/// A value for a message: its beginning, if it is long.
pub(super) fn clip(value: &[u8]) -> String {
    // A character takes at most four bytes, so the ones shown are among these.
    let head = String::from_utf8_lossy(&value[..value.len().min(4 * (VALUE_CHARS_MAX + 1))]);
    match head.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &head[..end]),
        None => head.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_cut() {
        assert_eq!(clip("é".repeat(60).as_bytes()), "é".repeat(60));
        assert_eq!(
            clip("é".repeat(61).as_bytes()),
            format!("{}…", "é".repeat(60))
        );
        assert_eq!(
            clip("😀".repeat(1000).as_bytes()),
            format!("{}…", "😀".repeat(60))
        );
    }
}
