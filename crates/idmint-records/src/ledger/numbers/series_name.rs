//! Names of series.

use std::fmt;

/// The maximum length of a name, in bytes.
pub(super) const LEN_MAX: usize = 64;

/// The name of a series: 1 to 64 characters of `A-Za-z0-9._-`.
///
/// The names `.` and `..` are excluded, because programs remove them from a URL.
///
/// ```
/// use idmint_records::ledger::SeriesName;
///
/// assert_eq!(SeriesName::from_text("acme-2026")?.as_str(), "acme-2026");
/// let error = SeriesName::from_text("acme/2026").expect_err("a slash");
/// assert_eq!(error.to_string(), "series is \"acme/2026\", but must have 1 to 64 characters of A-Z, a-z, 0-9, `.`, `_` and `-`");
/// # Ok::<(), idmint_records::ledger::SeriesNameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesName(String);

/// The error for a text that is not a valid name of a series.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "series is {given:?}, but must have 1 to {LEN_MAX} characters of A-Z, a-z, 0-9, `.`, `_` and `-`{}",
    beside_dots(given)
)]
pub struct SeriesNameError {
    given: String,
}

fn beside_dots(text: &str) -> &'static str {
    if is_dots(text) {
        ", and not be `.` or `..`"
    } else {
        ""
    }
}

fn is_dots(text: &str) -> bool {
    matches!(text, "." | "..")
}

/// Returns `true` if the names of series may contain this byte.
pub(super) fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-".contains(&byte)
}

impl SeriesName {
    /// Parses a name.
    ///
    /// # Errors
    /// Returns [`SeriesNameError`] if the text is not a valid name. The message describes a valid
    /// name.
    pub fn from_text(text: &str) -> Result<SeriesName, SeriesNameError> {
        let is_name =
            (1..=LEN_MAX).contains(&text.len()) && text.bytes().all(is_letter) && !is_dots(text);
        if is_name {
            Ok(SeriesName(text.to_owned()))
        } else {
            Err(SeriesNameError {
                given: text.to_owned(),
            })
        }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SeriesName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_1_to_64_of_a_few_letters() {
        for text in ["a", "A.b_c-9", "...", &"x".repeat(64)] {
            assert_eq!(
                SeriesName::from_text(text).map(|name| name.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in [
            "",
            ".",
            "..",
            "a b",
            "a/b",
            "a*",
            "é",
            "a%20",
            &"x".repeat(65),
        ] {
            assert!(SeriesName::from_text(text).is_err(), "{text:?}");
        }
        assert!(
            SeriesName::from_text("..")
                .expect_err("dots")
                .to_string()
                .ends_with("and not be `.` or `..`")
        );
    }
}
