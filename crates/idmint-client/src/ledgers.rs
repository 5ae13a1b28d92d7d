//! Requests that create, extend and read ledgers.

use super::error::ClientError;
use super::http_client::Client;
use super::request::Answer;
use idmint_records::ledger::{EventId, ImportPart, LedgerId};
use idmint_wire::{EventDetail, LedgerInfo, MintAnswer, MintDetails};

impl Client {
    /// Returns a ledger, or `None` if the service has no ledger with this id.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails for any other reason.
    pub async fn ledger(&self, ledger: LedgerId) -> Result<Option<LedgerInfo>, ClientError> {
        match self.get(&format!("/ledgers/{ledger}")).send().await {
            Ok(answer) => Ok(Some(answer.json()?.body)),
            Err(error) if error.is_refusal("unknown-ledger") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns `true` if the ledger contains the event.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails for any reason other than a missing event.
    pub async fn has_event(&self, ledger: LedgerId, event: EventId) -> Result<bool, ClientError> {
        match self
            .get(&format!("/ledgers/{ledger}/ids/{event}"))
            .send()
            .await
        {
            Ok(answer) => answer.json::<EventDetail>().map(|_| true),
            Err(error) if error.is_refusal("not-found") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates the ledger that begins with the event `genesis`. Creates at most one ledger per
    /// idempotency key.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails.
    pub async fn create_ledger(
        &self,
        key: &str,
        genesis: Vec<u8>,
        import: Option<ImportPart>,
    ) -> Result<Answer<LedgerInfo>, ClientError> {
        let request = self
            .post("/ledgers")
            .query(&import_query(import).as_slice())
            .idempotency_key(key)?;
        request
            .body("application/json", genesis)
            .send()
            .await?
            .json()
    }

    /// Appends events to a ledger: all of them or none, and at most once per idempotency key.
    ///
    /// `events` are JSON objects separated by commas. `previous` is the expected head of the
    /// ledger, which is the id of its last event.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the request fails.
    pub async fn append_events(
        &self,
        ledger: LedgerId,
        key: &str,
        events: &[u8],
        previous: Option<EventId>,
        import: Option<ImportPart>,
    ) -> Result<Answer<Vec<EventDetail>>, ClientError> {
        // Copy the events into the body as they are. Parsing and serializing them could change
        // their bytes, which must stay the same, and takes time for megabytes of events.
        let mut body = format!(r#"{{"ledger":"{ledger}","events":["#).into_bytes();
        body.extend(events);
        let end = previous.map_or_else(
            || "]}".to_owned(),
            |id| format!(r#"],"expected_previous":"{id}"}}"#),
        );
        body.extend(end.into_bytes());
        let request = self
            .post("/ids/evently")
            .query(&import_query(import).as_slice())
            .idempotency_key(key)?
            .body("application/json", body);
        let Answer { is_replayed, body } = request.send().await?.json::<MintAnswer>()?;
        match body.details {
            Some(MintDetails::Events(details)) => Ok(Answer {
                is_replayed,
                body: details,
            }),
            _ => Err(ClientError::EventsMissing),
        }
    }
}

/// Returns the query parameter that marks a part of an import, or `None` for other requests.
fn import_query(import: Option<ImportPart>) -> Option<(&'static str, &'static str)> {
    import.map(|part| ("import", part.name()))
}
