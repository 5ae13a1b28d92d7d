//! Numbers: given, made void, and read.

use std::num::NonZeroU32;

use super::blocks::Reservation;
use crate::ledger::{
    GivenNumbers, NumberRequest, NumberRules, SeriesName, SeriesPattern, VoidRequest, VoidedNumber,
};
use crate::service::error::ServiceError;
use crate::service::ledgers::{PAGE_LEN, Page, page, unavailable};
use crate::service::service::Service;
use crate::storage::{NumberRecord, Numbered, SeriesSummary};

impl Service {
    /// How series are written, and how far they go.
    pub fn number_rules(&self) -> &NumberRules {
        self.decoding().number_rules()
    }

    /// Gives the next numbers of a series; what comes back is durable.
    ///
    /// # Errors
    /// [`ServiceError`]: nothing was given, or that is not known.
    pub async fn give_numbers(
        &self,
        request: NumberRequest,
    ) -> Result<Numbered<GivenNumbers>, ServiceError> {
        let keeper = self.record_keeper().ok_or_else(|| self.not_begun())?;
        let outcome = keeper.give(request).await;
        self.counters().count_numbers(&outcome);
        Ok(outcome?)
    }

    /// Gives `count` numbers of a series of blocks, one after the other, and returns the first. Of these and of those that are reserved
    /// with them at most `reserve`, or as many as one request asks for, are lost when the process ends.
    ///
    /// # Errors
    /// [`ServiceError`]: nothing was given.
    pub async fn give_block(
        &self,
        series: &SeriesName,
        count: NonZeroU32,
        reserve: NonZeroU32,
    ) -> Result<u64, ServiceError> {
        let keeper = self.record_keeper().ok_or_else(|| self.not_begun())?;
        keeper.can_append()?;
        let session = self.session()?;
        let bounds = self.number_rules().bounds(series);
        let outcome = self
            .blocks
            .take(
                Reservation {
                    keeper,
                    series,
                    bounds,
                    count,
                    reserve,
                },
                session,
            )
            .await;
        self.counters().count_block(count, &outcome);
        Ok(outcome?)
    }

    /// Makes a number void; what comes back is durable.
    ///
    /// # Errors
    /// [`ServiceError`]: it was not made void, or that is not known.
    pub async fn make_void(
        &self,
        request: VoidRequest,
    ) -> Result<Numbered<VoidedNumber>, ServiceError> {
        let keeper = self.record_keeper().ok_or_else(|| self.not_begun())?;
        let outcome = keeper.make_void(request).await;
        self.counters().count_void(&outcome);
        Ok(outcome?)
    }

    /// A page of all series, or of those `among` these, behind `after`.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn series(
        &self,
        among: Option<&[SeriesPattern]>,
        after: Option<SeriesName>,
    ) -> Result<Page<SeriesSummary>, ServiceError> {
        let records = self.records()?;
        let is_among = |summary: &SeriesSummary| {
            among.is_none_or(|among| {
                among
                    .iter()
                    .any(|pattern| pattern.matches(summary.series.as_str()))
            })
        };
        let (mut found, mut behind) = (Vec::new(), after);
        loop {
            let more = records
                .series(behind.as_ref(), PAGE_LEN + 1)
                .map_err(unavailable)?;
            let is_last = more.len() <= PAGE_LEN;
            behind = more.last().map(|summary| summary.series.clone());
            found.extend(more.into_iter().filter(is_among));
            if is_last || found.len() > PAGE_LEN {
                return Ok(page(found, PAGE_LEN));
            }
        }
    }

    /// A page of `limit` numbers of a series, above `after`.
    ///
    /// # Errors
    /// [`ServiceError::UnknownSeries`] among others.
    pub fn numbers(
        &self,
        series: &SeriesName,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Page<NumberRecord>, ServiceError> {
        let records = self.records()?;
        let Some(head) = records.series_head(series).map_err(unavailable)? else {
            return Err(ServiceError::UnknownSeries(series.clone()));
        };
        let from = after.map_or(0, |after| after.saturating_add(1));
        let given = records
            .given(series, from, limit + 1)
            .map_err(unavailable)?;
        let of_given = |given: &GivenNumbers| {
            let given = given.clone();
            (from.max(given.first)..=given.last).map(move |number| (number, given.clone()))
        };
        let found: Vec<_> = given.iter().flat_map(of_given).take(limit + 1).collect();
        let to = found.last().map_or(head.last, |(number, _)| *number);
        let mut voids = records
            .voids(series, from..=to.max(from))
            .map_err(unavailable)?
            .into_iter()
            .peekable();
        let listed = found.into_iter().map(|(number, given)| {
            let void = voids.next_if(|void| void.number == number);
            NumberRecord {
                number,
                given,
                void,
            }
        });
        Ok(page(listed.collect(), limit))
    }
}
