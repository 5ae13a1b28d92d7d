//! Templates such as `INV/{year}/{n:05}`, by which the numbers of a series are written as text.

use std::fmt;

use super::number_plan::NumberBounds;
use super::series_name;
use super::series_pattern::{SeriesPattern, YEAR, is_part_name};
use super::text_field::{PartForm, TextField, Years};

/// The maximum length of a template in bytes.
const LEN_MAX: usize = 128;
/// The maximum width in a template, such as 5 in `{n:05}`. A width is a minimum number of digits.
const WIDTH_MAX: u8 = 19;

/// A template for the text of a number, with placeholders for the number, and for the name of the
/// series or parts of it.
///
/// | placeholder | meaning |
/// |---|---|
/// | `{n}`, `{n:05}` | the number, and the number with at least five digits |
/// | `{series}` | the name of the series |
/// | `{company}` | the part `company` of the name |
/// | `{year:last2}` | the last two digits of the part `year` |
///
/// ```
/// use idmint_records::ledger::{NumberTemplate, TemplateError};
///
/// let template = NumberTemplate::from_text("INV/{year}/{n:05}")?;
/// assert_eq!(template.to_string(), "INV/{year}/{n:05}");
/// assert_eq!(NumberTemplate::from_text("INV"), Err(TemplateError::Places));
/// # Ok::<(), TemplateError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberTemplate(Vec<Piece>);

/// A fixed text or a placeholder in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Number { width: u8 },
    Series,
    Part(String),
    LastTwoOfYear,
}

/// The reason why a text is not a valid template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The text is too long or empty, begins or ends with a blank, or contains a character that is
    /// not printable.
    #[error(
        "must have 1 to {LEN_MAX} bytes of printable characters, and no space at the beginning or the end"
    )]
    Letters,
    /// The braces hold no placeholder, as in `{n:x}`, or a brace has no partner, as in `INV{n`.
    #[error(
        "must have only these placeholders in braces: {{n}}, {{n:01}} to {{n:0{WIDTH_MAX}}}, {{series}}, and parts of \
         the pattern such as {{year}} or {{year:last2}}"
    )]
    Braces,
    /// `{n}` is missing, a placeholder repeats, or `{series}` occurs with parts such as `{year}`.
    #[error(
        "must have {{n}} once, which may have a width such as {{n:05}}, and every other placeholder at most once; \
         {{series}} contains all parts, so use either {{series}} or parts"
    )]
    Places,
}

impl NumberTemplate {
    /// The maximum length of the text of a number, in bytes: the characters of the template, the
    /// name of the series, the digits and two check characters.
    pub const TEXT_LEN_MAX: usize = LEN_MAX + series_name::LEN_MAX + WIDTH_MAX as usize + 2;

    /// Returns the template that writes a number as plain digits.
    pub fn plain() -> NumberTemplate {
        NumberTemplate(vec![Piece::Number { width: 1 }])
    }

    /// Parses a template.
    ///
    /// # Errors
    /// Returns [`TemplateError`] if the text is not a valid template.
    pub fn from_text(text: &str) -> Result<NumberTemplate, TemplateError> {
        let is_text = (1..=LEN_MAX).contains(&text.len()) && text.chars().all(is_printable);
        if !is_text || text.starts_with(' ') || text.ends_with(' ') {
            return Err(TemplateError::Letters);
        }
        let (mut pieces, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            let (literal, others) = rest.split_at(rest.find(['{', '}']).unwrap_or(rest.len()));
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal.to_owned()));
            }
            rest = match others.strip_prefix('{') {
                None if others.is_empty() => "",
                None => return Err(TemplateError::Braces),
                Some(others) => {
                    let (placeholder, others) =
                        others.split_once('}').ok_or(TemplateError::Braces)?;
                    pieces.push(Piece::from_placeholder(placeholder)?);
                    others
                }
            };
        }
        let template = NumberTemplate(pieces);
        let count =
            |kind: fn(&Piece) -> bool| template.0.iter().filter(|piece| kind(piece)).count();
        let numbers = count(|piece| matches!(piece, Piece::Number { .. }));
        let series = count(|piece| *piece == Piece::Series);
        let mut parts: Vec<_> = template.parts().collect();
        let part_count = parts.len();
        parts.sort_unstable();
        parts.dedup();
        let is_sound =
            numbers == 1 && parts.len() == part_count && series <= usize::from(part_count == 0);
        is_sound.then_some(template).ok_or(TemplateError::Places)
    }

    /// Returns the names of the parts in the template.
    pub(super) fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Part(name) => Some(name.as_str()),
            Piece::LastTwoOfYear => Some(YEAR),
            Piece::Literal(_) | Piece::Number { .. } | Piece::Series => None,
        })
    }

    /// Returns the fields of the texts for series that match the pattern. The fields have the order
    /// of the template.
    ///
    /// # Errors
    /// Returns [`FieldError`] if the pattern lacks a part that the template uses, or if the
    /// template needs a range of years and `years` is `None`.
    pub(super) fn fields(
        &self,
        pattern: &SeriesPattern,
        years: Option<Years>,
        bounds: NumberBounds,
    ) -> Result<Vec<TextField>, FieldError> {
        let name = pattern.fields_within(years);
        let part = |name: &str| {
            let part = pattern.part(name);
            part.ok_or_else(|| FieldError::UnknownPart(name.to_owned()))
        };
        let mut fields = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(literal) => fields.push(TextField::Literal(literal.clone())),
                Piece::Number { width } => fields.push(TextField::Number {
                    width: *width,
                    start: bounds.start,
                    max: bounds.max,
                }),
                Piece::Series => fields.extend(name.iter().cloned()),
                Piece::Part(wanted) => {
                    let part = part(wanted)?;
                    let is_part = |field: &&TextField| matches!(field, TextField::Part { part: found, .. } if *found == part);
                    fields.extend(name.iter().find(is_part).cloned());
                }
                Piece::LastTwoOfYear => fields.push(TextField::Part {
                    part: part(YEAR)?,
                    form: PartForm::LastTwo(years.ok_or(FieldError::NoYears)?),
                }),
            }
        }
        Ok(fields)
    }

    /// Returns `true` if the template adds text to the number, as in `INV-42`. Without such text,
    /// the digits `42` could come from any program.
    pub(super) fn has_text(&self) -> bool {
        self.0.len() > 1
    }
}

/// The reason why a template does not fit the pattern of its series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FieldError {
    /// The pattern has no part of this name.
    UnknownPart(String),
    /// The template uses `{year:last2}`, but the rule has no range of years. Without one, `26`
    /// could mean 1926 or 2026.
    NoYears,
}

impl Piece {
    /// Parses the text between two braces.
    fn from_placeholder(text: &str) -> Result<Piece, TemplateError> {
        match text.split_once(':') {
            None if text == "n" => Ok(Piece::Number { width: 1 }),
            None if text == "series" => Ok(Piece::Series),
            None if is_part_name(text) => Ok(Piece::Part(text.to_owned())),
            Some(("n", width)) => {
                let is_digit = |letter: char| letter.is_ascii_digit();
                let is_width = |digits: &&str| digits.len() <= 2 && digits.chars().all(is_digit);
                let digits = width.strip_prefix('0').filter(is_width);
                let width = digits.and_then(|digits| digits.parse().ok());
                let width = width.filter(|width| (1..=WIDTH_MAX).contains(width));
                let width = width.ok_or(TemplateError::Braces)?;
                Ok(Piece::Number { width })
            }
            Some((YEAR, "last2")) => Ok(Piece::LastTwoOfYear),
            _ => Err(TemplateError::Braces),
        }
    }
}

/// Returns `true` for visible characters and the space, and `false` for control, format and
/// private-use characters.
fn is_printable(letter: char) -> bool {
    // `escape_debug` leaves printable characters as they are, except quotes, backslashes and, at
    // the start of a text, combining marks such as accents. So an `x` precedes the character.
    letter == '"' || letter == '\'' || letter == '\\' || {
        let beside = format!("x{letter}");
        beside.escape_debug().count() == 2
    }
}

impl fmt::Display for NumberTemplate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Literal(literal) => out.write_str(literal),
            Piece::Number { width: 1 } => out.write_str("{n}"),
            Piece::Number { width } => write!(out, "{{n:0{width}}}"),
            Piece::Series => out.write_str("{series}"),
            Piece::Part(name) => write!(out, "{{{name}}}"),
            Piece::LastTwoOfYear => out.write_str("{year:last2}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_written_as_it_was_read() {
        for text in [
            "{n}",
            "INV-{series}-{n:05}",
            "INV/{year}/{month}/{n:04}",
            "{year:last2}{shop}{n:019}",
            "AVO № {n}",
            "\"{n}\\'",
            "चालान/{n}",
            "{series}{n}",
        ] {
            let template = NumberTemplate::from_text(text).expect(text);
            assert_eq!(template.to_string(), text);
        }
        let template = NumberTemplate::from_text("{n:01}").expect("a width of one digit");
        assert_eq!(template, NumberTemplate::plain());
        assert!(!template.has_text());
    }

    #[test]
    fn what_is_no_template_is_refused_with_what_it_must_be() {
        for (text, error) in [
            ("", TemplateError::Letters),
            (" {n}", TemplateError::Letters),
            ("{n} ", TemplateError::Letters),
            ("A\t{n}", TemplateError::Letters),
            ("A\u{a0}{n}", TemplateError::Letters),
            ("A\u{202e}{n}", TemplateError::Letters),
            ("A\u{200b}{n}", TemplateError::Letters),
            ("A\u{ad}{n}", TemplateError::Letters),
            ("A\u{e000}{n}", TemplateError::Letters),
            (&"x".repeat(129), TemplateError::Letters),
            ("INV", TemplateError::Places),
            ("{n}{n}", TemplateError::Places),
            ("{n}-{n:05}", TemplateError::Places),
            ("{series}-{n}-{series}", TemplateError::Places),
            ("{series}-{year}-{n}", TemplateError::Places),
            ("{year}-{year:last2}-{n}", TemplateError::Places),
            ("{n:5}", TemplateError::Braces),
            ("{n:020}", TemplateError::Braces),
            ("{n:00}", TemplateError::Braces),
            ("{n:0+5}", TemplateError::Braces),
            ("{n", TemplateError::Braces),
            ("{n:05", TemplateError::Braces),
            ("{X}-{n}", TemplateError::Braces),
            ("{month:last2}-{n}", TemplateError::Braces),
            ("}-{n}", TemplateError::Braces),
        ] {
            assert_eq!(NumberTemplate::from_text(text), Err(error), "{text:?}");
        }
    }
}
