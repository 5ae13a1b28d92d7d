//! Numbers without gaps: taken, made void, listed.

use std::borrow::Cow;
use std::num::NonZeroU32;

use super::error::ClientError;
use super::http_client::Client;
use super::request::Answer;
use crate::ledger::SeriesName;
use crate::wire::{NumberAnswer, NumberList, SeriesList, VoidAnswer, VoidBody};

impl Client {
    /// The next numbers of a series, the same ones for the same key.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn next_numbers(
        &self,
        series: &SeriesName,
        count: NonZeroU32,
        key: &str,
    ) -> Result<Answer<NumberAnswer>, ClientError> {
        let request = self
            .post(&format!("/numbers/{series}"))
            .query(&[("count", count)])
            .idempotency_key(key)?;
        request.send().await?.json()
    }

    /// Begins a series with this number, which was given elsewhere; the same again changes nothing.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn begin_series(
        &self,
        series: &SeriesName,
        first: u64,
        key: &str,
    ) -> Result<Answer<NumberAnswer>, ClientError> {
        let request = self
            .post(&format!("/numbers/{series}"))
            .query(&[("first", first)])
            .idempotency_key(key)?;
        request.send().await?.json()
    }

    /// Says why a number is on nothing; the same again changes nothing.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn make_void(
        &self,
        series: &SeriesName,
        number: u64,
        reason: &str,
    ) -> Result<Answer<VoidAnswer>, ClientError> {
        let body = serde_json::to_vec(&VoidBody {
            reason: Cow::Borrowed(reason),
        })
        .expect("a text always serializes");
        let request = self
            .post(&format!("/numbers/{series}/{number}/void"))
            .repeatedly();
        request.body("application/json", body).send().await?.json()
    }

    /// Some of the series, those behind `after`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn series(&self, after: Option<&str>) -> Result<SeriesList, ClientError> {
        let request = self
            .get("/numbers")
            .query(&Vec::from_iter(after.map(|after| ("after", after))));
        Ok(request.send().await?.json()?.body)
    }

    /// Up to 1 000 numbers of a series, those above `after`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn numbers(
        &self,
        series: &SeriesName,
        after: Option<&str>,
    ) -> Result<NumberList, ClientError> {
        let request = self
            .get(&format!("/numbers/{series}"))
            .query(&[("limit", "1000")]);
        let request = request.query(&Vec::from_iter(after.map(|after| ("after", after))));
        Ok(request.send().await?.json()?.body)
    }
}
