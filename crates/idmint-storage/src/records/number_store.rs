//! The operations that a store supports for numbers.

use std::fmt;
use std::ops::RangeInclusive;

use crate::failure::{FailureKind, StoreError};
use idmint_records::ledger::{
    ClosedSeries, EventTime, FormChange, FormerConflict, FormerTemplate, GivenNumbers,
    KeptTemplates, KeyHash, NumberForm, NumberKind, NumberKinds, NumberRule, NumberRules,
    SeriesHead, SeriesName, SeriesPattern, TemplateHistory, VoidedNumber,
};

/// The number of series that are read at a time while a start checks its rules.
const SERIES_PAGE: usize = 1_000;

/// A store of the numbers of every series. Numbers and the keys of their requests are never
/// removed.
pub trait NumberStore {
    /// Returns the last number of a series, and whether the series is closed.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn series_state(&self, series: &SeriesName) -> Result<SeriesState, StoreError>;

    /// Returns the last number of a series and its time, or `None` if the series has no number yet.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn series_head(&self, series: &SeriesName) -> Result<Option<SeriesHead>, StoreError> {
        Ok(self.series_state(series)?.head)
    }

    /// Returns at most `count_max` series whose names follow `after`, sorted by name. A series
    /// without numbers is listed if it is closed.
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

    /// Returns the numbers that were issued to the request with each of these keys, or `None` if
    /// there was no such request.
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

    /// Returns the void numbers within `numbers`, in ascending order.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn voids(
        &self,
        series: &SeriesName,
        numbers: RangeInclusive<u64>,
    ) -> Result<Vec<VoidedNumber>, StoreError>;

    /// Returns the changes of form that apply to `numbers` of a series, in ascending order. The
    /// first change may have a number below `numbers`, because its form still applies at their
    /// start.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn forms(
        &self,
        series: &SeriesName,
        numbers: RangeInclusive<u64>,
    ) -> Result<Vec<FormChange>, StoreError>;

    /// Returns the form that was stored with a number, or `None` if an earlier version issued the
    /// number.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn form_at(&self, series: &SeriesName, number: u64) -> Result<Option<NumberForm>, StoreError> {
        Ok(self
            .forms(series, number..=number)?
            .pop()
            .map(|change| change.form))
    }

    /// `true` if a hold stops the series from issuing numbers, because the store was restored and
    /// no operator has resumed the series yet. A series that has no numbers can also be held.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn is_held(&self, series: &SeriesName) -> Result<bool, StoreError>;

    /// Ends the hold of one series, or of all series if `series` is `None`, so that numbers are
    /// issued again. The change is durable when this method returns.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the hold has possibly not ended. The call may be repeated.
    fn end_hold(&self, series: Option<&SeriesName>) -> Result<(), StoreError>;

    /// Returns the kinds of series (`gapless` or `blocks`) at the last start, or `None` if no start
    /// has stored them.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn kinds(&self) -> Result<Option<NumberKinds>, StoreError>;

    /// Stores the kinds of series at this start. The kinds are durable when this method returns.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the kinds are possibly not stored.
    fn keep_kinds(&self, kinds: &NumberKinds) -> Result<(), StoreError>;

    /// Returns the templates of all starts. The history is empty if no start has stored any.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn templates(&self) -> Result<TemplateHistory, StoreError>;

    /// Replaces the templates of all starts, if they are still `before`. Returns `false` if another
    /// node has replaced them. The change is durable when this method returns.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the templates are possibly not stored.
    fn keep_templates(
        &self,
        before: &TemplateHistory,
        history: &TemplateHistory,
    ) -> Result<bool, StoreError>;

    /// Checks the configured rules against the stored numbers, and then stores the kinds and the
    /// templates of series.
    ///
    /// A rule is refused if different series would write the same text, unless one of these series
    /// already has numbers. For example, with the pattern `acme-*` and the text `INV-{n}`, all
    /// series would write `INV-1`. A series that has numbers must not change its kind.
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

    /// Compares the templates at this start with those at earlier starts, and stores the new ones.
    ///
    /// # Errors
    /// Returns [`StoreError`] with [`FailureKind::Disagrees`] if a new template writes a text that
    /// an earlier template can have written for another number. Returns another kind of error if the
    /// store cannot be read or written.
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
                Some(last) => self.template_changes(last, rules)?,
                None => Vec::new(),
            };
            if self.keep_templates(&before, &history)? {
                return Ok(AgreedRules { first, changes });
            }
        }
    }

    /// Checks that the rules write no text that a template of an earlier start can have written for
    /// another number. A template counts only if a series that matches its pattern has numbers.
    ///
    /// # Errors
    /// Returns [`StoreError`] with [`FailureKind::Disagrees`] if there is such a text, and another
    /// kind of error if the store cannot be read.
    fn check_former(
        &self,
        rules: &NumberRules,
        history: &TemplateHistory,
    ) -> Result<(), StoreError> {
        for former in history.all() {
            let Some(FormerConflict { rule, conflict }) =
                rules.conflict_with(std::slice::from_ref(former))
            else {
                continue;
            };
            let matches = |series: &SeriesName| former.pattern.matches(series.as_str());
            if self.any_series(&former.pattern, &matches)? {
                let text = format!(
                    "numbers.{rule} could write a text that is already the text of another number, because the text of \
                     {} was {} before: {conflict}; choose a text that differs from all earlier ones",
                    former.pattern, former.template
                );
                return Err(StoreError::new(FailureKind::Disagrees, text));
            }
        }
        Ok(())
    }

    /// Returns the rules whose template has changed since the last start. If a rule applies to a
    /// single series, its entry has the number from which the new template applies.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn template_changes(
        &self,
        last: &KeptTemplates,
        rules: &NumberRules,
    ) -> Result<Vec<TemplateChange>, StoreError> {
        let mut changes = Vec::new();
        for rule in rules.rules() {
            let is_it = |before: &&FormerTemplate| before.pattern == rule.pattern;
            let Some(before) = last.templates().iter().find(is_it) else {
                continue;
            };
            if rule.kind != NumberKind::Gapless
                || (&before.template, before.check) == (&rule.template, rule.check)
            {
                continue;
            }
            let only = rule
                .pattern
                .only()
                .and_then(|name| SeriesName::from_text(name).ok());
            let head = only.map(|series| self.series_head(&series)).transpose()?;
            changes.push(TemplateChange {
                rule: rule.name.clone(),
                pattern: rule.pattern.to_string(),
                template: rule.template.to_string(),
                from: head.map(|head| match head {
                    Some(head) => head.last.saturating_add(1),
                    None => rule.bounds.start,
                }),
            });
        }
        Ok(changes)
    }

    /// `true` if a series to which the rule applies has numbers.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn has_numbers(&self, rules: &NumberRules, rule: &NumberRule) -> Result<bool, StoreError> {
        let is_of_rule = |series: &SeriesName| rules.of(series.as_str()) == Some(rule);
        self.any_series(&rule.pattern, &is_of_rule)
    }

    /// `true` if `condition` is true for a series that has numbers. Only series whose names can
    /// match `pattern` are read.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn any_series(
        &self,
        pattern: &SeriesPattern,
        condition: &dyn Fn(&SeriesName) -> bool,
    ) -> Result<bool, StoreError> {
        let mut after = pattern.name_before();
        loop {
            let page = self.series(after.as_ref(), SERIES_PAGE)?;
            let mut with_numbers = page.iter().filter(|found| found.has_numbers());
            if with_numbers.any(|found| condition(&found.series)) {
                return Ok(true);
            }
            match page.last() {
                Some(last) if page.len() == SERIES_PAGE && !pattern.ends_by(&last.series) => {
                    after = Some(last.series.clone());
                }
                _ => return Ok(false),
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

/// The result of comparing the configured rules with the stored numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgreedRules {
    /// The templates of the first start that stored them. Numbers without a stored form are written
    /// by these templates.
    pub first: KeptTemplates,
    /// The rules whose template has changed since the last start.
    pub changes: Vec<TemplateChange>,
}

/// A rule whose template has changed since the last start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateChange {
    rule: String,
    pattern: String,
    template: String,
    /// The first number that is written by the new template, or `None` if the rule can apply to
    /// several series.
    from: Option<u64>,
}

impl fmt::Display for TemplateChange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TemplateChange {
            rule,
            pattern,
            template,
            from,
        } = self;
        write!(
            out,
            "numbers.{rule} has changed: numbers of {pattern} that are given from now on"
        )?;
        if let Some(from) = from {
            write!(out, " ({from} and later)")?;
        }
        write!(
            out,
            " are written as {template}, and earlier numbers keep their texts"
        )
    }
}

/// One number of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRecord {
    /// The number itself.
    pub number: u64,
    /// The numbers of the request that received this number.
    pub given: GivenNumbers,
    /// The time of and the reason for voiding the number, or `None` if the number is not void.
    pub void: Option<VoidedNumber>,
}

/// The data on which new numbers of a series depend.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SeriesState {
    /// The last number of the series and its time, or `None` if it has no number yet.
    pub head: Option<SeriesHead>,
    /// The record of closing the series, or `None` if the series is open.
    pub closed: Option<ClosedSeries>,
}

/// A series as it appears in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesSummary {
    /// The name of the series.
    pub series: SeriesName,
    /// The first number that the series has issued, or 1 if it was closed before that.
    pub first: u64,
    /// The last number that the series has issued, or 0 if it was closed before the first one.
    pub last: u64,
    /// The time at which the last number was issued. If the series has no number, the time at which
    /// it was closed.
    pub updated: EventTime,
    /// The record of closing the series, or `None` if the series is open.
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

    /// Returns the last number and its time, or `None` if the series has no number.
    pub fn head(&self) -> Option<SeriesHead> {
        self.has_numbers().then_some(SeriesHead {
            last: self.last,
            recorded: self.updated,
        })
    }
}
