//! Which series there can be, where their numbers begin and end, and how they are written.

use std::num::NonZeroU32;

use super::number_check::NumberCheck;
use super::number_plan::NumberBounds;
use super::number_template::NumberTemplate;
use super::series_name::{SeriesName, SeriesPattern};

/// What is promised of the numbers of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NumberKind {
    /// No number is left out: each is given to a key, and durable before the answer.
    #[default]
    Gapless,
    /// Numbers close together, with gaps where a process ended: reserved ahead, and given from memory.
    Blocks {
        /// How many are reserved at once, and so lost at most by the end of a process.
        reserve: NonZeroU32,
    },
}

/// What the series of one pattern are, how they are written, and how far they go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRule {
    /// Its name, for messages.
    pub name: String,
    /// The series that it is for.
    pub pattern: SeriesPattern,
    /// What is promised of their numbers.
    pub kind: NumberKind,
    /// How a number is written.
    pub template: NumberTemplate,
    /// Stands behind that.
    pub check: Option<NumberCheck>,
    /// The first number of a series, and the last that there can be.
    pub bounds: NumberBounds,
}

/// All rules. Of those that match a series the one whose pattern says most of it counts; where none does, a series begins at 1, and
/// its numbers are written as they are.
///
/// ```
/// use idmint::ledger::{NumberBounds, NumberCheck, NumberKind, NumberRule, NumberRules, NumberTemplate, SeriesName, SeriesPattern};
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
/// # Ok::<(), idmint::ledger::NumberRulesError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NumberRules(Vec<NumberRule>);

/// Two rules are for the same series.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is that of numbers.{other}, too: a series is written in one way")]
pub struct NumberRulesError {
    /// The later of both.
    pub rule: String,
    other: String,
}

/// What a text is, as one rule writes numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberReading {
    /// The name of the rule.
    pub rule: String,
    /// The series; `None` where the rule is for several, and the text does not name one.
    pub series: Option<SeriesName>,
    /// The number.
    pub number: u64,
    /// The check characters at the end, which fit.
    pub check: Option<String>,
}

impl NumberRules {
    /// These rules.
    ///
    /// # Errors
    /// [`NumberRulesError`] where two have one pattern.
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

    /// The rule of a series, if there is one.
    pub fn of(&self, series: &str) -> Option<&NumberRule> {
        let matching = self.0.iter().filter(|rule| rule.pattern.matches(series));
        matching.max_by_key(|rule| rule.pattern.weight())
    }

    /// Where the numbers of a series begin and end.
    pub fn bounds(&self, series: &SeriesName) -> NumberBounds {
        self.of(series.as_str())
            .map(|rule| rule.bounds)
            .unwrap_or_default()
    }

    /// What is promised of the numbers of a series.
    pub fn kind(&self, series: &SeriesName) -> NumberKind {
        self.of(series.as_str())
            .map(|rule| rule.kind)
            .unwrap_or_default()
    }

    /// A number of a series as it is written.
    pub fn text(&self, series: &SeriesName, number: u64) -> String {
        self.of(series.as_str())
            .map_or_else(|| number.to_string(), |rule| rule.text(series, number))
    }

    /// What a text can be: a number of a series, its check found right. A number alone is one of any program, and read as none here.
    pub fn read(&self, text: &str) -> Vec<NumberReading> {
        self.0
            .iter()
            .filter_map(|rule| self.read_as(rule, text))
            .collect()
    }

    fn read_as(&self, rule: &NumberRule, text: &str) -> Option<NumberReading> {
        if !rule.template.is_telling() && rule.check.is_none() {
            return None;
        }
        let check_at = text
            .len()
            .checked_sub(rule.check.map_or(0, NumberCheck::width))?;
        let (written, check) = text.split_at_checked(check_at)?;
        let (series, number) = rule.template.read(written)?;
        let is_checked = rule.check.is_none_or(|method| method.of(written) == check);
        let series = series.or_else(|| SeriesName::from_text(rule.pattern.only()?).ok());
        // Another rule may be the one of this series, and write it in another way.
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
    /// A number of a series as it is written.
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
