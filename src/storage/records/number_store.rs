//! What an engine does with numbers: beside the rest of the records, and written with them.

use std::ops::RangeInclusive;

use crate::ledger::{EventTime, GivenNumbers, KeyHash, SeriesHead, SeriesName, VoidedNumber};
use crate::storage::failure::StoreError;

/// The numbers of every series. Nothing of them is ever forgotten, keys of requests neither.
///
/// Reads show what those of a [`RecordStore`](super::RecordStore) do, and fail as they do.
pub trait NumberStore {
    /// The last number of a series; `None` if it has not begun.
    ///
    /// # Errors
    /// [`StoreError`].
    fn series_head(&self, series: &SeriesName) -> Result<Option<SeriesHead>, StoreError>;

    /// Series in the order of their names, those behind `after`, at most `count_max`.
    ///
    /// # Errors
    /// [`StoreError`].
    fn series(
        &self,
        after: Option<&SeriesName>,
        count_max: usize,
    ) -> Result<Vec<SeriesSummary>, StoreError>;

    /// What was given of a series, in its order, from the number `from` on: at most `count_max` requests.
    ///
    /// # Errors
    /// [`StoreError`].
    fn given(
        &self,
        series: &SeriesName,
        from: u64,
        count_max: usize,
    ) -> Result<Vec<GivenNumbers>, StoreError>;

    /// What was given to each of these keys.
    ///
    /// # Errors
    /// [`StoreError`].
    fn given_to(
        &self,
        keys: &[(SeriesName, KeyHash)],
    ) -> Result<Vec<Option<GivenNumbers>>, StoreError>;

    /// A number of a series, and what is known of it; `None` if it was not given.
    ///
    /// # Errors
    /// [`StoreError`].
    fn number(&self, series: &SeriesName, number: u64) -> Result<Option<NumberRecord>, StoreError> {
        let given = self
            .given(series, number, 1)?
            .pop()
            .filter(|given| given.first <= number);
        let Some(given) = given else { return Ok(None) };
        Ok(Some(NumberRecord {
            number,
            given,
            void: self.voids(series, number..=number)?.pop(),
        }))
    }

    /// Which of these numbers of a series are void, in their order.
    ///
    /// # Errors
    /// [`StoreError`].
    fn voids(
        &self,
        series: &SeriesName,
        numbers: RangeInclusive<u64>,
    ) -> Result<Vec<VoidedNumber>, StoreError>;
}

/// A number of a series, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRecord {
    /// The number.
    pub number: u64,
    /// The request that it was given to.
    pub given: GivenNumbers,
    /// What is known of it as void, if it is.
    pub void: Option<VoidedNumber>,
}

/// A series as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesSummary {
    /// The series.
    pub series: SeriesName,
    /// Its first number.
    pub first: u64,
    /// Its last one.
    pub last: u64,
    /// When that was given.
    pub updated: EventTime,
}
