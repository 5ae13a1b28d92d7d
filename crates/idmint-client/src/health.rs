//! The readiness request, `GET /health/ready`.

use super::error::ClientError;
use super::http_client::Client;
use idmint_wire::Readiness;

impl Client {
    /// Returns the readiness of the service to mint, with the reason if it is not ready. Sends one
    /// request and never retries.
    ///
    /// # Errors
    /// Returns [`ClientError`] if the service does not respond, or if the response does not come
    /// from idmint.
    pub async fn readiness(&self) -> Result<Readiness, ClientError> {
        self.get("/health/ready").send_for_any_status().await
    }
}
