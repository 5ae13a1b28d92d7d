//! Rules for series of numbers: their bounds, whether gaps are possible, and how numbers are
//! written.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::number_check::NumberCheck;
use super::number_plan::NumberBounds;
use super::number_template::NumberTemplate;
use super::series_name::{SeriesName, SeriesPattern};

/// The guarantee about gaps in the numbers of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NumberKind {
    /// The series has no gaps. A number is written to disk, together with the idempotency key that
    /// gets it, before the response is sent.
    #[default]
    Gapless,
    /// The series has few gaps. Numbers are reserved in advance and given from memory. If a process
    /// ends, the unused numbers of its reservation become a gap.
    Blocks {
        /// The number of numbers in a reservation. This is also the maximum size of a gap, unless a
        /// single request asks for more numbers.
        reserve: NonZeroU32,
    },
}

/// The kind (`gapless` or `blocks`) for each pattern of series names. A store keeps the kinds that
/// were configured at the last start, because the kind of a series cannot change after its first
/// number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NumberKinds(pub BTreeMap<String, String>);

impl NumberKinds {
    /// Returns the kind for the most specific pattern that matches the series, or `gapless` if no
    /// pattern matches.
    pub fn of(&self, series: &SeriesName) -> &str {
        let matching = self.0.iter().filter_map(|(pattern, kind)| {
            let pattern = SeriesPattern::from_text(pattern)?;
            pattern
                .matches(series.as_str())
                .then(|| (pattern.weight(), kind))
        });
        matching.max().map_or(GAPLESS, |(_, kind)| kind)
    }
}

const GAPLESS: &str = "gapless";
const BLOCKS: &str = "blocks";

/// The settings for all series that match one pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRule {
    /// The name of the rule, which appears in error messages.
    pub name: String,
    /// The pattern for the names of the series to which the rule applies.
    pub pattern: SeriesPattern,
    /// The guarantee about gaps in the numbers.
    pub kind: NumberKind,
    /// The template from which the text of a number is written.
    pub template: NumberTemplate,
    /// The method for check characters at the end of the text, or `None` for a text without them.
    pub check: Option<NumberCheck>,
    /// The first and the last number that a series can give.
    pub bounds: NumberBounds,
}

/// The rules for all series.
///
/// If several rules match a series, the rule with the most specific pattern applies. If no rule
/// matches, the series begins at 1, and its numbers are written as plain digits.
///
/// ```
/// use idmint_records::ledger::{NumberBounds, NumberCheck, NumberKind, NumberRule, NumberRules, NumberTemplate, SeriesName, SeriesPattern};
///
/// let rules = NumberRules::new(vec![NumberRule {
///     name: "invoice".to_owned(),
///     pattern: SeriesPattern::from_text("acme-*").expect("a pattern"),
///     kind: NumberKind::Gapless,
///     template: NumberTemplate::from_text("INV-{series}-{n:05}").expect("a template"),
///     check: Some(NumberCheck::Luhn),
///     bounds: NumberBounds::default(),
/// }])?;
/// let series = SeriesName::from_text("acme-2026").expect("a name");
/// assert_eq!(rules.text(&series, 42), "INV-acme-2026-000426");
/// let readings = rules.read("INV-acme-2026-000426");
/// assert_eq!((readings[0].series.as_ref(), readings[0].number), (Some(&series), 42));
/// assert!(rules.read("INV-acme-2026-000427").is_empty());
/// # Ok::<(), idmint_records::ledger::NumberRulesError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NumberRules(Vec<NumberRule>);

/// The error for two rules that have the same pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is also the pattern of numbers.{other}, but a series may have only one rule")]
pub struct NumberRulesError {
    /// The name of the second of the two rules.
    pub rule: String,
    other: String,
}

/// The number that a text stands for according to one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberReading {
    /// The name of the rule that writes numbers in this form.
    pub rule: String,
    /// The series. `None` if the rule applies to several series and the text does not say which.
    pub series: Option<SeriesName>,
    /// The number that the text stands for.
    pub number: u64,
    /// The check characters at the end of the text, if the rule has any. They are correct.
    pub check: Option<String>,
}

impl NumberRules {
    /// Creates the rules, and checks that no two of them conflict.
    ///
    /// # Errors
    /// Returns [`NumberRulesError`] if two rules have the same pattern.
    pub fn new(rules: Vec<NumberRule>) -> Result<NumberRules, NumberRulesError> {
        for (at, rule) in rules.iter().enumerate() {
            if let Some(other) = rules[..at]
                .iter()
                .find(|other| other.pattern == rule.pattern)
            {
                return Err(NumberRulesError {
                    rule: rule.name.clone(),
                    other: other.name.clone(),
                });
            }
        }
        Ok(NumberRules(rules))
    }

    /// Returns the rule for a series, or `None` if no rule matches it.
    pub fn of(&self, series: &str) -> Option<&NumberRule> {
        let matching = self.0.iter().filter(|rule| rule.pattern.matches(series));
        matching.max_by_key(|rule| rule.pattern.weight())
    }

    /// Returns the rules for series without gaps under which different series write the same texts.
    /// The pattern of such a rule matches several series, and its template adds text, but not the
    /// name of the series. For example, with the pattern `acme-*` and the template `INV-{n}`, every
    /// series writes the number 1 as `INV-1`.
    pub fn with_equal_texts(&self) -> impl Iterator<Item = &NumberRule> {
        self.0.iter().filter(|rule| {
            rule.kind == NumberKind::Gapless
                && rule.pattern.only().is_none()
                && rule.template.has_text()
                && !rule.template.has_series()
        })
    }

    /// Returns the first and the last number that a series can give.
    pub fn bounds(&self, series: &SeriesName) -> NumberBounds {
        self.of(series.as_str())
            .map(|rule| rule.bounds)
            .unwrap_or_default()
    }

    /// Returns the guarantee about gaps in the numbers of a series.
    pub fn kind(&self, series: &SeriesName) -> NumberKind {
        self.of(series.as_str())
            .map(|rule| rule.kind)
            .unwrap_or_default()
    }

    /// Returns the kind (`gapless` or `blocks`) for each pattern of series names.
    pub fn kinds(&self) -> NumberKinds {
        let kind_of = |rule: &NumberRule| match rule.kind {
            NumberKind::Gapless => GAPLESS,
            NumberKind::Blocks { .. } => BLOCKS,
        };
        let kinds = self.0.iter();
        let kinds = kinds.map(|rule| (rule.pattern.to_string(), kind_of(rule).to_owned()));
        NumberKinds(kinds.collect())
    }

    /// Writes a number of a series as text, according to the rule for the series.
    pub fn text(&self, series: &SeriesName, number: u64) -> String {
        self.of(series.as_str())
            .map_or_else(|| number.to_string(), |rule| rule.text(series, number))
    }

    /// Reads a text as a number according to every rule. If a rule has check characters, they must
    /// be correct.
    ///
    /// A plain number without check characters gives no result, because any program may have
    /// written it.
    pub fn read(&self, text: &str) -> Vec<NumberReading> {
        self.0
            .iter()
            .filter_map(|rule| self.read_as(rule, text))
            .collect()
    }

    fn read_as(&self, rule: &NumberRule, text: &str) -> Option<NumberReading> {
        if !rule.template.has_text() && rule.check.is_none() {
            return None;
        }
        let check_at = text
            .len()
            .checked_sub(rule.check.map_or(0, NumberCheck::width))?;
        let (written, check) = text.split_at_checked(check_at)?;
        let (series, number) = rule.template.read(written)?;
        let is_checked = rule.check.is_none_or(|method| method.of(written) == check);
        let series = series.or_else(|| SeriesName::from_text(rule.pattern.only()?).ok());
        // Skip this reading if a more specific rule applies to the series, because that rule
        // decides how the numbers of the series are written.
        let is_of_rule = series
            .as_ref()
            .is_none_or(|series| self.of(series.as_str()) == Some(rule));
        let is_within = (rule.bounds.start..=rule.bounds.max).contains(&number);
        (is_checked && is_of_rule && is_within).then(|| NumberReading {
            rule: rule.name.clone(),
            series,
            number,
            check: rule.check.map(|_| check.to_owned()),
        })
    }
}

impl NumberRule {
    /// Returns the text of a number, including its check characters.
    fn text(&self, series: &SeriesName, number: u64) -> String {
        let written = self.template.text(series, number);
        let check = self
            .check
            .map(|method| method.of(&written))
            .unwrap_or_default();
        written + &check
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, pattern: &str, text: &str, check: Option<NumberCheck>) -> NumberRule {
        NumberRule {
            name: name.to_owned(),
            pattern: SeriesPattern::from_text(pattern).expect("a pattern"),
            kind: NumberKind::Gapless,
            template: NumberTemplate::from_text(text).expect("a template"),
            check,
            bounds: NumberBounds {
                start: 10,
                max: 99_999,
            },
        }
    }

    fn series(text: &str) -> SeriesName {
        SeriesName::from_text(text).expect("a name")
    }

    #[test]
    fn the_pattern_that_says_most_counts() {
        let rules = [
            ("all", "*"),
            ("acme", "acme-*"),
            ("late", "acme-2*"),
            ("one", "acme-2026"),
        ];
        let rules = rules
            .map(|(name, pattern)| rule(name, pattern, "{n}", None))
            .to_vec();
        let rules = NumberRules::new(rules).expect("no two are alike");
        let names = ["x", "acme-1", "acme-2025", "acme-2026"];
        let found = names.map(|name| rules.of(name).map(|rule| rule.name.as_str()));
        assert_eq!(
            found,
            [Some("all"), Some("acme"), Some("late"), Some("one")]
        );
        assert_eq!(rules.bounds(&series("x")).start, 10);
        assert_eq!(
            NumberRules::default().bounds(&series("x")),
            NumberBounds::default()
        );
        assert_eq!(NumberRules::default().text(&series("x"), 7), "7");
    }

    #[test]
    fn two_rules_for_the_same_series_are_refused() {
        let rules = ["one", "two"]
            .map(|name| rule(name, "a-*", "{n}", None))
            .to_vec();
        let error = NumberRules::new(rules).expect_err("they are alike");
        assert_eq!(
            (
                error.rule.as_str(),
                error.to_string().contains("numbers.one")
            ),
            ("two", true)
        );
    }

    #[test]
    fn a_text_is_read_by_the_rule_that_writes_its_series() {
        let rules = NumberRules::new(vec![
            rule("wide", "*", "{series}-{n:05}", Some(NumberCheck::Mod97)),
            rule("narrow", "acme-*", "{series}-{n:05}", None),
            rule("nameless", "till-*", "T{n:05}", Some(NumberCheck::Luhn)),
            rule("only", "shop", "S{n:05}", None),
            rule("bare", "bare", "{n}", None),
        ])
        .expect("no two are alike");
        let read = |text: &str| -> Vec<(String, Option<String>, u64)> {
            let readings = rules.read(text).into_iter();
            readings
                .map(|it| (it.rule, it.series.map(|it| it.to_string()), it.number))
                .collect()
        };
        for (name, number, rule, is_named) in [
            ("other", 42, "wide", true),
            ("acme-1", 42, "narrow", true),
            ("till-7", 42, "nameless", false),
            ("shop", 42, "only", true),
        ] {
            let text = rules.text(&series(name), number);
            let expected = (rule.to_owned(), is_named.then(|| name.to_owned()), number);
            assert_eq!(read(&text), [expected], "{text}");
        }
        assert!(
            read("acme-1-0004244").is_empty(),
            "another rule writes that series"
        );
        assert!(
            read("S00009").is_empty() && read("S100000").is_empty(),
            "beyond the bounds"
        );
        assert!(read("42").is_empty() && read("").is_empty() && read("é").is_empty());
        assert_eq!(
            rules.read(&rules.text(&series("other"), 42))[0]
                .check
                .as_ref()
                .map(String::len),
            Some(2)
        );
    }
}
