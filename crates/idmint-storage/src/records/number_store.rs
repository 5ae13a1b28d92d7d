//! The operations that a store supports for numbers.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use crate::failure::{FailureKind, StoreError};
use idmint_records::ledger::{
    ClosedSeries, EventTime, FormChange, FormerConflict, FormerTemplate, GivenNumbers,
    KeptTemplates, KeyHash, NumberBounds, NumberCheck, NumberForm, NumberKind, NumberKinds,
    NumberRule, NumberRules, NumberTemplate, SeriesHead, SeriesName, SeriesPattern,
    TemplateHistory, VoidedNumber,
};

/// The number of series of numbers to read at a time while a start checks the number rules.
const SERIES_PAGE: usize = 1_000;

/// The maximum number of series that a message names if their number texts change, for example from
/// `7` to `INV-7`.
const NAMED_MAX: usize = 5;

/// A store of the numbers of all series. Numbers and the idempotency keys of their requests are
/// never removed, except that the first number of a series can be corrected.
pub trait NumberStore {
    /// Returns the last number of a series. For a closed series, also returns when and by whom it
    /// was closed.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn series_state(&self, series: &SeriesName) -> Result<SeriesState, StoreError>;

    /// Returns the last number of a series and its time of issue, or `None` if there is none yet.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn series_head(&self, series: &SeriesName) -> Result<Option<SeriesHead>, StoreError> {
        Ok(self.series_state(series)?.head)
    }

    /// Returns at most `count_max` series whose names follow `after`, sorted by name. A series that
    /// has no numbers is listed only if it is closed.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn series(
        &self,
        after: Option<&SeriesName>,
        count_max: usize,
    ) -> Result<Vec<SeriesSummary>, StoreError>;

    /// Returns the numbers that were issued to at most `count_max` requests, in ascending order.
    /// The list begins with the request that received the number `from`. If `from` was not issued,
    /// the list begins with the request that received the next higher number.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn given(
        &self,
        series: &SeriesName,
        from: u64,
        count_max: usize,
    ) -> Result<Vec<GivenNumbers>, StoreError>;

    /// Returns the numbers that were issued to the request with each of these keys, or `None` for a
    /// key that no request had.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn given_to(
        &self,
        keys: &[(SeriesName, KeyHash)],
    ) -> Result<Vec<Option<GivenNumbers>>, StoreError>;

    /// Returns one number of a series, or `None` if the number was not issued.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn number(&self, series: &SeriesName, number: u64) -> Result<Option<NumberRecord>, StoreError> {
        let given = self
            .given(series, number, 1)?
            .pop()
            .filter(|given| given.first <= number);
        let Some(given) = given else { return Ok(None) };
        let void = self.voids(series, number..=number)?.pop();
        Ok(Some(NumberRecord {
            number,
            void: void.or_else(|| given.skipped(number)),
            given,
        }))
    }

    /// Returns the numbers within `numbers` that were declared void, in ascending order.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn voids(
        &self,
        series: &SeriesName,
        numbers: RangeInclusive<u64>,
    ) -> Result<Vec<VoidedNumber>, StoreError>;

    /// Returns the changes of text form that apply to `numbers` of a series, in ascending order. A
    /// text form defines how numbers are written, such as `INV-0042`. The first change may be at a
    /// number below `numbers`, if its form still applies at the start of `numbers`.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn forms(
        &self,
        series: &SeriesName,
        numbers: RangeInclusive<u64>,
    ) -> Result<Vec<FormChange>, StoreError>;

    /// Returns the text form that was stored for a number. Returns `None` if no form was stored,
    /// for example because an earlier version issued the number.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn form_at(&self, series: &SeriesName, number: u64) -> Result<Option<NumberForm>, StoreError> {
        Ok(self
            .forms(series, number..=number)?
            .pop()
            .map(|change| change.form))
    }

    /// `true` if a hold stops the series from issuing numbers. A hold begins after a restore and
    /// ends when an operator resumes the series. A series that has no numbers can also be held.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn is_held(&self, series: &SeriesName) -> Result<bool, StoreError>;

    /// Durably ends the hold on `series`, or on all series if `series` is `None`. The series can
    /// then issue numbers again. A hold stops series from issuing numbers after a restore.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the hold may still be in force. The call may be repeated.
    fn end_hold(&self, series: Option<&SeriesName>) -> Result<(), StoreError>;

    /// Returns the kinds of series at the last start, `gapless` or `blocks`. Returns `None` if no
    /// start has stored them.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn kinds(&self) -> Result<Option<NumberKinds>, StoreError>;

    /// Stores the configured kinds of series, `gapless` or `blocks`. The kinds are durable when
    /// this method returns.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the kinds may be missing in the store.
    fn keep_kinds(&self, kinds: &NumberKinds) -> Result<(), StoreError>;

    /// Returns the number templates that were configured at each start. A template defines how a
    /// series writes its numbers as text. The history is empty if no start has stored templates.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn templates(&self) -> Result<TemplateHistory, StoreError>;

    /// Replaces the stored history of number templates with `history`, if the stored history is
    /// still `before`. Returns `false` if another node has changed the stored history. The change
    /// is durable when this method returns.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the templates may be missing in the store.
    fn keep_templates(
        &self,
        before: &TemplateHistory,
        history: &TemplateHistory,
    ) -> Result<bool, StoreError>;

    /// Checks the configured rules against the stored numbers, and then stores the kinds and the
    /// templates of series.
    ///
    /// A rule is refused if different series would write the same text, unless one of these series
    /// already has numbers. For example, with the pattern `acme-*` and the text `INV-{n}`, both
    /// `acme-eu` and `acme-us` would write `INV-1`. A series that has numbers must not change its
    /// kind.
    ///
    /// # Errors
    /// Returns [`StoreError`] with [`FailureKind::Disagrees`] if the rules are refused, and another
    /// kind of error if the store cannot be read or written.
    fn agree_on_rules(&self, rules: &NumberRules) -> Result<AgreedRules, StoreError> {
        for rule in rules.with_equal_texts() {
            if !self.has_numbers(rules, rule)? {
                let text = format!(
                    "numbers.{} would write the same text for numbers of different series: put {{series}} into the \
                     text, or give each series a rule of its own",
                    rule.name
                );
                return Err(StoreError::new(FailureKind::Disagrees, text));
            }
        }
        self.agree_on_kinds(&rules.kinds())?;
        self.agree_on_templates(rules)
    }

    /// Compares the configured number templates with those of earlier starts, and stores the new
    /// ones.
    ///
    /// # Errors
    /// Returns [`StoreError`] with [`FailureKind::Disagrees`] if a new template writes a text that
    /// an earlier template may have written for another number. Returns another kind of error if
    /// the store cannot be read or written.
    fn agree_on_templates(&self, rules: &NumberRules) -> Result<AgreedRules, StoreError> {
        loop {
            let (before, now) = (self.templates()?, KeptTemplates::of_rules(rules));
            let first = before.first().unwrap_or(&now).clone();
            let Some(history) = before.after_start(&now) else {
                let changes = Vec::new();
                return Ok(AgreedRules { first, changes });
            };
            self.check_former(rules, &before)?;
            let changes = match before.last() {
                Some(last) => self.text_changes(last, rules)?,
                None => Vec::new(),
            };
            if self.keep_templates(&before, &history)? {
                return Ok(AgreedRules { first, changes });
            }
        }
    }

    /// Checks that the configured rules write no text that a template of an earlier start has
    /// written for another number.
    ///
    /// # Errors
    /// Returns [`StoreError`] with [`FailureKind::Disagrees`] if such a text exists, and another
    /// kind of error if the store cannot be read.
    fn check_former(
        &self,
        rules: &NumberRules,
        history: &TemplateHistory,
    ) -> Result<(), StoreError> {
        let all: Vec<_> = history
            .all()
            .map(|former| (former.clone(), from_one(former.bounds)))
            .collect();
        let from_first = |rule: &NumberRule| (rule.name.clone(), from_one(rule.bounds).start);
        let conflicts = rules.conflicts_with(&all, &rules.rules().map(from_first).collect());
        let conflicting = all.into_iter().zip(conflicts);
        let mut suspects = Vec::new();
        for ((former, _), _) in conflicting.filter(|(_, conflict)| conflict.is_some()) {
            // Reading the stored numbers takes longer than comparing templates. So read the numbers
            // only if the comparison has found a conflict.
            if let Some(written) = self.written_by(&former, history)? {
                suspects.push((former, written));
            }
        }
        if suspects.is_empty() {
            return self.check_plain_digits(rules, history);
        }
        let mut next = BTreeMap::new();
        self.for_each_series(&every_series(), &mut |found| {
            if let Some(rule) = rules.of(found.series.as_str())
                && takes_numbers(found, rules)
            {
                let own = found.last.saturating_add(1);
                let lowest = next.entry(rule.name.clone()).or_insert(own);
                *lowest = own.min(*lowest);
            }
            Ok(true)
        })?;
        let conflicts = rules.conflicts_with(&suspects, &next);
        for ((former, _), conflict) in suspects.iter().zip(conflicts) {
            if let Some(conflict) = conflict {
                let FormerTemplate {
                    pattern, template, ..
                } = former;
                let earlier = format!("{pattern} has written as {template}");
                return Err(repeated_text(&conflict, &earlier));
            }
        }
        self.check_plain_digits(rules, history)
    }

    /// Checks that no series repeats one of its own texts after a change from or to plain digits.
    /// [`NumberRules::conflicts_with`] does not compare plain digits.
    ///
    /// # Errors
    /// Returns [`StoreError`] with [`FailureKind::Disagrees`] if a series could repeat a text, and
    /// another kind of error if the store cannot be read.
    fn check_plain_digits(
        &self,
        rules: &NumberRules,
        history: &TemplateHistory,
    ) -> Result<(), StoreError> {
        self.for_each_series(&every_series(), &mut |found| {
            if !takes_numbers(found, rules) {
                return Ok(true);
            }
            let series = &found.series;
            let next = found.last.saturating_add(1);
            for former in history.forms(series) {
                let conflict = |written: &NumberBounds| {
                    rules.conflict_in_series(series, &former, *written, next)
                };
                let last = history.last().map(|last| last.form(series));
                let is_in_use = self.is_shared() && last.as_ref() == Some(&former);
                let whole = NumberBounds {
                    start: found.first,
                    max: match is_in_use {
                        true => NumberBounds::default().max,
                        false => found.last,
                    },
                };
                // First assume that all numbers were written in this text form. Read each number's
                // real form only after a conflict, because reading takes longer.
                let mut repeated = conflict(&whole);
                if repeated.is_some() && !is_in_use {
                    let written = self.written_in(found, Some(&former))?;
                    repeated = written.iter().find_map(conflict);
                }
                if let Some(repeated) = repeated {
                    let earlier = match is_in_use {
                        false => format!("the series {series} has written"),
                        true => format!("other nodes may still write in the series {series}"),
                    };
                    return Err(repeated_text(&repeated, &earlier));
                }
            }
            Ok(true)
        })
    }

    /// `true` if other processes can issue numbers in this store at the same time as this process.
    fn is_shared(&self) -> bool {
        false
    }

    /// Returns the range of numbers that this template may have written as text, or `None` if it
    /// has written no number. A number without a stored text form may have been written by any
    /// template.
    ///
    /// If several nodes share the store, another node may still use a template of the last start.
    /// If a series that matches the pattern of such a template has numbers, the result is all
    /// numbers within the template's bounds.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn written_by(
        &self,
        former: &FormerTemplate,
        history: &TemplateHistory,
    ) -> Result<Option<NumberBounds>, StoreError> {
        let last = history.last().map(KeptTemplates::templates);
        let is_in_use = self.is_shared() && last.is_some_and(|last| last.contains(former));
        let kinds = self.kinds()?.unwrap_or_default();
        let mut written: Option<NumberBounds> = None;
        self.for_each_series(&former.pattern, &mut |found| {
            let series = &found.series;
            let is_of_pattern = former.pattern.matches(series.as_str());
            if !found.has_numbers() || !is_of_pattern || kinds.of(series) != "gapless" {
                return Ok(true);
            }
            if is_in_use {
                written = Some(from_one(former.bounds));
                return Ok(false);
            }
            for part in self.written_in(found, former.form_of(series).as_ref())? {
                let known = written.unwrap_or(part);
                written = Some(NumberBounds {
                    start: known.start.min(part.start),
                    max: known.max.max(part.max),
                });
            }
            Ok(true)
        })?;
        Ok(written)
    }

    /// Returns the ranges of numbers of a series that may have been written in this text form. A
    /// number that is stored without a form counts, because it may have been written in any form.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn written_in(
        &self,
        found: &SeriesSummary,
        form: Option<&NumberForm>,
    ) -> Result<Vec<NumberBounds>, StoreError> {
        let changes = self.forms(&found.series, found.first..=found.last)?;
        let mut parts = vec![(found.first, None)];
        parts.extend(changes.into_iter().map(|it| (it.from, Some(it.form))));
        let ends = parts.iter().skip(1).map(|(from, _)| from.saturating_sub(1));
        let ends: Vec<_> = ends.chain([found.last]).collect();
        let ranges = parts.into_iter().zip(ends).map(|((start, stored), max)| {
            let is_in_form = stored.is_none() || stored.as_ref() == form;
            (is_in_form && start <= max).then_some(NumberBounds { start, max })
        });
        Ok(ranges.flatten().collect())
    }

    /// Returns the series whose next number is written differently than at the last start, grouped
    /// by rule. Only open, gapless series that have numbers are included.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn text_changes(
        &self,
        last: &KeptTemplates,
        rules: &NumberRules,
    ) -> Result<Vec<TextChange>, StoreError> {
        let mut changes: BTreeMap<Option<String>, TextChange> = BTreeMap::new();
        let mut after = None;
        loop {
            let page = self.series(after.as_ref(), SERIES_PAGE)?;
            for found in page.iter().filter(|found| found.closed.is_none()) {
                let series = &found.series;
                let is_gapless = rules.kind(series) == NumberKind::Gapless;
                if !found.has_numbers() || !is_gapless || last.form(series) == rules.form(series) {
                    continue;
                }
                let rule = rules.of(series.as_str());
                let name = rule.map(|rule| rule.name.clone());
                let change = changes.entry(name).or_insert_with_key(|name| TextChange {
                    rule: name.clone(),
                    template: rule.map_or_else(NumberTemplate::plain, |rule| rule.template.clone()),
                    check: rule.and_then(|rule| rule.check),
                    series: Vec::new(),
                    count: 0,
                });
                change.count += 1;
                if change.series.len() < NAMED_MAX {
                    let next = found.last.saturating_add(1);
                    change.series.push((series.clone(), next));
                }
            }
            match page.last() {
                Some(last) if page.len() == SERIES_PAGE => after = Some(last.series.clone()),
                _ => return Ok(changes.into_values().collect()),
            }
        }
    }

    /// `true` if a series to which the number rule applies has numbers.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn has_numbers(&self, rules: &NumberRules, rule: &NumberRule) -> Result<bool, StoreError> {
        let is_of_rule = |series: &SeriesName| rules.of(series.as_str()) == Some(rule);
        self.any_series(&rule.pattern, &is_of_rule)
    }

    /// `true` if a series that fulfils `condition` has numbers. Series whose names cannot match
    /// `pattern` may be left out.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn any_series(
        &self,
        pattern: &SeriesPattern,
        condition: &dyn Fn(&SeriesName) -> bool,
    ) -> Result<bool, StoreError> {
        let mut is_found = false;
        self.for_each_series(pattern, &mut |found| {
            is_found = found.has_numbers() && condition(&found.series);
            Ok(!is_found)
        })?;
        Ok(is_found)
    }

    /// Calls `visit` for each series whose name can match `pattern`, until `visit` returns `false`.
    /// May also call it for other series.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read, and the errors of `visit`.
    fn for_each_series(
        &self,
        pattern: &SeriesPattern,
        visit: &mut dyn FnMut(&SeriesSummary) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        let mut after = pattern.name_before();
        loop {
            let page = self.series(after.as_ref(), SERIES_PAGE)?;
            for found in &page {
                if !visit(found)? {
                    return Ok(());
                }
            }
            match page.last() {
                Some(last) if page.len() == SERIES_PAGE && !pattern.ends_by(&last.series) => {
                    after = Some(last.series.clone());
                }
                _ => return Ok(()),
            }
        }
    }

    /// Compares the kinds of series at this start with the kinds at the last start, and stores the
    /// new kinds. If the kinds have not changed, no series is read.
    ///
    /// # Errors
    /// Returns [`StoreError`] with [`FailureKind::Disagrees`] if a series with numbers would change
    /// its kind, and another kind of error if the store cannot be read or written.
    fn agree_on_kinds(&self, now: &NumberKinds) -> Result<(), StoreError> {
        let kept = self.kinds()?;
        if kept.as_ref() == Some(now) {
            return Ok(());
        }
        let mut after = None;
        while let Some(kept) = &kept {
            let page = self.series(after.as_ref(), SERIES_PAGE)?;
            for SeriesSummary { series, .. } in page.iter().filter(|found| found.has_numbers()) {
                let (before, after) = (kept.of(series), now.of(series));
                if before != after {
                    let text = format!(
                        "the series {series} has numbers of kind {before}, and [numbers] now makes it {after}: give it the \
                         kind {before} again, and use a new name for a series of kind {after}"
                    );
                    return Err(StoreError::new(FailureKind::Disagrees, text));
                }
            }
            match page.last() {
                Some(last) if page.len() == SERIES_PAGE => after = Some(last.series.clone()),
                _ => break,
            }
        }
        self.keep_kinds(now)
    }
}

/// Returns these bounds, extended down to number 1. If the configured first number was raised
/// later, a series may have lower numbers from before.
fn from_one(bounds: NumberBounds) -> NumberBounds {
    NumberBounds {
        start: bounds.start.min(NumberBounds::default().start),
        ..bounds
    }
}

fn every_series() -> SeriesPattern {
    SeriesPattern::from_text("*").expect("a star is a pattern")
}

/// `true` if the series is open, has numbers, and issues them without gaps.
fn takes_numbers(found: &SeriesSummary, rules: &NumberRules) -> bool {
    let is_gapless = rules.kind(&found.series) == NumberKind::Gapless;
    found.has_numbers() && found.closed.is_none() && is_gapless
}

/// Returns the error for number rules that could write one text for two numbers. `earlier` says
/// which series have written the text, or may still write it.
fn repeated_text(found: &FormerConflict, earlier: &str) -> StoreError {
    let [what, settings] = match &found.rule {
        Some(rule) => [
            format!("numbers.{rule}.text"),
            format!("settings of numbers.{rule}"),
        ],
        None => [
            "plain digits, without a rule in [numbers],".to_owned(),
            "rule in [numbers]".to_owned(),
        ],
    };
    let example = match &found.conflict {
        Some(conflict) => conflict.to_string(),
        None => "the two have too many texts to compare them all".to_owned(),
    };
    let text = format!(
        "{what} could repeat a text that {earlier}: {example}; restore the old {settings}, or choose a text that \
         differs from all earlier ones"
    );
    StoreError::new(FailureKind::Disagrees, text)
}

/// The result of comparing the configured rules with the stored numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgreedRules {
    /// The templates of the first start that stored any. They apply to numbers without a stored
    /// text form.
    pub first: KeptTemplates,
    /// The series whose new numbers are written differently than at the last start, by rule.
    pub changes: Vec<TextChange>,
}

/// The series of one number rule, or of no rule, whose new numbers are written differently than at
/// the last start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChange {
    /// The name of the rule that now applies to the series, or `None` if no configured rule does.
    rule: Option<String>,
    template: NumberTemplate,
    check: Option<NumberCheck>,
    /// The first few of these series, each with its first number that is written differently.
    series: Vec<(SeriesName, u64)>,
    /// The number of changed series, including those that are not in `series`.
    count: usize,
}

impl fmt::Display for TextChange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Some(rule) => write!(
                out,
                "numbers.{rule} now writes new numbers as {}",
                self.template
            )?,
            None => out.write_str("without a rule in [numbers], new numbers are plain digits")?,
        }
        if let Some(check) = self.check {
            write!(out, " with the check {}", check.name())?;
        }
        let mut before = ": ";
        for (series, from) in &self.series {
            write!(out, "{before}{series} from {from} on")?;
            before = ", ";
        }
        if let Some(more) = self.count.checked_sub(NAMED_MAX).filter(|more| *more > 0) {
            write!(out, ", and {more} more series")?;
        }
        out.write_str("; earlier numbers keep their texts")
    }
}

/// One number of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRecord {
    /// The number itself.
    pub number: u64,
    /// All numbers that were issued to the request that received this number.
    pub given: GivenNumbers,
    /// The time and the reason of voiding the number, or `None` if the number is valid.
    pub void: Option<VoidedNumber>,
}

/// The data on which new numbers of a series depend.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SeriesState {
    /// The last number of the series and its time of issue, or `None` if there is none yet.
    pub head: Option<SeriesHead>,
    /// The time of closing and the caller who closed the series, or `None` if the series is open.
    pub closed: Option<ClosedSeries>,
}

/// A series as it appears in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesSummary {
    /// The name of the series.
    pub series: SeriesName,
    /// The first number that the series has issued, or 1 if the series has no number.
    pub first: u64,
    /// The last number that the series has issued, or 0 if the series has no number.
    pub last: u64,
    /// The time at which the last number was issued, or the time of closing if the series has no
    /// number.
    pub updated: EventTime,
    /// The time of closing and the caller who closed the series, or `None` if the series is open.
    pub closed: Option<ClosedSeries>,
}

impl SeriesSummary {
    /// Returns the summary of a series that was closed before its first number.
    pub fn unbegun(closed: ClosedSeries) -> SeriesSummary {
        SeriesSummary {
            series: closed.series.clone(),
            first: 1,
            last: 0,
            updated: closed.recorded,
            closed: Some(closed),
        }
    }

    /// `true` if the series has issued a number.
    pub fn has_numbers(&self) -> bool {
        self.first <= self.last
    }

    /// Returns the last number and its time of issue, or `None` if the series has no number.
    pub fn head(&self) -> Option<SeriesHead> {
        self.has_numbers().then_some(SeriesHead {
            last: self.last,
            recorded: self.updated,
        })
    }
}
