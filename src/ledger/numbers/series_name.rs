//! The names of series, and patterns that name several.

use std::fmt;

/// The longest name.
const LEN_MAX: usize = 64;

/// The name of a series: 1 to 64 of `A-Za-z0-9._-`, and neither `.` nor `..`, which programs take out of an address.
///
/// ```
/// use idmint::ledger::SeriesName;
///
/// assert_eq!(SeriesName::from_text("acme-2026")?.as_str(), "acme-2026");
/// let error = SeriesName::from_text("acme/2026").expect_err("a slash");
/// assert_eq!(error.to_string(), "series is \"acme/2026\", it must be 1 to 64 of A-Z, a-z, 0-9, `.`, `_` and `-`");
/// # Ok::<(), idmint::ledger::SeriesNameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesName(String);

/// A text that is no name of a series.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "series is {given:?}, it must be 1 to {LEN_MAX} of A-Z, a-z, 0-9, `.`, `_` and `-`{}",
    beside_dots(given)
)]
pub struct SeriesNameError {
    given: String,
}

fn beside_dots(text: &str) -> &'static str {
    if is_dots(text) {
        ", and more than dots that an address loses"
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
    /// Reads a name.
    ///
    /// # Errors
    /// [`SeriesNameError`] says what a name is.
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

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SeriesName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Some series: one by its name, or all whose names begin alike, `acme-*`.
///
/// ```
/// use idmint::ledger::SeriesPattern;
///
/// let pattern = SeriesPattern::from_text("acme-*").expect("a pattern");
/// assert!(pattern.matches("acme-2026") && pattern.matches("acme-") && !pattern.matches("acme"));
/// assert_eq!(SeriesPattern::from_text("*-2026"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesPattern {
    /// What the names begin with, or the whole name.
    prefix: String,
    is_open: bool,
}

impl SeriesPattern {
    /// What a pattern is, for messages.
    pub const RULE: &'static str = "the name of a series, 1 to 64 of A-Za-z0-9._-, or what names begin with and a star, \
                                    such as \"acme-*\"";

    /// Reads a pattern; `None` if it is none.
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

    /// Whether this is the name of one of them.
    pub fn matches(&self, name: &str) -> bool {
        if self.is_open {
            name.starts_with(&self.prefix)
        } else {
            name == self.prefix
        }
    }

    /// Of two patterns that match a name the greater one says more of it.
    pub(super) fn weight(&self) -> (bool, usize) {
        (!self.is_open, self.prefix.len())
    }

    /// The one series that it names; `None` if there can be several.
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
                .ends_with("that an address loses")
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
