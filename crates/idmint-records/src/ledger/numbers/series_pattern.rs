//! Patterns for the names of series, such as `acme-*` and `{company}-{year}`.

use std::cmp::Reverse;
use std::fmt;

use super::series_name::{LEN_MAX, SeriesName, is_letter};
use super::text_field::{PartForm, TextField, Years, splits};

/// The maximum length of a pattern, including values as in `{shop:north|south}`, in bytes.
const PATTERN_LEN_MAX: usize = 1_024;
/// The maximum number of parts in a pattern.
const PARTS_MAX: usize = 8;

/// The name of the part that is written as four digits.
pub(super) const YEAR: &str = "year";
/// The name of the part that is written as `01` to `12`.
const MONTH: &str = "month";

/// A pattern for names of series. It matches one name, all names with a common prefix, such as
/// `acme-*`, or all names with certain parts, such as `{company}-{year}`.
///
/// | part | matches |
/// |---|---|
/// | `{year}` | four digits |
/// | `{month}` | `01` to `12` |
/// | `{shop:north\|south}`, `{period:####-##}` | one of the values; a `#` stands for any digit |
/// | `{company}` | one or more characters of a name, except `-` |
///
/// ```
/// use idmint_records::ledger::SeriesPattern;
///
/// let pattern = SeriesPattern::from_text("acme-*").expect("a pattern");
/// assert!(pattern.matches("acme-2026") && pattern.matches("acme-") && !pattern.matches("acme"));
/// let pattern = SeriesPattern::from_text("{company}-{year}").expect("a pattern");
/// assert!(pattern.matches("acme-2026") && !pattern.matches("acme-26"));
/// assert_eq!(SeriesPattern::from_text("*-2026"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesPattern {
    source: String,
    /// The fixed characters and parts, in order: `company`, `-`, `year` for `{company}-{year}`.
    fields: Vec<TextField>,
    /// The name of each part. A star has the name `*`.
    parts: Vec<String>,
}

impl SeriesPattern {
    /// A description of valid patterns, for error messages.
    pub const RULE: &'static str = "the name of a series, 1 to 64 of A-Za-z0-9._-, or a prefix and a star, such as \
         \"acme-*\", or a name with parts in braces, such as \"{company}-{year}-{month}\" or \"{shop:north|south}-{period:####-##}\"";

    /// Parses a pattern. Returns `None` if the text is not a valid pattern.
    pub fn from_text(text: &str) -> Option<SeriesPattern> {
        if text.len() > PATTERN_LEN_MAX {
            return None;
        }
        let mut pattern = SeriesPattern {
            source: text.to_owned(),
            fields: Vec::new(),
            parts: Vec::new(),
        };
        let mut rest = text;
        while !rest.is_empty() {
            let literal_len = rest.bytes().take_while(|byte| is_letter(*byte)).count();
            let (literal, others) = rest.split_at(literal_len);
            if !literal.is_empty() {
                pattern.fields.push(TextField::Literal(literal.to_owned()));
            }
            rest = match others.strip_prefix('{') {
                Some(part) => {
                    let (part, others) = part.split_once('}')?;
                    pattern.add_part(part)?;
                    others
                }
                None if others == "*" && pattern.parts.is_empty() => {
                    pattern.add("*".to_owned(), PartForm::Rest);
                    ""
                }
                None if others.is_empty() => "",
                None => return None,
            };
        }
        let is_valid = match pattern.only() {
            Some(name) => SeriesName::from_text(name).is_ok(),
            None => pattern.len_min() <= LEN_MAX,
        };
        is_valid.then_some(pattern)
    }

    /// Adds a part to the pattern, such as `year`, `company` or `shop:north|south` (a part with two
    /// possible values). Returns `None` if the part is not valid.
    fn add_part(&mut self, part: &str) -> Option<()> {
        let (name, form) = match part.split_once(':') {
            None if part == YEAR => (part, PartForm::Listed(vec!["####".to_owned()])),
            None if part == MONTH => {
                let months = (1..=12).map(|month| format!("{month:02}"));
                (part, PartForm::Listed(months.collect()))
            }
            None => (part, PartForm::Open),
            Some((YEAR | MONTH, _)) => return None,
            Some((name, values)) => {
                let values: Vec<_> = values.split('|').map(str::to_owned).collect();
                are_apart(&values).then_some((name, PartForm::Listed(values)))?
            }
        };
        let is_new = is_part_name(name) && !self.parts.iter().any(|other| other == name);
        (is_new && self.parts.len() < PARTS_MAX).then(|| self.add(name.to_owned(), form))
    }

    fn add(&mut self, name: String, form: PartForm) {
        let part = self.parts.len();
        self.parts.push(name);
        self.fields.push(TextField::Part { part, form });
    }

    /// Returns the length of the shortest name that can match.
    fn len_min(&self) -> usize {
        let len_min = |field: &TextField| match field {
            TextField::Literal(literal) => literal.len(),
            TextField::Part { form, .. } => match form {
                PartForm::Listed(values) => values.iter().map(String::len).min().unwrap_or(0),
                PartForm::Open => 1,
                PartForm::Rest | PartForm::LastTwo(_) => 0,
            },
            TextField::Number { .. } => 0,
        };
        self.fields.iter().map(len_min).sum()
    }

    /// Returns `true` if the pattern matches this name.
    pub fn matches(&self, name: &str) -> bool {
        !splits(&self.fields, name, 1).is_empty()
    }

    /// Returns the values of the parts in a name, such as `acme` and `2026`, or `None` if the
    /// pattern does not match the name.
    pub(super) fn split<'n>(&self, name: &'n str) -> Option<Vec<&'n str>> {
        let pieces = splits(&self.fields, name, 1).pop()?;
        let fields = self.fields.iter().zip(pieces);
        let parts = fields.filter(|(field, _)| matches!(field, TextField::Part { .. }));
        Some(parts.map(|(_, piece)| piece).collect())
    }

    /// Returns the fixed characters and the parts of the pattern, in order. If `years` is given,
    /// the part `year` matches only these years instead of any four digits.
    pub(super) fn fields_within(&self, years: Option<Years>) -> Vec<TextField> {
        let within = |field: &TextField| match (field, years) {
            (TextField::Part { part, .. }, Some(years)) if self.part(YEAR) == Some(*part) => {
                TextField::Part {
                    part: *part,
                    form: PartForm::Listed(years.texts().collect()),
                }
            }
            _ => field.clone(),
        };
        self.fields.iter().map(within).collect()
    }

    /// Returns the fields of the pattern, in order.
    pub(super) fn fields(&self) -> &[TextField] {
        &self.fields
    }

    /// Returns the names of the parts, such as `company` and `year`, and `*` for a star.
    pub(super) fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Returns the index of the part with this name.
    pub(super) fn part(&self, name: &str) -> Option<usize> {
        self.parts.iter().position(|part| part == name)
    }

    /// Returns `true` if the pattern ends with a star.
    pub(super) fn has_star(&self) -> bool {
        self.part("*").is_some()
    }

    /// Returns the characters with which all matching names begin.
    fn prefix(&self) -> &str {
        match self.fields.first() {
            Some(TextField::Literal(prefix)) => prefix,
            _ => "",
        }
    }

    /// Returns the last name that sorts before the pattern's fixed beginning, so that a listing
    /// after the name misses no match. For `acme-*`, it is `acme`, because no character in names
    /// sorts before `-`. Returns `None` if no such name exists or the pattern begins with a part.
    pub fn name_before(&self) -> Option<SeriesName> {
        let (last, rest) = self.prefix().as_bytes().split_last()?;
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
        match self.only() {
            Some(only) => name >= only,
            None => name > self.prefix() && !name.starts_with(self.prefix()),
        }
    }

    /// Returns a value that is greater for a more specific pattern. If several patterns match a
    /// name, the one with the greatest value applies. These criteria decide, in this order: a
    /// single name before a pattern, more fixed characters, no star, fewer parts, and fewer open
    /// parts such as `{company}`.
    pub(super) fn weight(&self) -> impl Ord + use<> {
        let is_open = |field: &&TextField| {
            matches!(
                field,
                TextField::Part {
                    form: PartForm::Open,
                    ..
                }
            )
        };
        let literal_len = |field: &TextField| match field {
            TextField::Literal(literal) => literal.len(),
            _ => 0,
        };
        (
            self.parts.is_empty(),
            self.fields.iter().map(literal_len).sum::<usize>(),
            !self.has_star(),
            Reverse(self.parts.len()),
            Reverse(self.fields.iter().filter(is_open).count()),
        )
    }

    /// Returns the single name that the pattern matches, or `None` if the pattern has parts.
    pub fn only(&self) -> Option<&str> {
        self.parts.is_empty().then_some(self.source.as_str())
    }
}

/// Returns `true` if a part may have this name.
pub(super) fn is_part_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins = name.starts_with(|letter: char| letter.is_ascii_lowercase());
    begins && name.len() <= 32 && name.bytes().all(is_letter) && !["n", "series"].contains(&name)
}

/// Returns `true` if the values of a part, as in `{shop:north|south}`, are valid, and no text
/// matches two of them. A `#` stands for any digit, so the values `a#` and `a1` both match `a1`.
fn are_apart(values: &[String]) -> bool {
    let is_value = |value: &String| {
        let is_letter = |byte: u8| is_letter(byte) || byte == b'#';
        (1..=LEN_MAX).contains(&value.len()) && value.bytes().all(is_letter)
    };
    let overlap = |one: &str, other: &str| {
        one.len() == other.len()
            && one.bytes().zip(other.bytes()).all(|pair| match pair {
                (b'#', letter) | (letter, b'#') => letter == b'#' || letter.is_ascii_digit(),
                (one, other) => one == other,
            })
    };
    let mut earlier = values.iter().enumerate();
    values.iter().all(is_value)
        && !earlier.any(|(at, value)| values[..at].iter().any(|other| overlap(value, other)))
}

impl fmt::Display for SeriesPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_name_or_the_beginning_of_names_or_has_parts() {
        for (pattern, matched, others) in [
            ("acme", &["acme"][..], &["acme-", "Acme", ""][..]),
            ("acme-*", &["acme-", "acme-2026"], &["acme", "xacme-1"]),
            ("*", &["a", "acme"], &["a/b"]),
            (
                "{company}-{year}-{month}",
                &["acme-2026-01", "a.b-0000-12"],
                &[
                    "acme-2026-00",
                    "acme-2026-13",
                    "a-b-2026-01",
                    "-2026-01",
                    "acme-26-01",
                ],
            ),
            (
                "{shop:north|south}{year}",
                &["north2026"],
                &["east2026", "north"],
            ),
            (
                "{period:####-##|total}",
                &["2026-27", "total"],
                &["2026-2", "2026"],
            ),
        ] {
            let read = SeriesPattern::from_text(pattern).expect("a pattern");
            assert_eq!(read.to_string(), pattern);
            assert!(matched.iter().all(|name| read.matches(name)), "{pattern}");
            assert!(!others.iter().any(|name| read.matches(name)), "{pattern}");
        }
    }

    #[test]
    fn other_texts_are_no_patterns() {
        let long = format!("{}*", "x".repeat(65));
        let many = "{a}{b}{c}{d}{e}{f}{g}{h}{i}";
        for text in [
            "",
            ".",
            "a*b",
            "**",
            "a b*",
            &long,
            many,
            "{",
            "{}",
            "}",
            "{n}",
            "{series}",
            "{A}",
            "{a}-{a}",
            "{a}*",
            "{year:####}",
            "{a:}",
            "{a:x|}",
            "{a:x|x}",
            "{a:1#|12}",
            "{a b}",
            "{a:x/y}",
        ] {
            assert_eq!(SeriesPattern::from_text(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_name_is_split_into_its_parts() {
        let pattern = SeriesPattern::from_text("{company}-{kind:x}{year}").expect("a pattern");
        let parts = pattern.split("acme-x2026");
        assert_eq!(parts, Some(vec!["acme", "x", "2026"]));
        assert_eq!(pattern.split("acme-y2026"), None);
    }

    #[test]
    fn the_more_specific_pattern_weighs_more() {
        let order = [
            "*",
            "{a}-{year}",
            "{a:x|y}-{year}",
            "acme-*",
            "acme-{year}",
            "acme-2*",
            "a",
        ];
        let patterns = order.map(|text| SeriesPattern::from_text(text).expect("a pattern"));
        assert!(patterns.is_sorted_by(|one, other| one.weight() < other.weight()));
    }

    #[test]
    fn a_list_of_matching_names_has_a_beginning_and_an_end() {
        let name = |text| SeriesName::from_text(text).expect("a name");
        let pattern = SeriesPattern::from_text("acme-{year}").expect("a pattern");
        assert_eq!(pattern.name_before(), Some(name("acme")));
        assert!(!pattern.ends_by(&name("acme-x")) && pattern.ends_by(&name("acme.")));
    }
}
