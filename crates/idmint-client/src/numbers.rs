//! Requests for series of numbers without gaps, such as invoice numbers. They take, void and list
//! the numbers of a series, and close a series.

use std::borrow::Cow;
use std::num::NonZeroU32;

use super::error::ClientError;
use super::http_client::Client;
use super::request::Answer;
use idmint_records::ledger::SeriesName;
use idmint_wire::{
    CloseAnswer, NumberAnswer, NumberList, ResumeAnswer, SeriesList, VoidAnswer, VoidBody,
};

impl Client {
    /// Takes the next numbers of a series. A request with the same idempotency key returns the same
    /// numbers again.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails.
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

    /// Continues a series whose numbers another program has issued until now. `first` is the last
    /// number that the other program issued. For example, with `first = 41`, the service issues 42
    /// next. Repeating the request has no further effect. To correct the number of an earlier call,
    /// pass the wrong number as `instead_of`. The wrong number must still be the only number of the
    /// series.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails.
    pub async fn begin_series(
        &self,
        series: &SeriesName,
        first: u64,
        instead_of: Option<u64>,
        key: &str,
    ) -> Result<Answer<NumberAnswer>, ClientError> {
        let mut query = vec![("first", first)];
        query.extend(instead_of.map(|wrong| ("instead_of", wrong)));
        let request = self
            .post(&format!("/numbers/{series}"))
            .query(&query)
            .idempotency_key(key)?;
        request.send().await?.json()
    }

    /// Resumes series that are on hold since the service was restored from a backup. `series` is
    /// the name of one series and the number that it issues next. `None` resumes all series that
    /// are on hold, each at its stored number. Repeating the request has no further effect, but
    /// fails for a single series that has issued more numbers in the meantime.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails.
    pub async fn resume_numbers(
        &self,
        series: Option<(&SeriesName, u64)>,
    ) -> Result<ResumeAnswer, ClientError> {
        let request = match series {
            Some((series, from)) => self
                .post(&format!("/numbers/{series}/resume"))
                .query(&[("from", from)]),
            None => self.post("/numbers/*/resume"),
        };
        Ok(request.repeatedly().send().await?.json()?.body)
    }

    /// Marks a number as void and records the reason. Repeating the request with the same reason
    /// has no further effect.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails, for example because the number is already void
    /// for another reason.
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

    /// Closes a series, which then issues no more numbers. Repeating the request has no further
    /// effect.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails.
    pub async fn close_series(
        &self,
        series: &SeriesName,
    ) -> Result<Answer<CloseAnswer>, ClientError> {
        let request = self.post(&format!("/numbers/{series}/close")).repeatedly();
        request.send().await?.json()
    }

    /// Returns one page of the list of series, starting after the cursor `after`.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails.
    pub async fn series(&self, after: Option<&str>) -> Result<SeriesList, ClientError> {
        let request = self
            .get("/numbers")
            .query(&Vec::from_iter(after.map(|after| ("after", after))));
        Ok(request.send().await?.json()?.body)
    }

    /// Returns up to 1,000 numbers of a series that are greater than `after`.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails.
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
