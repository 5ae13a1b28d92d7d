//! Ledgers: create, append, look up.

use super::error::ClientError;
use super::http_client::Client;
use super::request::Answer;
use crate::ledger::{EventId, ImportPart, LedgerId};
use crate::wire::{EventDetail, LedgerInfo, MintAnswer, MintDetails};

impl Client {
    /// A ledger; `None` if the service has none of that id.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn ledger(&self, ledger: LedgerId) -> Result<Option<LedgerInfo>, ClientError> {
        match self.get(&format!("/ledgers/{ledger}")).send().await {
            Ok(answer) => Ok(Some(answer.json()?.body)),
            Err(error) if error.is_refusal("unknown-ledger") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the ledger has an event of that id.
    ///
    /// # Errors
    /// [`ClientError`].
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

    /// Creates the ledger that begins with this event, once for the key.
    ///
    /// # Errors
    /// [`ClientError`].
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

    /// Appends events, all or none, once for the key; `events` are JSON objects with commas between them, `previous` is
    /// the head that the ledger must have.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn append_events(
        &self,
        ledger: LedgerId,
        key: &str,
        events: &[u8],
        previous: Option<EventId>,
        import: Option<ImportPart>,
    ) -> Result<Answer<Vec<EventDetail>>, ClientError> {
        // As text: the events are sent as they stand in the file, and may be megabytes.
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

/// What says in an address that a request is a part of an import.
fn import_query(import: Option<ImportPart>) -> Option<(&'static str, &'static str)> {
    import.map(|part| ("import", part.name()))
}
