//! Rules for series of numbers: their bounds, whether gaps are possible, and how numbers are
//! written.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::former_template::FormerTemplate;
use super::number_check::NumberCheck;
use super::number_form::NumberForm;
use super::number_plan::NumberBounds;
use super::number_template::{FieldError, NumberTemplate};
use super::series_name::SeriesName;
use super::series_pattern::{SeriesPattern, YEAR};
use super::text_conflict::{
    TextConflict, TextSet, TooComplex, ambiguous, common_name, common_text, different_readings,
    split_twice,
};
use super::text_field::{TextField, Years, splits};
use super::text_form::TextForm;

/// The guarantee about gaps in the numbers of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NumberKind {
    /// The series has no gaps. A number is written to disk, together with the idempotency key of
    /// its request, before the response is sent.
    #[default]
    Gapless,
    /// The series can have gaps, because numbers are reserved in advance and given from memory. If
    /// a process ends, the unused numbers of its reservation become a gap.
    Blocks {
        /// The size of one reservation, in numbers. This is also the maximum size of a gap, unless
        /// a single request asks for more numbers.
        reserve: NonZeroU32,
    },
}

/// The kind of series for each pattern of names: `gapless` (without gaps) or `blocks` (numbers are
/// reserved in blocks). A store keeps the kinds that were configured when the service last started,
/// because the kind of a series cannot change after its first number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NumberKinds(pub BTreeMap<String, String>);

impl NumberKinds {
    /// Returns the kind of a series, such as `gapless`. The most specific pattern that matches the
    /// series determines the kind. If no pattern matches, the kind is `gapless`.
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
    /// The earlier templates. Their texts can still be decoded, but are no longer written.
    pub former: Vec<NumberTemplate>,
    /// The method for check characters at the end of the text, or `None` for a text without them.
    pub check: Option<NumberCheck>,
    /// The first and the last number that a series can give.
    pub bounds: NumberBounds,
    /// The years that the part `year` can have, such as 2000 to 2099, or `None` for all years.
    pub years: Option<Years>,
    /// The periods for which series give numbers, such as `2026`, or `None` for all. The period is
    /// the part `year` of the name, or else the part `period`, or else the text for the star (`*`).
    pub periods: Option<Vec<String>>,
}

/// The rules for all series.
///
/// If several rules match a series, the rule with the most specific pattern applies. If no rule
/// matches, the series begins at 1, and its numbers are written as plain digits.
///
/// No text stands for two numbers. The rules are refused if a series could write a text that the
/// same series or another one could write for a different number. Plain digits are exempt, but
/// after a change of the rules, a series must not repeat its own plain digits.
///
/// ```
/// use idmint_records::ledger::{NumberCheck, NumberRule, NumberRules, NumberTemplate, SeriesName, SeriesPattern};
///
/// let pattern = SeriesPattern::from_text("{company}-{year}").expect("a pattern");
/// let rules = NumberRules::new(vec![NumberRule {
///     template: NumberTemplate::from_text("INV/{company}/{year}/{n:05}").expect("a template"),
///     check: Some(NumberCheck::Luhn),
///     ..NumberRule::new("invoice", pattern)
/// }])?;
/// let series = SeriesName::from_text("acme-2026").expect("a name");
/// assert_eq!(rules.text(&series, 42), "INV/acme/2026/000426");
/// let readings = rules.read("INV/acme/2026/000426");
/// assert_eq!((readings[0].series.as_ref(), readings[0].number), (Some(&series), 42));
/// assert!(rules.read("INV/acme/2026/000427").is_empty());
/// # Ok::<(), idmint_records::ledger::NumberRulesError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NumberRules(Vec<RuleForms>);

/// A rule with its parsed templates: the current template, and the former templates, which are used
/// only to decode texts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RuleForms {
    rule: NumberRule,
    current: TextForm,
    former: Vec<TextForm>,
}

/// The reason why rules are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct NumberRulesError {
    /// The name of the rule.
    pub rule: String,
    /// The name of the invalid setting of the rule, such as `pattern`.
    pub key: &'static str,
    /// The text that stands for two numbers, or `None` if the rules are refused for another reason.
    pub conflict: Option<Box<TextConflict>>,
    problem: String,
}

/// A text that the rules can write, and an earlier template may have written for another number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerConflict {
    /// The name of the current rule. `None` if no rule matches the series, so that its numbers are
    /// written as plain digits.
    pub rule: Option<String>,
    /// The text with its two numbers: first the number according to the earlier template, then the
    /// number according to the current rule. `None` if the templates can write too many texts to
    /// compare all of them.
    pub conflict: Option<TextConflict>,
}

impl FormerConflict {
    /// Returns a text that an earlier template may have written and `rule` can write for another
    /// number, if one exists. With too many texts to compare, the returned conflict has no text.
    fn between(
        earlier: &TextSet<'_>,
        own: &TextSet<'_>,
        rule: Option<&NumberRule>,
    ) -> Option<FormerConflict> {
        let conflict = match different_readings([earlier, own]) {
            Ok(None) => return None,
            Ok(conflict) => conflict,
            Err(TooComplex) => None,
        };
        Some(FormerConflict {
            rule: rule.map(|rule| rule.name.clone()),
            conflict,
        })
    }
}

/// The reason why a series gets no new numbers: its rule forbids the year or period in its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the series {series} gives no new numbers, because {period:?} is not in numbers.{rule}.{key} ({allowed}); correct \
     the name of the series, or change numbers.{rule}.{key}"
)]
pub struct SeriesRefusal {
    /// The name of the series.
    pub series: SeriesName,
    /// The name of the rule.
    pub rule: String,
    /// The setting of the rule, `years` or `periods`.
    pub key: &'static str,
    /// The part of the name that the setting does not permit.
    pub period: String,
    /// The permitted values.
    pub allowed: String,
}

/// The number that a text stands for according to one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberReading {
    /// The name of the rule that writes numbers in this form.
    pub rule: String,
    /// The series. `None` if the rule applies to several series and the text does not say to which
    /// of them the number belongs.
    pub series: Option<SeriesName>,
    /// The number that the text stands for.
    pub number: u64,
    /// The check characters at the end of the text, if the rule has any. They are correct.
    pub check: Option<String>,
}

impl NumberRule {
    /// Returns a rule with default settings: the series that match the pattern begin at 1, and
    /// their numbers are written as plain digits.
    pub fn new(name: &str, pattern: SeriesPattern) -> NumberRule {
        NumberRule {
            name: name.to_owned(),
            pattern,
            kind: NumberKind::Gapless,
            template: NumberTemplate::plain(),
            former: Vec::new(),
            check: None,
            bounds: NumberBounds::default(),
            years: None,
            periods: None,
        }
    }

    /// Returns the index of the part of a series name that is the period: the part `year`, or else
    /// the part `period`, or else the text for the star (`*`) in the pattern.
    fn period_part(&self) -> Option<usize> {
        let parts = [YEAR, "period", "*"].into_iter();
        parts.filter_map(|name| self.pattern.part(name)).next()
    }

    fn refuse(&self, key: &'static str, problem: impl Into<String>) -> NumberRulesError {
        NumberRulesError {
            rule: self.name.clone(),
            key,
            conflict: None,
            problem: problem.into(),
        }
    }

    fn refuse_texts(
        &self,
        key: &'static str,
        reason: &str,
        conflict: TextConflict,
        remedy: &str,
    ) -> NumberRulesError {
        NumberRulesError {
            conflict: Some(Box::new(conflict.clone())),
            ..self.refuse(key, format!("{reason}: {conflict}; {remedy}"))
        }
    }

    fn refuse_complex(&self, key: &'static str) -> NumberRulesError {
        self.refuse(
            key,
            "has too many ways to be read to check them all: use fewer parts, or list their values",
        )
    }

    /// Checks that a series name that matches the pattern can contain each period, such as `2026`.
    fn check_periods(&self) -> Result<(), NumberRulesError> {
        let Some(periods) = &self.periods else {
            return Ok(());
        };
        let Some(part) = self.period_part() else {
            let problem = "needs the part {year} or {period} in the pattern, or a star";
            return Err(self.refuse("periods", problem));
        };
        if periods.is_empty() {
            let problem = "is empty, so no series could get numbers: list the periods, or leave it out to permit all";
            return Err(self.refuse("periods", problem));
        }
        let is_part = |field: &TextField| matches!(field, TextField::Part { part: found, .. } if *found == part);
        let mut fields = self.pattern.fields_within(self.years);
        fields.retain(is_part);
        let wrong = periods
            .iter()
            .find(|period| splits(&fields, period, 1).is_empty());
        let Some(wrong) = wrong else { return Ok(()) };
        let name = &self.pattern.parts()[part];
        let within = match self.years.filter(|_| name == YEAR) {
            Some(years) => format!(" from {} to {}", years.first(), years.last()),
            None => String::new(),
        };
        let pattern = &self.pattern;
        let values = match name.as_str() {
            "*" => format!("the star of \"{pattern}\""),
            name => format!("{{{name}}} of \"{pattern}\""),
        };
        let problem = format!(
            "has {wrong:?}, which {values} never matches{within}: correct the value, or leave it out"
        );
        Err(self.refuse("periods", problem))
    }

    /// Returns all texts that a current or former template of this rule, such as `INV-{n:05}`, can
    /// write. `key` is the setting that contains the template, for error messages.
    fn form(
        &self,
        key: &'static str,
        template: &NumberTemplate,
    ) -> Result<TextForm, NumberRulesError> {
        let form = TextForm::new(&self.pattern, template, self.check, self.years, self.bounds);
        let form = form.map_err(|error| match error {
            FieldError::UnknownPart(part) => {
                let pattern = &self.pattern;
                self.refuse(
                    key,
                    format!(
                        "has {{{part}}}, which is not a part of the pattern \"{pattern}\": add it to the pattern, or \
                         remove it here"
                    ),
                )
            }
            FieldError::NoYears => self.refuse(
                key,
                "has {year:last2}, which needs years, such as years = [2000, 2099]",
            ),
        })?;
        let is_apart =
            !form.has_text || self.pattern.has_star() || self.kind != NumberKind::Gapless;
        if let Some(part) = form.missing_part().filter(|_| !is_apart) {
            let name = &self.pattern.parts()[part];
            let reason = format!(
                "needs {{{name}}}, because series with another {name} would write the same texts"
            );
            return Err(match form.without_part(part, self.bounds.start) {
                Some(conflict) => {
                    let remedy = format!("add {{{name}}} to the text");
                    self.refuse_texts(key, &reason, conflict, &remedy)
                }
                None => self.refuse(key, reason),
            });
        }
        Ok(form)
    }
}

impl RuleForms {
    fn new(rule: NumberRule) -> Result<RuleForms, NumberRulesError> {
        let split = split_twice(rule.pattern.fields());
        if let Some(name) = split.map_err(|TooComplex| rule.refuse_complex("pattern"))? {
            let problem = format!(
                "can split the name {name:?} in two ways: put a - between its parts, or list their values"
            );
            return Err(rule.refuse("pattern", problem));
        }
        if rule.years.is_some() && rule.pattern.part(YEAR).is_none() {
            return Err(rule.refuse("years", "needs the part {year} in the pattern"));
        }
        rule.check_periods()?;
        let current = rule.form("text", &rule.template)?;
        let former = rule
            .former
            .iter()
            .map(|template| rule.form("former", template));
        Ok(RuleForms {
            former: former.collect::<Result<_, _>>()?,
            current,
            rule,
        })
    }

    /// Returns the texts of the rule's current template, and those of its former templates.
    fn forms(&self) -> impl Iterator<Item = &TextForm> {
        std::iter::once(&self.current).chain(&self.former)
    }

    /// Returns `true` if the texts of this rule are checked for conflicts. This is the case for
    /// series without gaps.
    fn is_compared(&self) -> bool {
        self.rule.kind == NumberKind::Gapless
    }
}

impl NumberRules {
    /// Creates the rules for the numbers of series, and checks that no two rules conflict.
    ///
    /// # Errors
    /// Returns [`NumberRulesError`] if two equally specific rules match the same series, if a
    /// template does not fit its pattern, or if two different numbers could have the same text.
    pub fn new(rules: Vec<NumberRule>) -> Result<NumberRules, NumberRulesError> {
        let forms: Result<_, _> = rules.into_iter().map(RuleForms::new).collect();
        let rules = NumberRules(forms?);
        rules.check_patterns()?;
        rules.check_texts()?;
        Ok(rules)
    }

    /// Checks that no two rules match the same series with equally specific patterns.
    fn check_patterns(&self) -> Result<(), NumberRulesError> {
        for (at, RuleForms { rule, .. }) in self.0.iter().enumerate() {
            for RuleForms { rule: other, .. } in &self.0[..at] {
                let (pattern, name) = (&rule.pattern, &other.name);
                if other.pattern == *pattern {
                    let problem = format!(
                        "is also the pattern of numbers.{name}, but a series may have only one rule"
                    );
                    return Err(rule.refuse("pattern", problem));
                }
                if other.pattern.weight() != pattern.weight() {
                    continue;
                }
                let common = common_name(pattern.fields(), other.pattern.fields());
                let common = common.map_err(|TooComplex| rule.refuse_complex("pattern"))?;
                if let Some(series) = common {
                    let problem = format!(
                        "matches {series:?}, as does the pattern of numbers.{name}, and neither is more specific: \
                         write more fixed characters into one of them, or list the values of a part"
                    );
                    return Err(rule.refuse("pattern", problem));
                }
            }
        }
        Ok(())
    }

    /// Checks that no text stands for two numbers.
    fn check_texts(&self) -> Result<(), NumberRulesError> {
        let compared: Vec<_> = self.compared().collect();
        let sets = compared.iter().flat_map(|(forms, excluded)| {
            let with_text = forms.forms().filter(|form| form.has_text);
            with_text.map(move |form| (&forms.rule, TextSet::new(form, excluded)))
        });
        let sets: Vec<_> = sets.collect();
        for (at, (rule, set)) in sets.iter().enumerate() {
            // Skip the check for ambiguity if the texts lack a variable part of the series name,
            // such as `T-{n}` for the series `ticket-*`. Several of these series may write the same
            // text. The store decides about the rule, because it knows which series have numbers.
            if set.form().has_all_parts() {
                let found = ambiguous(set).map_err(|TooComplex| rule.refuse_complex("text"))?;
                if let Some(conflict) = found {
                    let remedy = "write another character, such as /, before or after {n}";
                    return Err(rule.refuse_texts("text", "is ambiguous", conflict, remedy));
                }
            }
            for (other, earlier) in &sets[..at] {
                let is_former = rule.name == other.name;
                let key = if is_former { "former" } else { "text" };
                let found = match is_former {
                    true => different_readings([set, earlier]),
                    false => common_text([set, earlier]),
                };
                let found = found.map_err(|TooComplex| rule.refuse_complex(key))?;
                let Some(conflict) = found else { continue };
                let (reason, remedy) = match is_former {
                    true => (
                        "has a template that can write a text of another number".to_owned(),
                        "remove the template from former, or change text",
                    ),
                    false => (
                        format!("can write a text of numbers.{}", other.name),
                        "begin the texts of the two rules with different characters",
                    ),
                };
                return Err(rule.refuse_texts(key, &reason, conflict, remedy));
            }
        }
        Ok(())
    }

    /// Returns the gapless rules, whose texts are checked for conflicts, each with the patterns of
    /// all more specific rules. A rule does not apply to series that match one of these patterns.
    fn compared(&self) -> impl Iterator<Item = (&RuleForms, Vec<Vec<TextField>>)> {
        let gapless = self.0.iter().filter(|forms| forms.is_compared());
        gapless.map(move |forms| (forms, self.more_specific(&forms.rule)))
    }

    /// Returns all patterns that are more specific than the pattern of this rule. For example,
    /// `acme-*` is more specific than `*`.
    fn more_specific(&self, rule: &NumberRule) -> Vec<Vec<TextField>> {
        let patterns = self.0.iter().map(|forms| &forms.rule.pattern);
        let others = patterns.filter(|other| other.weight() > rule.pattern.weight());
        others.map(|other| other.fields().to_vec()).collect()
    }

    /// Compares the texts of these rules with the texts that the earlier templates `former` have
    /// written for the given numbers. Plain digits are not compared. For each earlier template,
    /// returns a text that stands for two numbers, or `None` if no such text exists.
    ///
    /// `next` maps the name of a rule to the lowest number that a series of this rule gives next.
    /// Only series that have begun count. They continue with their next numbers, even if the rule
    /// has a higher start.
    pub fn conflicts_with(
        &self,
        former: &[(FormerTemplate, NumberBounds)],
        next: &BTreeMap<String, u64>,
    ) -> Vec<Option<FormerConflict>> {
        let later_form = |forms: &RuleForms| {
            let rule = &forms.rule;
            let start = match next.get(&rule.name) {
                Some(next) if rule.pattern.only().is_some() => *next,
                // New series begin at `bounds.start`. Others continue at `next` or above.
                Some(next) => rule.bounds.start.min(*next),
                None => rule.bounds.start,
            };
            let bounds = NumberBounds {
                start,
                ..rule.bounds
            };
            let (pattern, template) = (&rule.pattern, &rule.template);
            let form = TextForm::new(pattern, template, rule.check, rule.years, bounds);
            form.ok().filter(|form| form.has_text)
        };
        let compared: Vec<_> = self
            .compared()
            .filter_map(|(forms, excluded)| Some((forms, later_form(forms)?, excluded)))
            .collect();
        let own: Vec<_> = compared
            .iter()
            .map(|(forms, form, excluded)| (forms, TextSet::new(form, excluded)))
            .collect();
        let conflict_with = |(template, written): &(FormerTemplate, NumberBounds)| {
            let whole = template.form().filter(|form| form.has_text)?;
            let narrow = FormerTemplate {
                bounds: *written,
                ..template.clone()
            };
            let form = narrow.form()?;
            let earlier = TextSet::new(&form, &[]);
            own.iter()
                .filter(|(forms, _)| forms.current != whole)
                .find_map(|(forms, own)| FormerConflict::between(&earlier, own, Some(&forms.rule)))
        };
        former.iter().map(conflict_with).collect()
    }

    /// Compares the texts of one series with the texts that it has written in an earlier form for
    /// the numbers `written`, if one of the two forms is plain digits. Returns a text that the
    /// series could write again for `next` or a later number, or `None` if none exists. The series
    /// continues with `next` even if its rule has a higher start.
    ///
    /// [`conflicts_with`](NumberRules::conflicts_with) does not compare plain digits, because
    /// different series may write the same digits.
    pub fn conflict_in_series(
        &self,
        series: &SeriesName,
        former: &NumberForm,
        written: NumberBounds,
        next: u64,
    ) -> Option<FormerConflict> {
        let (current, bounds) = (self.form(series), self.bounds(series));
        let later = NumberBounds {
            start: next,
            ..bounds
        };
        let is_compared = *former != current && (former.is_plain() || current.is_plain());
        if !is_compared || later.start > later.max {
            return None;
        }
        let earlier = TextForm::of_series(series, former, written);
        let own = TextForm::of_series(series, &current, later);
        let [earlier, own] = [&earlier, &own].map(|form| TextSet::new(form, &[]));
        FormerConflict::between(&earlier, &own, self.of(series.as_str()))
    }

    fn forms_of(&self, series: &str) -> Option<&RuleForms> {
        let matching = self
            .0
            .iter()
            .filter(|forms| forms.rule.pattern.matches(series));
        matching.max_by_key(|forms| forms.rule.pattern.weight())
    }

    /// Returns all rules.
    pub fn rules(&self) -> impl Iterator<Item = &NumberRule> {
        self.0.iter().map(|forms| &forms.rule)
    }

    /// Returns the rule for a series, or `None` if no rule matches it.
    pub fn of(&self, series: &str) -> Option<&NumberRule> {
        self.forms_of(series).map(|forms| &forms.rule)
    }

    /// Checks that a series may get new numbers according to the settings `years` and `periods` of
    /// its rule. The numbers that it got earlier stay valid.
    ///
    /// # Errors
    /// Returns [`SeriesRefusal`] if the series has a year or a period that is not configured.
    pub fn admit(&self, series: &SeriesName) -> Result<(), SeriesRefusal> {
        let Some(rule) = self.of(series.as_str()) else {
            return Ok(());
        };
        let parts = rule.pattern.split(series.as_str()).unwrap_or_default();
        let value = |part: Option<usize>| part.and_then(|part| parts.get(part)).copied();
        let refuse = |key, period: &str, allowed| {
            Err(SeriesRefusal {
                series: series.clone(),
                rule: rule.name.clone(),
                key,
                period: period.to_owned(),
                allowed,
            })
        };
        if let (Some(year), Some(years)) = (value(rule.pattern.part(YEAR)), rule.years)
            && !years.contains(year)
        {
            return refuse(
                "years",
                year,
                format!("{} to {}", years.first(), years.last()),
            );
        }
        if let (Some(period), Some(periods)) = (value(rule.period_part()), &rule.periods)
            && !periods.iter().any(|allowed| allowed == period)
        {
            return refuse("periods", period, periods.join(", "));
        }
        Ok(())
    }

    /// Returns the rules for series without gaps under which different series write the same texts.
    /// The pattern of such a rule matches several series, and its template adds text, but not the
    /// name of the series. For example, with the pattern `acme-*` and the template `INV-{n}`, every
    /// series writes the number 1 as `INV-1`.
    pub fn with_equal_texts(&self) -> impl Iterator<Item = &NumberRule> {
        let rules = self.0.iter().filter(|forms| {
            forms.is_compared() && forms.current.has_text && !forms.current.has_all_parts()
        });
        rules.map(|forms| &forms.rule)
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
        let rules = self.0.iter().map(|forms| &forms.rule);
        let kinds = rules.map(|rule| (rule.pattern.to_string(), kind_of(rule).to_owned()));
        NumberKinds(kinds.collect())
    }

    /// Returns the form in which the numbers of a series are written as texts, such as `INV-00042`.
    pub fn form(&self, series: &SeriesName) -> NumberForm {
        let forms = self.forms_of(series.as_str());
        let form = forms.and_then(|forms| forms.current.of(series.as_str()));
        form.unwrap_or_default()
    }

    /// Writes a number of a series as text, according to the rule for the series.
    pub fn text(&self, series: &SeriesName, number: u64) -> String {
        self.form(series).text(number)
    }

    /// Reads a text as a number according to every rule, by its current and its former templates.
    /// If a rule has check characters, they must be correct.
    ///
    /// A plain number without check characters gives no result, because any program may have
    /// written it.
    pub fn read(&self, text: &str) -> Vec<NumberReading> {
        let mut found: Vec<NumberReading> = Vec::new();
        for forms in &self.0 {
            for form in forms.forms() {
                let reading = self.read_as(forms, form, text);
                found.extend(reading.filter(|reading| !found.contains(reading)));
            }
        }
        found
    }

    fn read_as(&self, forms: &RuleForms, form: &TextForm, text: &str) -> Option<NumberReading> {
        if !form.has_text && form.check.is_none() {
            return None;
        }
        // Skip a series for which a more specific rule applies, because that rule decides how the
        // numbers of the series are written.
        let is_of_rule = |series: &SeriesName| self.of(series.as_str()) == Some(&forms.rule);
        let mut readings = form.read(text).into_iter();
        let (series, number) =
            readings.find(|(series, _)| series.as_ref().is_none_or(is_of_rule))?;
        let check_at = text.len() - form.check.map_or(0, NumberCheck::width);
        Some(NumberReading {
            rule: forms.rule.name.clone(),
            series,
            number,
            check: form.check.map(|_| text[check_at..].to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, pattern: &str, text: &str, check: Option<NumberCheck>) -> NumberRule {
        NumberRule {
            template: NumberTemplate::from_text(text).expect("a template"),
            check,
            bounds: NumberBounds {
                start: 10,
                max: 99_999,
            },
            ..NumberRule::new(name, SeriesPattern::from_text(pattern).expect("a pattern"))
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

    /// Returns the message about a text of `old` that `new` can write for another number, if any.
    fn repeated(
        old: (&str, &str),
        written: NumberBounds,
        new: (&str, &str, Option<NumberCheck>),
        next: Option<u64>,
    ) -> Option<String> {
        let NumberRule {
            pattern, template, ..
        } = rule("old", old.0, old.1, None);
        let former = FormerTemplate {
            pattern,
            template,
            check: None,
            years: None,
            bounds: NumberBounds::default(),
        };
        let rules = NumberRules::new(vec![rule("new", new.0, new.1, new.2)]).expect("one rule");
        let next = next.map(|next| ("new".to_owned(), next));
        let found = rules.conflicts_with(&[(former, written)], &next.into_iter().collect());
        let found = found.into_iter().next().flatten();
        found.map(|found| found.conflict.expect("the search is short").to_string())
    }

    #[test]
    fn a_template_with_its_parts_in_another_order_is_refused_and_new_names_of_parts_are_not() {
        let all = NumberBounds::default();
        let pattern = "{company}-{shop}";
        let found = repeated(
            (pattern, "{company}/{shop}/{n}"),
            all,
            (pattern, "{shop}/{company}/{n}", None),
            None,
        );
        assert_eq!(
            found.as_deref(),
            Some("\"a/b/10\" would be number 10 of a-b and number 10 of b-a")
        );
        let found = repeated(
            ("*", "{series}/{n}"),
            all,
            ("{a}-{b}", "{b}-{a}/{n}", None),
            None,
        );
        assert_eq!(
            found.as_deref(),
            Some("\"a-b/10\" would be number 10 of a-b and number 10 of b-a")
        );
        let found = repeated(
            ("{a}-{b}", "{b}/{a}/{n}"),
            all,
            ("{x}-{y}", "{y}/{x}/{n}", None),
            None,
        );
        assert_eq!(found, None);
    }

    #[test]
    fn an_earlier_template_counts_only_for_the_numbers_that_it_has_written() {
        let changed = |max, next| {
            let written = NumberBounds { start: 1, max };
            let new = ("a", "A-{n}", Some(NumberCheck::Luhn));
            repeated(("a", "A-{n}"), written, new, next)
        };
        assert_eq!(
            changed(200, None).as_deref(),
            Some("\"A-108\" would be number 108 of a and number 10 of a")
        );
        assert_eq!(changed(107, None), None);
        assert_eq!(changed(200, Some(201)), None, "no lower number is written");
    }

    #[test]
    fn a_period_that_no_series_can_have_is_refused() {
        let periods = |pattern: &str, years, periods: &[&str]| {
            let periods = periods.iter().map(|period| (*period).to_owned()).collect();
            let rule = NumberRule {
                periods: Some(periods),
                years,
                ..NumberRule::new("a", SeriesPattern::from_text(pattern).expect("a pattern"))
            };
            NumberRules::new(vec![rule]).map_err(|error| (error.key, error.to_string()))
        };
        let years = Years::new(2000, 2099);
        for (pattern, years, allowed) in [
            ("a-{year}", years, &["2025", "2026"][..]),
            ("{shop}-{period:####-##}", None, &["2026-27"]),
            ("a-*", None, &["x.1", "2026"]),
        ] {
            assert!(periods(pattern, years, allowed).is_ok(), "{pattern}");
        }
        for (pattern, years, wrong, reason) in [
            (
                "a-{year}",
                None,
                &["2025", "226"][..],
                "has \"226\", which {year} of",
            ),
            (
                "a-{year}",
                years,
                &["2125"],
                "never matches from 2000 to 2099",
            ),
            ("{shop}-{period:####-##}", None, &["2026"], "{period} of"),
            ("a-*", None, &["2026/27"], "the star of"),
            ("a-*", None, &[], "is empty"),
            ("a", None, &["2026"], "needs the part"),
        ] {
            let (key, text) = periods(pattern, years, wrong).expect_err(pattern);
            assert!(key == "periods" && text.contains(reason), "{text}");
        }
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
