//! Names of series, and patterns that match names.

use std::fmt;

/// The maximum length of a name, in bytes.
const LEN_MAX: usize = 64;

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
        ", and not only dots"
    } else {
        ""
    }
}

fn is_dots(text: &str) -> bool {
    matches!(text, "." | "..")
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-".contains(&byte)
}

impl SeriesName {
    /// Parses a name.
    ///
    /// # Errors
    /// Returns [`SeriesNameError`] if the text is not a valid name. The message says what a name
    /// looks like.
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

/// A pattern for names of series. It matches one name, or all names with a common prefix, such as
/// `acme-*`.
///
/// ```
/// use idmint_records::ledger::SeriesPattern;
///
/// let pattern = SeriesPattern::from_text("acme-*").expect("a pattern");
/// assert!(pattern.matches("acme-2026") && pattern.matches("acme-") && !pattern.matches("acme"));
/// assert_eq!(SeriesPattern::from_text("*-2026"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesPattern {
    /// The prefix that names must have, or the whole name.
    prefix: String,
    is_open: bool,
}

impl SeriesPattern {
    /// A description of valid patterns, for error messages.
    pub const RULE: &'static str =
        "the name of a series, 1 to 64 of A-Za-z0-9._-, or a prefix and a star, such as \"acme-*\"";

    /// Parses a pattern. Returns `None` if the text is not a valid pattern.
    pub fn from_text(text: &str) -> Option<SeriesPattern> {
        match text.strip_suffix('*') {
            None => SeriesName::from_text(text)
                .ok()
                .map(|SeriesName(prefix)| SeriesPattern {
                    prefix,
                    is_open: false,
                }),
            Some(prefix) => {
                let is_prefix = prefix.len() < LEN_MAX && prefix.bytes().all(is_letter);
                is_prefix.then(|| SeriesPattern {
                    prefix: prefix.to_owned(),
                    is_open: true,
                })
            }
        }
    }

    /// Returns `true` if the pattern matches this name.
    pub fn matches(&self, name: &str) -> bool {
        if self.is_open {
            name.starts_with(&self.prefix)
        } else {
            name == self.prefix
        }
    }

    /// Returns the last name that sorts before all names that match. For `acme-*`, this is `acme`.
    /// Returns `None` if no name sorts before them.
    pub fn name_before(&self) -> Option<SeriesName> {
        let (last, rest) = self.prefix.as_bytes().split_last()?;
        let lower = (0..*last).rev().find(|byte| is_letter(*byte));
        let mut name = String::from_utf8_lossy(rest).into_owned();
        if let Some(lower) = lower {
            name.push(char::from(lower));
            name.extend(std::iter::repeat_n('z', LEN_MAX - name.len()));
        }
        SeriesName::from_text(&name).ok()
    }

    /// `true` if no name that sorts after `name` matches the pattern.
    pub fn ends_by(&self, name: &SeriesName) -> bool {
        let name = name.as_str();
        let is_after = name > self.prefix.as_str();
        is_after && !self.matches(name) || !self.is_open && name == self.prefix
    }

    /// Returns a value that is greater for a more specific pattern. If several patterns match a
    /// name, the one with the greatest value applies.
    pub(super) fn weight(&self) -> (bool, usize) {
        (!self.is_open, self.prefix.len())
    }

    /// Returns the only name that the pattern matches, or `None` if it can match several.
    pub(super) fn only(&self) -> Option<&str> {
        (!self.is_open).then_some(self.prefix.as_str())
    }
}

impl fmt::Display for SeriesPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}{}",
            self.prefix,
            if self.is_open { "*" } else { "" }
        )
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
                .ends_with("not only dots")
        );
    }

    #[test]
    fn a_pattern_is_a_name_or_the_beginning_of_names() {
        for (pattern, matched, others) in [
            ("acme", &["acme"][..], &["acme-", "Acme", ""][..]),
            ("acme-*", &["acme-", "acme-2026"], &["acme", "xacme-1"]),
            ("*", &["a", "acme"], &[]),
        ] {
            let read = SeriesPattern::from_text(pattern).expect("a pattern");
            assert_eq!(read.to_string(), pattern);
            assert!(matched.iter().all(|name| read.matches(name)), "{pattern}");
            assert!(!others.iter().any(|name| read.matches(name)), "{pattern}");
        }
        for text in ["", "a*b", "**", "a b*", &format!("{}*", "x".repeat(64))] {
            assert_eq!(SeriesPattern::from_text(text), None, "{text:?}");
        }
    }
}
