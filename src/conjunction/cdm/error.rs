//! Why a Conjunction Data Message gets no id.

use std::fmt;

/// The longest part of a document in a message, in characters.
const TOLD_CHARS_MAX: usize = 60;

/// What is wrong with a document, and where.
///
/// Displayed as `line 17: TCA: "2024-13-01T00:00:00" is no time of the CCSDS calendar or day-of-year form`, in a few hundred
/// characters at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CdmError {
    /// The line, counted from 1.
    pub line: u64,
    /// The keyword, element or member that is wrong, if it is one.
    pub keyword: Option<String>,
    /// Why, as one word a program can match on.
    pub reason: &'static str,
    /// The bound that the format of the ids sets and the report broke, if there is one.
    pub limit: Option<String>,
    message: String,
}

impl CdmError {
    /// An error of a line as a whole.
    pub(super) fn at(line: u64, reason: &'static str, message: impl fmt::Display) -> CdmError {
        CdmError {
            line,
            keyword: None,
            reason,
            limit: None,
            message: message.to_string(),
        }
    }

    /// The same error with the bound that was broken.
    pub(super) fn with_limit(self, limit: Option<String>) -> CdmError {
        CdmError { limit, ..self }
    }

    /// Whether another configuration may read the same document: what designators stand for differs from one to the next.
    pub fn depends_on_configuration(&self) -> bool {
        matches!(self.reason, "wrong_type" | "another_catalog")
    }

    /// The message without the line, for a caller who writes the line in another way.
    pub fn without_line(&self) -> String {
        match &self.keyword {
            Some(keyword) => format!("{keyword}: {}", self.message),
            None => self.message.clone(),
        }
    }

    /// An error of one keyword.
    pub(super) fn of(
        line: u64,
        keyword: &str,
        reason: &'static str,
        message: impl fmt::Display,
    ) -> CdmError {
        let keyword = Some(cut(keyword));
        CdmError {
            line,
            keyword,
            reason,
            limit: None,
            message: message.to_string(),
        }
    }
}

impl std::error::Error for CdmError {}

impl fmt::Display for CdmError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}: {}", self.line, self.without_line())
    }
}

/// A part of a document for a message: in quotes, escaped, and not too long.
pub(super) fn quote(text: &str) -> String {
    format!("{:?}", cut(text))
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
}
