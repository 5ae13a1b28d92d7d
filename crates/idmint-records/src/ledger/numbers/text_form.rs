//! The texts that a template, such as `INV/{year}/{n:05}`, can write for the series of a pattern.

use super::number_check::NumberCheck;
use super::number_form::NumberForm;
use super::number_plan::NumberBounds;
use super::number_template::{FieldError, NumberTemplate};
use super::series_name::SeriesName;
use super::series_pattern::SeriesPattern;
use super::text_conflict::TextConflict;
use super::text_field::{TextField, Years, splits};

/// The maximum number of readings that are tried for one text. At most one reading is right,
/// because the series of all others belong to more specific rules.
const READINGS_MAX: usize = 64;

/// The texts of one template for all series of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextForm {
    pub(super) pattern: SeriesPattern,
    /// The fields of the names of series. If years are configured, the part `year` can have only
    /// these years.
    pub(super) name: Vec<TextField>,
    /// The fields of the texts, without the check characters.
    pub(super) fields: Vec<TextField>,
    pub(super) check: Option<NumberCheck>,
    /// `true` if the template adds text to the number.
    pub(super) has_text: bool,
}

impl TextForm {
    /// Creates the set of texts that a template can write for all series that match a pattern.
    ///
    /// # Errors
    /// Returns [`FieldError`] if the pattern has no part for a placeholder of the template, or if
    /// the template has `{year:last2}`, which needs a range of years, and `years` is `None`.
    pub(super) fn new(
        pattern: &SeriesPattern,
        template: &NumberTemplate,
        check: Option<NumberCheck>,
        years: Option<Years>,
        bounds: NumberBounds,
    ) -> Result<TextForm, FieldError> {
        Ok(TextForm {
            name: pattern.fields_within(years),
            fields: template.fields(pattern, years, bounds)?,
            has_text: template.has_text(),
            pattern: pattern.clone(),
            check,
        })
    }

    /// Returns the texts that a single series writes in this form.
    pub(super) fn of_series(
        series: &SeriesName,
        form: &NumberForm,
        bounds: NumberBounds,
    ) -> TextForm {
        let pattern = SeriesPattern::from_text(series.as_str());
        let pattern = pattern.expect("the name of a series is a pattern without parts");
        TextForm {
            name: pattern.fields().to_vec(),
            fields: vec![
                TextField::Literal(form.before.clone()),
                TextField::Number {
                    width: form.width,
                    start: bounds.start,
                    max: bounds.max,
                },
                TextField::Literal(form.after.clone()),
            ],
            has_text: !form.is_plain(),
            check: form.check,
            pattern,
        }
    }

    /// Returns the form in which the numbers of a series are written as texts, or `None` if the
    /// pattern does not match the series.
    pub(super) fn of(&self, series: &str) -> Option<NumberForm> {
        let parts = self.pattern.split(series)?;
        let mut form = NumberForm {
            check: self.check,
            ..NumberForm::default()
        };
        let mut side = &mut form.before;
        for field in &self.fields {
            match field {
                TextField::Literal(literal) => side.push_str(literal),
                TextField::Part { part, form } => {
                    side.push_str(form.written(parts.get(*part).copied().unwrap_or_default()));
                }
                TextField::Number { width, .. } => {
                    form.width = *width;
                    side = &mut form.after;
                }
            }
        }
        Some(form)
    }

    /// Returns the possible readings of a text, each a series and a number. Returns none if the
    /// check characters are wrong. Tries at most [`READINGS_MAX`] ways to split the text. The
    /// series is `None` if the text does not contain all parts of its name.
    pub(super) fn read(&self, text: &str) -> Vec<(Option<SeriesName>, u64)> {
        let width = self.check.map_or(0, NumberCheck::width);
        let check_at = text.len().checked_sub(width);
        let Some((body, check)) = check_at.and_then(|at| text.split_at_checked(at)) else {
            return Vec::new();
        };
        if self.check.is_some_and(|method| method.of(body) != check) {
            return Vec::new();
        }
        let readings = splits(&self.fields, body, READINGS_MAX).into_iter();
        readings
            .filter_map(|pieces| self.reading(&pieces))
            .collect()
    }

    /// Returns the series and number of a text whose fields have these values, or `None` if
    /// either is invalid. The series is `None` if the text lacks a variable part of its name.
    fn reading(&self, pieces: &[&str]) -> Option<(Option<SeriesName>, u64)> {
        let mut parts = vec![None; self.pattern.parts().len()];
        let mut number = None;
        for (field, piece) in self.fields.iter().zip(pieces) {
            match field {
                TextField::Literal(_) => {}
                TextField::Part { part, form } => parts[*part] = Some(form.value(piece)),
                TextField::Number { .. } => number = piece.parse().ok(),
            }
        }
        let series = self.series_of(&parts);
        (series.is_some() || !self.has_all_parts()).then_some((series, number?))
    }

    /// Returns the series whose name has these parts. Returns `None` if a part with several
    /// possible values is missing from `parts`, or if the result is not a valid name.
    fn series_of(&self, parts: &[Option<String>]) -> Option<SeriesName> {
        let mut name = String::new();
        for field in &self.name {
            match field {
                TextField::Literal(literal) => name.push_str(literal),
                TextField::Part { part, form } => {
                    name.push_str(parts[*part].as_deref().or(form.only())?);
                }
                TextField::Number { .. } => {}
            }
        }
        SeriesName::from_text(&name).ok()
    }

    /// `true` if the texts contain every part of a series name that can have several values.
    pub(super) fn has_all_parts(&self) -> bool {
        self.missing_part().is_none()
    }

    /// Returns the index of the first name part that can vary but is missing from the texts.
    pub(super) fn missing_part(&self) -> Option<usize> {
        self.name.iter().find_map(|field| match field {
            TextField::Part { part, form } if form.only().is_none() => {
                (!self.has_part(*part)).then_some(*part)
            }
            _ => None,
        })
    }

    /// Returns `true` if the texts contain this part of the names.
    pub(super) fn has_part(&self, part: usize) -> bool {
        let is_part = |field: &TextField| matches!(field, TextField::Part { part: found, .. } if *found == part);
        self.fields.iter().any(is_part)
    }

    /// Returns an example of two series that write `number` as the same text. Their names differ
    /// only in the part with the index `part`, which the texts do not contain.
    pub(super) fn without_part(&self, part: usize, number: u64) -> Option<TextConflict> {
        let series = |place: usize| {
            let fields = self.name.iter().filter_map(|field| match field {
                TextField::Part { part, form } => Some((part, form)),
                _ => None,
            });
            let values = fields.map(|(other, form)| {
                let place = if *other == part { place } else { 0 };
                Some(form.example(place))
            });
            self.series_of(&values.collect::<Vec<_>>())
        };
        let series = [series(0)?, series(1)?];
        Some(TextConflict {
            text: self.of(series[0].as_str())?.text(number),
            readings: series.map(|series| (series.to_string(), number)),
        })
    }
}
