//! The error for a text that is not a valid event, or that contains JSON which is not allowed in an
//! event.

use idmint_core::id::Rejection;

/// The maximum number of characters of a value that an error message contains.
const VALUE_CHARS_MAX: usize = 60;

/// The error for a text that is not a valid event, or that contains JSON which is not allowed in an
/// event.
///
/// The message names the member, its value (cut after 60 characters), and what was expected.
///
/// ```
/// use idmint_records::ledger::Event;
///
/// let error = Event::from_json(br#"{"event": 7, "entities": {}}"#).expect_err("its name is a number");
/// assert_eq!(error.reason(), "wrong_type");
/// assert_eq!(error.to_string(), "`event` is 7, but must be a string");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.detail)]
pub struct EventError(Box<Reason>);

// The reason is boxed, so that a `Result` of the JSON scanner fits into a register.
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

    /// Puts the name of the event's member (such as `data`) in front of the error message.
    pub(super) fn in_member(mut self, member: &str) -> EventError {
        self.0.detail = format!("`{member}`: {}", self.0.detail);
        self
    }

    /// Returns the reason as a stable code.
    pub fn reason(&self) -> &'static str {
        self.0.rejection.code()
    }

    /// Returns the reason why the text was rejected.
    pub fn rejection(&self) -> Rejection {
        self.0.rejection
    }
}

/// Prepares a value for an error message, and cuts it if it is long.
pub(super) fn clip(value: &[u8]) -> String {
    // A character has at most four bytes, so these bytes contain all characters that the message
    // needs.
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
