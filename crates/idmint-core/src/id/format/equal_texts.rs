//! Finds pairs of formats that could mint ids with exactly the same text, although the field values
//! of the two ids differ.

use std::ops::RangeInclusive;

use super::format::{Format, Rule};
use crate::id::layout::{Field, FieldKind};

impl Format {
    /// Returns `true` if both formats could mint the same text in the same tick.
    ///
    /// Both formats must be sequenced, mint ids without types, and begin their ids with the time.
    /// They must have the same tick, the same epoch, the same amount that one tick adds to an id,
    /// and the same canonical encoding with texts of a fixed length. In addition, the ranges of ids
    /// that they could mint in tick 0, which depend on the worker numbers, must overlap. Formats
    /// with equal fields, such as a copy that was made with `like`, do not count, because both read
    /// the text as the same field values.
    ///
    /// ```
    /// use idmint_core::id::Format;
    ///
    /// let format = |name| Format::built_in(name).expect("a built-in format");
    /// assert!(format("payment").has_texts_of(&format("payment-wide")));
    /// assert!(!format("payment").has_texts_of(&format("payment")));
    /// ```
    pub fn has_texts_of(&self, other: &Format) -> bool {
        let is_counted = |format: &Format| {
            format.is_minted() && format.rule == Rule::Sequenced && !format.has_types()
        };
        let time = |format: &Format| {
            let stride = format.layout().field_of(FieldKind::Time)?.stride;
            Some((format.tick, format.epoch, stride)).filter(|_| format.leads_with_time())
        };
        let (own, others) = (self.numbers_below_time(), other.numbers_below_time());
        is_counted(self)
            && is_counted(other)
            && self.canonical().fixed_len().is_some()
            && self.canonical().reads_like(other.canonical())
            && time(self).is_some()
            && time(self) == time(other)
            && self.identity()["fields"] != other.identity()["fields"]
            && own.start() <= others.end()
            && others.start() <= own.end()
    }

    /// Returns the worker numbers that may be used for minting, or `None` if ids have no worker
    /// number.
    pub fn worker_numbers(&self) -> Option<RangeInclusive<u128>> {
        let greatest = self.layout().field_of(FieldKind::Worker)?.max;
        let last = self.last_worker.map_or(greatest, u128::from);
        Some(self.first_worker.into()..=last.min(greatest))
    }

    /// Returns the smallest and the greatest number that all fields except the time can add to an
    /// id that could be minted.
    fn numbers_below_time(&self) -> RangeInclusive<u128> {
        let least = |field: &Field| match field.kind {
            FieldKind::Worker => self.first_worker.into(),
            _ => field.constant.unwrap_or(0),
        };
        let fields = self.layout().fields().iter();
        fields.map(|field| least(field) * field.stride).sum()..=self.greatest_without_time()
    }
}

#[cfg(test)]
mod tests {
    use crate::id::{Format, FormatDefinition, PRESETS, preset};

    fn pairs(formats: &[Format]) -> Vec<[&str; 2]> {
        let mut pairs = Vec::new();
        for (at, one) in formats.iter().enumerate() {
            for other in &formats[at + 1..] {
                assert_eq!(one.has_texts_of(other), other.has_texts_of(one));
                if one.has_texts_of(other) {
                    pairs.push([one.name.as_str(), other.name.as_str()]);
                }
            }
        }
        pairs
    }

    fn payment(name: &str, more: &str) -> Format {
        let preset = PRESETS.iter().find(|preset| preset.name == name);
        let text = format!("{more}\n{}", preset.expect("a built-in format").toml);
        let definition = FormatDefinition::from_toml(name, &text).expect("TOML");
        definition.compile(name).expect("is sound")
    }

    #[test]
    fn only_the_two_payments_of_the_built_in_formats_write_equal_texts() {
        let formats: Vec<Format> = PRESETS
            .iter()
            .map(|built_in| preset(built_in.name))
            .collect();
        assert_eq!(pairs(&formats), [["payment", "payment-wide"]]);
    }

    /// Each worker of `payment` has 1 296 numbers, so the workers 0 to 9 end at 12 959. Each worker of
    /// `payment-wide` has 1 024 numbers. Worker 12 begins at 12 288, which is below that end, and
    /// worker 13 at 13 312, which is above.
    #[test]
    fn two_formats_write_equal_texts_if_the_numbers_of_their_workers_overlap() {
        let low = payment("payment", "worker_range = [0, 9]");
        for (range, is_equal) in [("[12, 44]", true), ("[13, 44]", false), ("[0, 0]", true)] {
            let high = payment("payment-wide", &format!("worker_range = {range}"));
            assert_eq!(low.has_texts_of(&high), is_equal, "{range}");
        }
        assert_eq!(low.worker_numbers(), Some(0..=9));
        let high = payment("payment-wide", "first_worker = 13");
        assert!(!low.has_texts_of(&high));
        assert_eq!(high.worker_numbers(), Some(13..=44));
        let decoded = payment("payment-wide", "mint = false");
        assert!(!low.has_texts_of(&decoded), "it is not minted");
    }
}
