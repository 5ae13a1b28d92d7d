//! Templates such as `INV-{series}-{n:05}`. They are used to write the numbers of a series as text,
//! and to read them.

use super::series_name::SeriesName;

/// The maximum length of a template in bytes. The constant `WIDTH_MAX` next to it is the greatest
/// width (minimum number of digits) that a template can ask for.
const LEN_MAX: usize = 128;
const WIDTH_MAX: usize = 19;

/// A template for the text of a number, with a placeholder for the number and optionally one for
/// the name of the series. `{n:05}` pads the number with zeros to at least five digits.
///
/// ```
/// use idmint_records::ledger::{NumberTemplate, SeriesName};
///
/// let template = NumberTemplate::from_text("INV-{series}-{n:05}")?;
/// let series = SeriesName::from_text("acme-2026").expect("a name");
/// assert_eq!(template.text(&series, 42), "INV-acme-2026-00042");
/// assert_eq!(template.read("INV-acme-2026-00042"), Some((Some(series), 42)));
/// assert_eq!(template.read("INV-acme-2026-042"), None);
/// # Ok::<(), idmint_records::ledger::TemplateError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberTemplate {
    before: Side,
    /// The minimum number of digits. Shorter numbers are padded with zeros on the left.
    width: usize,
    after: Side,
}

/// The text on one side of the number in a template. It is `start` alone, or `start` and `end` with
/// the name of the series in between.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Side {
    start: String,
    has_series: bool,
    end: String,
}

/// The reason why a text is not a valid template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The text is too long or empty, or contains a character that is not visible ASCII.
    #[error("must be 1 to {LEN_MAX} visible characters of ASCII")]
    Letters,
    /// A pair of braces is neither the placeholder for the number nor the one for the series, or a
    /// brace has no counterpart.
    #[error(
        "may have {{n}}, {{n:01}} to {{n:0{WIDTH_MAX}}}, and {{series}} in braces, and no other braces"
    )]
    Braces,
    /// The placeholder for the number is missing or repeated, or the placeholder for the series is
    /// repeated.
    #[error("must have {{n}} once, or a width such as {{n:05}}, and {{series}} at most once")]
    Places,
    /// Texts of this template would not show where the name of the series ends and the number
    /// begins.
    #[error(
        "must have something between {{series}} and {{n}}, and no digit beside {{n}} there, such as `{{series}}-{{n}}`"
    )]
    Beside,
}

impl NumberTemplate {
    /// Returns the template that writes a number as plain digits.
    pub fn plain() -> NumberTemplate {
        NumberTemplate {
            before: Side::default(),
            width: 1,
            after: Side::default(),
        }
    }

    /// Parses a template.
    ///
    /// # Errors
    /// Returns [`TemplateError`] if the text is not a valid template.
    pub fn from_text(text: &str) -> Result<NumberTemplate, TemplateError> {
        if !(1..=LEN_MAX).contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err(TemplateError::Letters);
        }
        let (before, number, after) = split_at_number(text)?;
        let template = NumberTemplate {
            before: Side::read(before)?,
            width: width_of(number)?,
            after: Side::read(after)?,
        };
        if template.before.has_series && template.after.has_series {
            return Err(TemplateError::Places);
        }
        let is_apart = |side: &Side, beside: Option<char>| {
            !side.has_series || beside.is_some_and(|it| !is_digit(it))
        };
        let is_told = is_apart(&template.before, template.before.end.chars().next_back())
            && is_apart(&template.after, template.after.start.chars().next());
        if is_told {
            Ok(template)
        } else {
            Err(TemplateError::Beside)
        }
    }

    /// Writes a number of a series as text.
    pub fn text(&self, series: &SeriesName, number: u64) -> String {
        let (before, after) = (self.before.text(series), self.after.text(series));
        format!("{before}{number:0width$}{after}", width = self.width)
    }

    /// Reads the series and the number from a text. Returns `None` if this template cannot have
    /// written the text.
    ///
    /// The series is `None` if the template has no placeholder for it.
    pub fn read(&self, text: &str) -> Option<(Option<SeriesName>, u64)> {
        let NumberTemplate {
            before,
            width,
            after,
        } = self;
        let (series, digits) = if before.has_series {
            let text = text.strip_suffix(&*after.start)?;
            let (rest, digits) = text.split_at(text.trim_end_matches(is_digit).len());
            (Some(before.series_of(rest)?), digits)
        } else {
            let text = text.strip_prefix(&*before.start)?;
            let (digits, rest) =
                text.split_at(text.len() - text.trim_start_matches(is_digit).len());
            match after.has_series {
                true => (Some(after.series_of(rest)?), digits),
                // The number is everything before the text that follows it in the template. That
                // text may begin with digits, so the number cannot be found by its digits.
                false => (None, text.strip_suffix(&*after.start)?),
            }
        };
        let is_canonical =
            digits.len() == *width || digits.len() > *width && !digits.starts_with('0');
        let number = digits
            .parse()
            .ok()
            .filter(|_| is_canonical && digits.chars().all(is_digit))?;
        let series = series.map(SeriesName::from_text).transpose().ok()?;
        Some((series, number))
    }

    /// `true` if the template contains the name of the series.
    pub(super) fn has_series(&self) -> bool {
        self.before.has_series || self.after.has_series
    }

    /// Returns `true` if the template adds text to the number. Without added text, any program may
    /// have written the number.
    pub(super) fn has_text(&self) -> bool {
        self.before != Side::default() || self.after != Side::default()
    }
}

impl Side {
    fn read(text: &str) -> Result<Side, TemplateError> {
        let (start, end) = match text.split_once("{series}") {
            None => (text, None),
            Some((start, end)) => (start, Some(end)),
        };
        let (has_series, end) = (end.is_some(), end.unwrap_or_default());
        if end.contains("{series}") {
            return Err(TemplateError::Places);
        }
        if [start, end].iter().any(|text| text.contains(['{', '}'])) {
            return Err(TemplateError::Braces);
        }
        Ok(Side {
            start: start.to_owned(),
            has_series,
            end: end.to_owned(),
        })
    }

    fn text(&self, series: &SeriesName) -> String {
        let series = if self.has_series { series.as_str() } else { "" };
        [&*self.start, series, &*self.end].concat()
    }

    fn series_of<'a>(&self, text: &'a str) -> Option<&'a str> {
        text.strip_prefix(&*self.start)?.strip_suffix(&*self.end)
    }
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

/// Splits a template at the placeholder for the number. Returns the text before it, the content of
/// its braces, and the text after it.
fn split_at_number(text: &str) -> Result<(&str, &str, &str), TemplateError> {
    let is_number = |rest: &str| rest.starts_with("{n}") || rest.starts_with("{n:");
    let mut places = text
        .char_indices()
        .map(|(at, _)| at)
        .filter(|at| is_number(&text[*at..]));
    let (Some(at), None) = (places.next(), places.next()) else {
        return Err(TemplateError::Places);
    };
    let (number, after) = text[at + 1..]
        .split_once('}')
        .ok_or(TemplateError::Braces)?;
    Ok((&text[..at], number, after))
}

/// Returns the minimum number of digits that a placeholder such as `n` (1 digit) or `n:05` (5
/// digits) asks for.
fn width_of(number: &str) -> Result<usize, TemplateError> {
    let Some(width) = number.strip_prefix("n:") else {
        return Ok(1);
    };
    let width = width
        .strip_prefix('0')
        .filter(|width| (1..=2).contains(&width.len()) && width.chars().all(is_digit));
    let width = width
        .and_then(|width| width.parse().ok())
        .filter(|width| (1..=WIDTH_MAX).contains(width));
    width.ok_or(TemplateError::Braces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> SeriesName {
        SeriesName::from_text(text).expect("a name")
    }

    #[test]
    fn every_number_is_read_as_it_was_written() {
        let mut read = 0;
        for template in [
            "{n}",
            "INV-{series}-{n:05}",
            "{n:03}/{series}",
            "{series}.{n}2026",
            "2026{n:04}99",
            "#{n:019}",
        ] {
            let template = NumberTemplate::from_text(template).expect(template);
            for series in ["acme-2026", "7", "a-1-2", "-", "2026"].map(name) {
                for number in [0, 1, 9, 10, 42, 99_999, 100_000, 9_223_372_036_854_775_807] {
                    let text = template.text(&series, number);
                    let has_series = template.before.has_series || template.after.has_series;
                    let expected = (has_series.then(|| series.clone()), number);
                    assert_eq!(template.read(&text), Some(expected), "{text}");
                    read += 1;
                }
            }
        }
        assert_eq!(read, 6 * 5 * 8);
    }

    #[test]
    fn what_was_not_written_so_is_not_read() {
        let template = NumberTemplate::from_text("INV-{series}-{n:05}").expect("sound");
        for text in [
            "",
            "INV-acme-042",
            "INV-acme-000042",
            "INV-a b-00042",
            "INV--00042",
            "inv-a-00042",
            "INV-a-00042x",
        ] {
            assert_eq!(template.read(text), None, "{text}");
        }
        let template = NumberTemplate::from_text("2026{n:04}").expect("sound");
        for text in [
            "202642",
            "2026",
            "2026004x",
            "202600042",
            "202718446744073709551616",
        ] {
            assert_eq!(template.read(text), None, "{text}");
        }
        assert_eq!(NumberTemplate::plain().read("007"), None);
        assert!(!NumberTemplate::plain().has_text() && template.has_text());
    }

    #[test]
    fn what_is_no_template_is_refused_with_what_it_must_be() {
        for (text, error) in [
            ("", TemplateError::Letters),
            ("INV {n}", TemplateError::Letters),
            (&"x".repeat(129), TemplateError::Letters),
            ("INV", TemplateError::Places),
            ("{n}{n}", TemplateError::Places),
            ("{n}-{n:05}", TemplateError::Places),
            ("{series}-{n}-{series}", TemplateError::Places),
            ("{series}-{series}-{n}", TemplateError::Places),
            ("{n:5}", TemplateError::Braces),
            ("{n:020}", TemplateError::Braces),
            ("{n:00}", TemplateError::Braces),
            ("{n", TemplateError::Places),
            ("{n:05", TemplateError::Braces),
            ("{x}-{n}", TemplateError::Braces),
            ("}-{n}", TemplateError::Braces),
            ("{series}{n}", TemplateError::Beside),
            ("{series}-2026{n}", TemplateError::Beside),
            ("{n}{series}", TemplateError::Beside),
            ("{n}1-{series}", TemplateError::Beside),
        ] {
            assert_eq!(NumberTemplate::from_text(text), Err(error), "{text}");
        }
    }
}
