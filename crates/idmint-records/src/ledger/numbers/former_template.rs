//! A template with which an earlier configuration wrote numbers as text.

use std::fmt;

use super::number_check::NumberCheck;
use super::number_form::NumberForm;
use super::number_plan::NumberBounds;
use super::number_template::NumberTemplate;
use super::series_name::SeriesName;
use super::series_pattern::SeriesPattern;
use super::text_field::Years;
use super::text_form::TextForm;

/// A template for the texts of numbers, with all settings on which these texts depend. A store
/// keeps this value as one line of text.
///
/// ```
/// use idmint_records::ledger::FormerTemplate;
///
/// let line = "{company}-{year}\tINV/{year}/{company}/{n:05}\tluhn\t2000-2099\t1-99999";
/// let template = FormerTemplate::from_line(line).expect("a template");
/// assert_eq!(template.to_string(), line);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerTemplate {
    /// The pattern for the names of the series.
    pub pattern: SeriesPattern,
    /// The template for the texts of their numbers.
    pub template: NumberTemplate,
    /// The method for check characters, or `None` for texts without them.
    pub check: Option<NumberCheck>,
    /// The years that the part `year` could have, such as 2000 to 2099, or `None` for all years.
    pub years: Option<Years>,
    /// The first and the last number that a series could give.
    pub bounds: NumberBounds,
}

impl FormerTemplate {
    /// Parses the line that [`Display`](fmt::Display) writes: five columns separated by tabs, where
    /// `-` means no check characters or any year. Returns `None` for any other text.
    pub fn from_line(line: &str) -> Option<FormerTemplate> {
        let columns: Vec<_> = line.split('\t').collect();
        let [pattern, template, check, years, bounds] = *columns.as_slice() else {
            return None;
        };
        let range = |text: &str| {
            let (first, last) = text.split_once('-')?;
            Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?))
        };
        let years = match years {
            "-" => None,
            years => {
                let (first, last) = range(years)?;
                Some(Years::new(first.try_into().ok()?, last.try_into().ok()?)?)
            }
        };
        let check = match check {
            "-" => None,
            check => Some(NumberCheck::named(check)?),
        };
        let (start, max) = range(bounds)?;
        let former = FormerTemplate {
            pattern: SeriesPattern::from_text(pattern)?,
            template: NumberTemplate::from_text(template).ok()?,
            check,
            years,
            bounds: NumberBounds { start, max },
        };
        former.form().map(|_| former)
    }

    /// Writes a number of a series as text. Returns `None` if the pattern does not match the
    /// series.
    pub fn text(&self, series: &SeriesName, number: u64) -> Option<String> {
        Some(self.form_of(series)?.text(number))
    }

    /// Returns the form in which the template writes the numbers of a series as text, or `None` if
    /// the pattern does not match the series.
    pub fn form_of(&self, series: &SeriesName) -> Option<NumberForm> {
        self.form()?.of(series.as_str())
    }

    /// Returns the texts that the template can write for all series whose names match the pattern.
    /// Returns `None` if the pattern lacks a part, such as `year`, that the template has, or if the
    /// template has `{year:last2}` without a range of years.
    pub(super) fn form(&self) -> Option<TextForm> {
        TextForm::new(
            &self.pattern,
            &self.template,
            self.check,
            self.years,
            self.bounds,
        )
        .ok()
    }
}

impl fmt::Display for FormerTemplate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FormerTemplate {
            pattern,
            template,
            check,
            years,
            bounds,
        } = self;
        let check = check.map_or("-", NumberCheck::name);
        write!(out, "{pattern}\t{template}\t{check}\t")?;
        match years {
            None => out.write_str("-")?,
            Some(years) => write!(out, "{}-{}", years.first(), years.last())?,
        }
        write!(out, "\t{}-{}", bounds.start, bounds.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_not_written_so_is_no_template() {
        for line in [
            "",
            "a-*\tA-{series}-{n}\t-\t-",
            "a-*\tA-{series}-{n}\t-\t-\t1-9\t",
            "a-*\tA-{series}-{n}\tcrc\t-\t1-9",
            "a-*\tA-{year}-{n}\t-\t-\t1-9",
            "{year}\tA-{year:last2}-{n}\t-\t-\t1-9",
            "{year}\tA-{year}-{n}\t-\t2000-2100\t1-9",
        ] {
            assert_eq!(FormerTemplate::from_line(line), None, "{line:?}");
        }
    }
}
