//! The operations that a store supports for numbers.

use std::ops::RangeInclusive;

use crate::failure::{FailureKind, StoreError};
use idmint_records::ledger::{
    EventTime, GivenNumbers, KeyHash, NumberKinds, NumberRule, NumberRules, SeriesHead, SeriesName,
    VoidedNumber,
};

/// The number of series that are read at a time while a start checks its rules.
const SERIES_PAGE: usize = 1_000;

/// A store of the numbers of every series. Numbers and the keys of their requests are never
/// removed.
pub trait NumberStore {
    /// Returns the last number of a series and its time, or `None` if the series has no number yet.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn series_head(&self, series: &SeriesName) -> Result<Option<SeriesHead>, StoreError>;

    /// Returns at most `count_max` series whose names follow `after`, sorted by name.
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

    /// Checks the configured rules against the stored numbers, and then stores the kinds of series.
    /// A rule by which different series write the same texts, such as `2027-1` for both, is refused
    /// unless one of these series already has numbers. A series that has numbers must not change
    /// its kind.
    ///
    /// # Errors
    /// Returns [`StoreError`] with [`FailureKind::Disagrees`] if the rules are refused, and another
    /// kind of error if the store cannot be read or written.
    fn agree_on_rules(&self, rules: &NumberRules) -> Result<(), StoreError> {
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
        self.agree_on_kinds(&rules.kinds())
    }

    /// `true` if a series to which the rule applies has numbers.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be read.
    fn has_numbers(&self, rules: &NumberRules, rule: &NumberRule) -> Result<bool, StoreError> {
        let mut after = rule.pattern.name_before();
        loop {
            let page = self.series(after.as_ref(), SERIES_PAGE)?;
            let is_of_rule = |found: &SeriesSummary| rules.of(found.series.as_str()) == Some(rule);
            if page.iter().any(is_of_rule) {
                return Ok(true);
            }
            match page.last() {
                Some(last) if page.len() == SERIES_PAGE && !rule.pattern.ends_by(&last.series) => {
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
            for SeriesSummary { series, .. } in &page {
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

/// A series as it appears in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesSummary {
    /// The name of the series.
    pub series: SeriesName,
    /// The first number that the series has issued.
    pub first: u64,
    /// The last number that the series has issued.
    pub last: u64,
    /// The time at which the last number was issued.
    pub updated: EventTime,
}
