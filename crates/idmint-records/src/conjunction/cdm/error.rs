//! The reason why a Conjunction Data Message gets no id.

use std::fmt;

/// The maximum number of characters of a quotation from the document in an error message.
const TOLD_CHARS_MAX: usize = 60;

/// An error in a document with Conjunction Data Messages, with its position.
///
/// The text looks like `line 17: SAT_1_ID: "ISS" is not a catalogue number, …`. It has a few
/// hundred characters at most, and no control characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {}", self.without_line())]
pub struct CdmError {
    /// The line number, counted from 1.
    pub line: u64,
    /// The name of the invalid keyword, element or member. `None` if the error is not about a
    /// single value.
    pub keyword: Option<String>,
    /// The reason as one word, which programs can match on.
    pub reason: &'static str,
    /// The violated bound, such as the greatest catalogue number of the id format. `None` if the
    /// error is not about a bound.
    pub limit: Option<String>,
    message: String,
}

impl CdmError {
    /// Creates an error that concerns a whole line of the document.
    pub(super) fn at(line: u64, reason: &'static str, message: impl fmt::Display) -> CdmError {
        CdmError {
            line,
            keyword: None,
            reason,
            limit: None,
            message: message.to_string(),
        }
    }

    /// Adds the violated bound to this error.
    pub(super) fn with_limit(self, limit: Option<String>) -> CdmError {
        CdmError { limit, ..self }
    }

    /// Returns the message without the line number, for callers that show the line number
    /// themselves.
    pub fn without_line(&self) -> String {
        match &self.keyword {
            Some(keyword) => format!("{}: {}", without_controls(keyword), self.message),
            None => self.message.clone(),
        }
    }

    /// Creates an error that concerns one keyword, element or member.
    pub(super) fn of(
        line: u64,
        keyword: &str,
        reason: &'static str,
        message: impl fmt::Display,
    ) -> CdmError {
        CdmError {
            keyword: Some(cut(keyword)),
            ..CdmError::at(line, reason, message)
        }
    }
}

/// Prepares a part of a document for an error message: quotes it, escapes it, and cuts it if it is
/// long.
pub(super) fn quote(text: &str) -> String {
    format!("{:?}", cut(text))
}

/// Escapes the control characters of a text, because a terminal could interpret them.
fn without_controls(text: &str) -> String {
    text.chars()
        .map(|letter| match letter.is_control() {
            true => letter.escape_default().to_string(),
            false => letter.to_string(),
        })
        .collect()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TOLD_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_part_of_a_document_is_cut_between_characters() {
        let error = CdmError::of(3, &"K".repeat(500), "wrong_type", quote(&"é\n".repeat(500)));
        assert!(error.to_string().starts_with("line 3: KKKK"));
        assert!(error.to_string().contains(r#"é\né\n"#));
        assert!(error.to_string().chars().count() < 200, "{error}");
    }

    #[test]
    fn the_name_of_a_value_reaches_no_terminal_with_its_control_characters() {
        let error = CdmError::of(1, "\u{1b}[31m\0é\"X", "report_form", "the reason");
        assert_eq!(error.keyword.as_deref(), Some("\u{1b}[31m\0é\"X"));
        assert_eq!(
            error.to_string(),
            "line 1: \\u{1b}[31m\\u{0}é\"X: the reason"
        );
    }
}
