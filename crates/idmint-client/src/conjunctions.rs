//! Requests that list the conjunctions of a service, and that copy them to another service.

use super::error::ClientError;
use super::http_client::Client;
use super::request::segment;
use idmint_wire::{
    ConjunctionInfo, ConjunctionInfos, MintAnswer, MintDetails, ReportDetail, ReportRequest,
};

/// The value of `from` in a request for all conjunctions. No conjunction is earlier.
const BEGINNING: &str = "0001-01-01T00:00:00Z";

impl Client {
    /// Returns one page of the stored conjunctions of a format. A page has up to 1,000 conjunctions
    /// that come after the cursor `after`, ordered by time.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails.
    pub async fn conjunctions(
        &self,
        format: &str,
        after: Option<&str>,
    ) -> Result<ConjunctionInfos, ClientError> {
        let request = self.get("/conjunctions").query(&[
            ("format", format),
            ("from", BEGINNING),
            ("limit", "1000"),
        ]);
        let request = request.query(&Vec::from_iter(after.map(|after| ("after", after))));
        Ok(request.send().await?.json()?.body)
    }

    /// Stores conjunctions of another service under the ids that they have there.
    ///
    /// Each conjunction is sent as one report that contains its id. The conjunction gets another id
    /// if the service has a conjunction of the same objects within a second.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails.
    pub async fn adopt_conjunctions(
        &self,
        format: &str,
        conjunctions: &[ConjunctionInfo],
    ) -> Result<Vec<ReportDetail>, ClientError> {
        self.send_conjunctions(format, conjunctions, &[]).await
    }

    /// Stores conjunctions like [`adopt_conjunctions`](Self::adopt_conjunctions), but each keeps
    /// its id even if the service has another conjunction of the same objects within a second.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails.
    pub async fn keep_conjunctions(
        &self,
        format: &str,
        conjunctions: &[ConjunctionInfo],
    ) -> Result<Vec<ReportDetail>, ClientError> {
        self.send_conjunctions(format, conjunctions, &[("noted", "keep")])
            .await
    }

    async fn send_conjunctions(
        &self,
        format: &str,
        conjunctions: &[ConjunctionInfo],
        query: &[(&str, &str)],
    ) -> Result<Vec<ReportDetail>, ClientError> {
        let report = |conjunction: &ConjunctionInfo| ReportRequest {
            tca: conjunction.anchor_tca.clone().into(),
            primary: conjunction.primary,
            secondary: conjunction.secondary,
            noted: Some(conjunction.id.clone().into()),
        };
        let reports: Vec<ReportRequest<'_>> = conjunctions.iter().map(report).collect();
        let body = serde_json::to_vec(&reports).expect("texts and numbers always serialize");
        let request = self
            .post(&format!("/ids/{}", segment(format)))
            .query(&query)
            .body("application/json", body);
        match request.send().await?.json::<MintAnswer>()?.body.details {
            Some(MintDetails::Reports(details)) => Ok(details),
            _ => Err(ClientError::EventsMissing),
        }
    }
}
